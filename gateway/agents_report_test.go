package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
)

func TestAnAgentThatIsNotThereSaysSoToEverybodyAndWhyToTheOperator(t *testing.T) {
	a, err := readAgents(t, `
agents:
  keyless: {kind: anthropic, model: m, key_env: SK_TEST_NOT_SET}
  gone: {kind: openai, url: "http://127.0.0.1:1/v1"}
  unsure: {kind: dispatch, dir: nowhere}
  bare: {kind: openai, url: "http://127.0.0.1:1/v1", tools: {mcp: [files]}}
mcp:
  files: {command: [nowhere], env: [SK_TEST_NOT_SET]}
`)
	if err == nil {
		defer a.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := a.report(t.Context())
	public, _ := json.Marshal(r)
	for _, secret := range []string{"SK_TEST", "127.0.0.1", "/tmp", "nowhere"} {
		if strings.Contains(string(public), secret) {
			t.Errorf("%q is in %s", secret, public)
		}
	}
	for _, got := range r.Agents {
		if got.Available || got.Why == "" || got.Cause == nil {
			t.Errorf("%+v", got)
		}
	}
	for _, m := range a.list {
		var known interface{ Code() protocol.Code }
		if _, err := answer(m.engine, "hello"); !errors.As(err, &known) || known.Code() != protocol.CodeAgentUnavailable {
			t.Errorf("%s fails with %v", m.name, err)
		}
	}
}

// What is wrong with a key is for everybody to know; what the other side said of it is not.
func TestWhyAModelRefusesIsSaidToEverybody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such key: sk-12", http.StatusUnauthorized)
	}))
	defer s.Close()
	a, err := readAgents(t, strings.ReplaceAll(`
agents:
  a: {kind: openai, url: "URL/v1"}
  b: {kind: anthropic, url: "URL", model: m}
`, "URL", s.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, got := range a.report(t.Context()).Agents {
		if got.Available || got.Why != "The model does not accept the gateway's key." || !strings.Contains(got.Cause.Error(), "set the right key") {
			t.Errorf("%+v", got)
		}
	}
}

// However many ask at once, and however often, an agent's server is asked once in 5 s; a caller that leaves decides nothing.
func TestWhoeverAsksForAgentsAsksTheirServersRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		a := &agents{recent: newRecent[AgentsReport](), list: []*made{{name: "a", probe: func(ctx context.Context) error {
			probes.Add(1)
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}}}
		leaves, gone := context.WithTimeout(t.Context(), time.Second/2)
		defer gone()
		if r := a.lately(leaves); r.Agents[0].Available {
			t.Errorf("who left in the middle was told %+v", r)
		}
		if r := a.lately(leaves); len(r.Agents) > 0 && r.Agents[0].Available {
			t.Errorf("who had left before was told %+v", r)
		}
		probes.Store(0)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if r := a.lately(t.Context()); !r.Agents[0].Available {
					t.Errorf("it is said to be away: %+v", r)
				}
			})
		}
		all.Wait()
		if n := probes.Load(); n != 1 {
			t.Errorf("20 callers at once made %d requests", n)
		}
		time.Sleep(reportKept - time.Millisecond)
		a.lately(t.Context())
		if n := probes.Load(); n != 1 {
			t.Errorf("a call within 5 s made another request: %d", n)
		}
		time.Sleep(time.Millisecond)
		a.lately(t.Context())
		if n := probes.Load(); n != 2 {
			t.Errorf("after 5 s there were %d requests, want 2", n)
		}
	})
}
