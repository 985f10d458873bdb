package gateway

import (
	"slices"
	"testing"
	"time"

	"vela/gateway/server"
	"vela/session"
)

// paid is a [session.Allowance] without an end.
type paid struct{}

func (paid) Take(time.Duration) bool { return true }

// A session is made with what its client's token allows, and no more.
func TestWhatASessionsClientMay(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.agents.close()
	only := []session.Turns{session.Deterministic}
	may := g.sessionConfig(server.NewSession{Version: 2, Only: only, Audio: paid{}, Follows: true, Emits: true}, "a")
	if !slices.Equal(may.Only, only) || may.Allowance != (paid{}) || may.Follow == nil || !may.Emits {
		t.Errorf("of all rights: %v, %v, follows %v, emits %v", may.Only, may.Allowance, may.Follow != nil, may.Emits)
	}
	if none := g.sessionConfig(server.NewSession{Version: 2}, "b"); none.Follow != nil || none.Emits {
		t.Errorf("of none: follows %v, emits %v", none.Follow != nil, none.Emits)
	}
}
