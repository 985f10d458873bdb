package room

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	lkauth "github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"

	"vela/gateway/auth"
)

// issuer makes tokens and what they buy.
type issuer struct {
	t         *testing.T
	authority *auth.Authority
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	keys, err := auth.ParseKeys("key:" + strings.Repeat("k", 43))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := auth.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{t, authority}
}

func (i issuer) token(r auth.Rights) string {
	i.t.Helper()
	token, _, err := i.authority.Issue("key", r)
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

func (i issuer) pass(token string) *auth.Pass {
	i.t.Helper()
	p, err := i.authority.Admit(token)
	if err != nil {
		i.t.Fatal(err)
	}
	return p
}

// Being in a room takes one of the token's sessions, for as long as somebody is there.
func TestAPlaceInARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		token := i.token(auth.Rights{Sessions: 1, TTL: 10 * time.Minute})
		g := &guests{table: map[stay]*guest{}}
		ann, bob := stay{"kitchen", "ann"}, stay{"kitchen", "bob"}
		// Both are invited before either comes: the second finds no place.
		if err := errors.Join(g.invite(ann, i.pass(token)), g.invite(bob, i.pass(token))); err != nil {
			t.Fatal(err)
		}
		if pass, invited, err := g.came(ann); err != nil || pass == nil || !invited {
			t.Fatal(pass, invited, err)
		}
		if _, _, err := g.came(bob); !errors.Is(err, auth.ErrSessions) {
			t.Errorf("bob: %v", err)
		}
		if err := g.invite(bob, i.pass(token)); !errors.Is(err, auth.ErrSessions) {
			t.Errorf("bob, asking again: %v", err)
		}
		// Whoever is there comes back with the same token, also when it is over meanwhile.
		time.Sleep(11 * time.Minute)
		if err := g.invite(ann, i.pass(token)); err != nil {
			t.Errorf("ann, coming back: %v", err)
		}
		if _, _, err := g.came(ann); err != nil {
			t.Errorf("ann, coming twice: %v", err)
		}
		late := i.pass(token)
		g.left(ann)
		g.left(ann)
		if err := g.invite(bob, late); !errors.Is(err, auth.ErrExpired) {
			t.Errorf("with a token that is over: %v", err)
		}
		if pass, invited, err := g.came(stay{"kitchen", "somebody"}); pass != nil || invited || err != nil {
			t.Errorf("nobody's guest: %v, %v, %v", pass, invited, err)
		}
		time.Sleep(time.Hour)
		fresh := i.pass(i.token(auth.Rights{}))
		if err := g.invite(bob, fresh); err != nil || len(g.table) != 1 {
			t.Errorf("%v; %d are remembered", err, len(g.table))
		}
		for n := len(g.table); n < maxGuests; n++ {
			g.table[stay{identity: time.Duration(n).String()}] = &guest{pass: fresh, until: time.Now().Add(time.Hour)}
		}
		if err := g.invite(ann, fresh); !errors.Is(err, errGuests) {
			t.Errorf("one more than may be: %v", err)
		}
	})
}

// The token for LiveKit ends with the pass that it was made for.
func TestATokenEndsWithItsPass(t *testing.T) {
	i := newIssuer(t)
	h := New(Config{URL: "ws://nowhere", Key: "key", Secret: "secret-secret-secret-secret-secret"})
	for _, c := range []struct{ pass, most time.Duration }{{2 * time.Minute, 2 * time.Minute}, {time.Hour, guestTTL}} {
		_, token, err := h.Token("kitchen", "ann", "", "", nil, i.pass(i.token(auth.Rights{TTL: c.pass})))
		if err != nil {
			t.Fatal(err)
		}
		v, err := lkauth.ParseAPIToken(token)
		if err != nil {
			t.Fatal(err)
		}
		claims, _, err := v.Verify("secret-secret-secret-secret-secret")
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(claims.ExpiresAt.Time); left > c.most || left < c.most-time.Minute {
			t.Errorf("a pass of %s: the token is good for %s", c.pass, left)
		}
	}
}

// Who has no place is told so, alone, and is not heard, read or obeyed.
func TestWhoHasNoPlaceInARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		h := open(t, Config{NoContent: true})
		token := i.token(auth.Rights{Sessions: 1})
		for _, identity := range []string{"ann", "bob"} {
			if _, _, err := h.Token("kitchen", identity, "", "", nil, i.pass(token)); err != nil {
				t.Fatal(err)
			}
		}
		s := h.join("kitchen")
		s.happens(came{identity: "bob"})
		synctest.Wait()
		var told []string
		for _, p := range s.packets {
			if len(p.DestinationIdentities) > 0 {
				told = append(told, strings.Join(p.DestinationIdentities, " ")+" "+string(p.Value.(*livekit.DataPacket_User).User.Payload))
			}
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], `bob {"type":"system_event","severity":"error","title":"Session limit"`) {
			t.Errorf("told: %q", told)
		}
		loud := make([]int16, 320)
		for n := range loud {
			loud[n] = 8000
		}
		bobs := &microphone{who: who{"bob", "TR_2"}}
		s.happens(typed{"bob", "hello"})
		s.happens(frame{bobs, loud})
		s.happens(command{"bob", []byte(`{"type":"end_voice_session"}`)})
		m, err := readCall("response.cancel", nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &call{identity: "bob", message: m, done: make(chan error, 1)}
		s.happens(c)
		synctest.Wait()
		if err := <-c.done; !errors.Is(err, errNoPlace) || s.says() != "" || s.room.peer.listens(bobs) || s.closed() {
			t.Errorf("%v, said %q, listened to %v, closed %v", err, s.says(), s.room.peer.listens(bobs), s.closed())
		}
		// The place is ann's for as long as she is there.
		s.happens(left{"ann"})
		s.happens(left{"bob"})
		s.happens(came{identity: "bob"})
		s.happens(typed{"bob", "hello"})
		if got := s.says(); got != "hello|hello 0" {
			t.Errorf("said: %s", got)
		}
		s.room.over(errEnded)
		synctest.Wait()
		if leave, err := i.pass(token).Enter(); err != nil {
			t.Errorf("the room is over, and %v", err)
		} else {
			leave()
		}
	})
}
