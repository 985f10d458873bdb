package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"vela/gateway/server"
	"vela/protocol"
)

// open2 opens a connection of version 2, on which the client has to speak first.
func (g *gateway) open2() socket {
	g.Helper()
	c, _, err := websocket.Dial(g.ctx, "ws://"+g.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{"vela.v2"}})
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(16 << 20)
	return socket{g.T, c, g.ctx}
}

func (s socket) envelope() protocol.Envelope {
	s.Helper()
	_, frame, err := s.Read(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	e, err := protocol.DecodeEnvelope(frame, protocol.Server)
	if err != nil {
		s.Fatalf("%s: %v", frame, err)
	}
	return e
}

// begin starts or resumes, and returns session.ready.
func (s socket) begin(message string) protocol.SessionReady {
	s.Helper()
	s.send(message)
	ready, ok := s.envelope().Message.(protocol.SessionReady)
	if !ok || ready.Terms == nil {
		s.Fatalf("greeted with %+v", ready)
	}
	return ready
}

const start = `{"type":"session.start","payload":{"turns":"deterministic"},"id":"first"}`

func resume(token string, after uint64) string {
	return fmt.Sprintf(`{"type":"session.resume","payload":{"token":%q,"after":%d}}`, token, after)
}

// until reads events up to the last idle of a turn and returns the number of the last one.
func (s socket) untilIdle(from uint64) uint64 {
	s.Helper()
	for {
		e := s.envelope()
		if e.Seq != 0 {
			if e.Seq != from+1 {
				s.Fatalf("number %d follows %d", e.Seq, from)
			}
			from = e.Seq
		}
		if m, ok := e.Message.(protocol.SessionState); ok && m.Value == protocol.Idle && from > 1 {
			return from
		}
	}
}

func TestASessionIsResumed(t *testing.T) {
	g := serve(t, nil)
	first := g.open2()
	ready := first.begin(start)
	if ready.Resumed || ready.Turns != "deterministic" || len(ready.ResumeToken) < 43 {
		t.Errorf("started with %+v", ready.Terms)
	}
	first.send(`{"type":"mocked.turn.trigger","payload":{}}`)
	last := first.untilIdle(0)
	_ = first.CloseNow()

	second := g.open2()
	again := second.begin(resume(ready.ResumeToken, 1))
	if again.SessionID != ready.SessionID || !again.Resumed || !again.Recovered || again.LastSeq != last {
		t.Errorf("resumed with %+v", again)
	}
	if end := second.untilIdle(1); end != last {
		t.Errorf("%d events after the resume, want %d", end, last)
	}

	future := g.open2()
	if r := future.begin(resume(ready.ResumeToken, last+100)); r.Recovered {
		t.Error("recovered what has not happened yet")
	}
	if code := second.closed(); code != protocol.CloseTakenOver {
		t.Errorf("the second connection was closed with %d, want 4002", code)
	}
	future.send(`{"type":"session.close","payload":{}}`)
	if code := future.closed(); code != 1000 {
		t.Errorf("session.close closed with %d", code)
	}
	gone := g.open2()
	gone.send(resume(ready.ResumeToken, 0))
	if e, ok := gone.envelope().Message.(protocol.Error); !ok || e.Code != protocol.CodeSessionGone {
		t.Errorf("told %+v", e)
	}
	if code := gone.closed(); code != protocol.CloseSessionGone {
		t.Errorf("closed with %d, want 4006", code)
	}
}

// TestTokensThatResumeNothing: whatever is sent, the answer is the same, and nothing of it is told back.
func TestTokensThatResumeNothing(t *testing.T) {
	g := serve(t, nil)
	real := g.open2().begin(start).ResumeToken
	for name, token := range map[string]string{
		"empty": "", "short": "abc", "cut": real[:len(real)-1], "longer": real + "A", "huge": strings.Repeat("A", 100_000),
		"another case": strings.ToLower(real) + "x", "not base64": "%%%%",
	} {
		s := g.open2()
		s.send(resume(token, 0))
		e, ok := s.envelope().Message.(protocol.Error)
		if !ok || e.Code != protocol.CodeSessionGone || len(token) > 2 && strings.Contains(e.Message, token) {
			t.Errorf("%s: told %+v", name, e)
		}
		if code := s.closed(); code != protocol.CloseSessionGone {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
}

func TestTheFirstWord(t *testing.T) {
	g := serve(t, nil)
	s := g.open2()
	for _, c := range []struct {
		sent, ref string
		code      protocol.Code
	}{
		{`{"type":"input_text.submit","payload":{"text":"hello"},"id":"a"}`, "a", protocol.CodeInvalidMessage},
		{`{`, "", protocol.CodeInvalidJSON},
		{`{"type":"session.start","payload":{"turns":5},"id":"b"}`, "b", protocol.CodeInvalidMessage},
		{`{"type":"session.start","payload":{"turns":"magic"},"id":"c"}`, "c", protocol.CodeUnsupported},
		{`{"type":"session.start","payload":{"room":"r"},"id":"d"}`, "d", protocol.CodeUnsupported},
	} {
		s.send(c.sent)
		if e, ok := s.envelope().Message.(protocol.Error); !ok || e.Code != c.code || e.Ref != c.ref {
			t.Errorf("%s: told %+v", c.sent, e)
		}
	}
	if ready := s.begin(start); ready.SessionID == "" {
		t.Error("after all that it could not begin")
	}
}

// TestSocketsThatNeverSpeak are closed with 1008, take no session, and disturb nobody.
func TestSocketsThatNeverSpeak(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.FirstWord, c.MaxSessions = time.Second, 2 })
	neighbour := g.open()
	neighbour.greeted()
	var mute []socket
	for range 1000 {
		mute = append(mute, g.open2())
	}
	if n := neighbour.mockedTurn(); n != 8 {
		t.Errorf("the neighbour was disturbed: %d events", n)
	}
	g.open().greeted() // of version 1, which waits for no first word: the second session is free
	for _, s := range mute {
		if code := s.closed(); code != protocol.ClosePolicyViolation {
			t.Fatalf("closed with %d, want 1008", code)
		}
	}
}

// TestALateResume: what a client sent on a connection that it has given up may arrive after it resumed in another one. It
// takes nothing over.
func TestALateResume(t *testing.T) {
	g := serve(t, nil)
	first := g.open2()
	ready := first.begin(start)
	given, kept := g.open2(), g.open2()
	kept.begin(resume(ready.ResumeToken, 1))
	given.send(resume(ready.ResumeToken, 1))
	if code := given.closed(); code != protocol.CloseTakenOver {
		t.Errorf("the connection that was given up was closed with %d, want 4002", code)
	}
	kept.send(`{"type":"session.close","payload":{}}`)
	if code := kept.closed(); code != 1000 {
		t.Errorf("the one that was kept was closed with %d", code)
	}
}

// TestTakeOverInALoop: two clients that take the session from each other lose none of it.
func TestTakeOverInALoop(t *testing.T) {
	g := serve(t, nil)
	s := g.open2()
	token := s.begin(start).ResumeToken
	for range 50 {
		next := g.open2()
		if r := next.begin(resume(token, 0)); !r.Recovered {
			t.Fatal("not recovered")
		}
		if code := s.closed(); code != protocol.CloseTakenOver {
			t.Fatalf("closed with %d", code)
		}
		s = next
	}
	s.send(`{"type":"mocked.turn.trigger","payload":{}}`)
	s.untilIdle(0)
}

func TestAFullGatewayInVersion2(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.MaxSessions = 1 })
	g.open().greeted()
	s := g.open2()
	s.send(start)
	if e, ok := s.envelope().Message.(protocol.Error); !ok || e.Code != protocol.CodeSessionLimit || e.Ref != "first" {
		t.Errorf("told %+v", e)
	}
	if code := s.closed(); code != protocol.CloseSessionLimit {
		t.Errorf("closed with %d", code)
	}
}
