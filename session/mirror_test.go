package session_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"vela/protocol"
	"vela/session"
	"vela/turn/deterministic"
)

// A session asks for its room once it runs, and again when its client names another one; what names no room is refused.
func TestTheRoomThatMirrorsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rooms []string
		mirror := func(_ *session.Session, room string) { rooms = append(rooms, room) }
		s := session.New(session.Config{ID: sessionID, Version: 2, Mock: deterministic.Engine{}, Mirror: mirror})
		if err := s.Configure(protocol.SessionStart{Room: "kitchen"}); err != nil || len(rooms) != 0 {
			t.Fatalf("%v, %v: before it runs", err, rooms)
		}
		for _, room := range []string{strings.Repeat("x", 129), "a\nb", "\xff"} {
			if err := s.Configure(protocol.SessionStart{Room: room}); err == nil {
				t.Errorf("%.10q was taken", room)
			}
		}
		go s.Run(t.Context())
		p := &client{t: t}
		say := func(m protocol.Message) {
			if err := give(t.Context(), s, p, "", m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := s.Join(t.Context(), p, session.Hello{}); err != nil {
			t.Fatal(err)
		}
		say(protocol.SessionStart{})
		say(protocol.SessionStart{Room: "kitchen"})
		say(protocol.SessionStart{Room: "hall"})
		if got := strings.Join(rooms, " "); got != "kitchen hall" {
			t.Errorf("it asked for %s", got)
		}
		ready, ok := p.shown[len(p.shown)-2].Message.(protocol.SessionReady)
		if !ok || ready.Room != "hall" || !strings.Contains(strings.Join(ready.Features, " "), "room") {
			t.Errorf("the client was told %+v", p.shown[len(p.shown)-2].Message)
		}
		say(protocol.SessionClose{})
		<-s.Done()
	})
}

// Without rooms a client that names one is told so.
func TestNoRooms(t *testing.T) {
	s := session.New(session.Config{ID: sessionID, Version: 2, Mock: deterministic.Engine{}})
	if err := s.Configure(protocol.SessionStart{Room: "kitchen"}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
}
