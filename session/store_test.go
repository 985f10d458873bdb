package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

// memory is a [session.Store] that outlives its session.
type memory struct {
	mu      sync.Mutex
	state   []byte
	events  [][]byte
	deleted bool
	full    bool
}

func (m *memory) Append(_ context.Context, seq uint64, event []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("no space left on device")
	}
	if seq != uint64(len(m.events))+1 {
		return fmt.Errorf("number %d after %d", seq, len(m.events))
	}
	m.events = append(m.events, append([]byte(nil), event...))
	return nil
}

func (m *memory) Save(_ context.Context, state []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = append([]byte(nil), state...)
	return nil
}

func (m *memory) Delete(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = true
	return nil
}

const token = "a-token-that-resumes"

func (m *memory) config() session.Config {
	return session.Config{
		Version: 2, Token: token, Turns: session.Agent, Agents: agents(echo.Engine{}),
		Mock: deterministic.Engine{Pace: 100 * time.Millisecond}, Store: m,
	}
}

// restore is the next process: it runs the session again and joins it as a client that resumes.
func (m *memory) restore(t *testing.T, after uint64) *client {
	t.Helper()
	return m.restoreAs(t, after, func(*session.Config) {})
}

// restoreAs is restore in a process that has more than others.
func (m *memory) restoreAs(t *testing.T, after uint64, change func(*session.Config)) *client {
	t.Helper()
	c := m.runAgain(t, change)
	c.resume(session.Hello{Token: token, After: after})
	return c
}

// runAgain is the next process, to which no client has come yet.
func (m *memory) runAgain(t *testing.T, change func(*session.Config)) *client {
	t.Helper()
	cfg := m.config()
	change(&cfg)
	s, hash, err := session.Restore(cfg, session.Stored{ID: sessionID, State: m.state, Events: m.events})
	if err != nil {
		t.Fatal(err)
	}
	if hash != session.HashToken(token) {
		t.Fatal("the token's hash was not kept")
	}
	if strings.Contains(string(m.state), token) {
		t.Fatalf("the token was kept: %s", m.state)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &client{t: t, session: s, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(nil); <-c.ended })
	return c
}

// resume joins as a client that was here before.
func (c *client) resume(h session.Hello) {
	c.t.Helper()
	h.Resume = true
	if err := c.session.Join(c.t.Context(), c, h); err != nil {
		c.t.Fatal(err)
	}
}

// TestEveryEventIsKeptBeforeItIsShown: at any moment a client knows nothing that a crash would lose.
func TestEveryEventIsKeptBeforeItIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		c := start(t, m.config())
		c.onSend = func(e session.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if e.Seq > uint64(len(m.events)) {
				t.Errorf("event %d was shown, %d are kept", e.Seq, len(m.events))
			}
		}
		c.join()
		c.send(protocol.InputTextSubmit{Text: "hello"}, protocol.MockedTurnTrigger{})
		time.Sleep(time.Second)
	})
}

// TestWhatIsGoneAfterARestart: a conversation goes on where its agent and its voice are not configured any more.
func TestWhatIsGoneAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		cfg := m.config()
		cfg.Agents = append(cfg.Agents, session.NamedEngine{Name: "other", Engine: echo.Engine{}})
		cfg.Voices = named(&drone{rate: 24000})
		c := start(t, cfg)
		c.join()
		ask := withVoice
		ask.Agent = "other"
		c.send(ask, protocol.InputTextSubmit{Text: "hello"})
		time.Sleep(time.Minute)
		c.cancel(session.ErrShutdown)
		<-c.ended
		next := m.restore(t, 0)
		synctest.Wait()
		ready, ok := next.shown[0].Message.(protocol.SessionReady)
		if !ok || ready.Agent != "test" || ready.Audio.Output != nil || !ready.Recovered {
			t.Errorf("it was resumed as %+v", next.shown[0].Message)
		}
	})
}

// TestACrashAtEveryEvent kills the process, as it were, after every event of two turns, and resumes in the next one:
// the client's events go on without a gap, the turn that ran is broken off, and the conversation is what was shown.
func TestACrashAtEveryEvent(t *testing.T) {
	for k := 1; ; k++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			var m memory
			c := start(t, m.config())
			c.join()
			c.send(protocol.InputTextSubmit{Text: "good morning"})
			synctest.Wait()
			c.send(protocol.MockedTurnTrigger{})
			time.Sleep(time.Second)
			synctest.Wait()
			m.mu.Lock()
			done = k > len(m.events)
			crashed := memory{state: m.state, events: slices.Clone(m.events[:min(k, len(m.events))])}
			m.mu.Unlock()
			if done {
				return
			}
			d := crashed.restore(t, uint64(k))
			synctest.Wait()
			checkResumed(t, k, d)
			d.send(protocol.InputTextSubmit{Text: "and again"})
			synctest.Wait()
			if last := d.shown[len(d.shown)-1]; last.Message != (protocol.SessionState{Value: protocol.Idle}) {
				t.Errorf("after event %d: the next turn ends with %v", k, last.Message)
			}
		})
		if done {
			return
		}
	}
}

// checkResumed looks at what a client sees that has k events and comes back after a crash.
func checkResumed(t *testing.T, k int, c *client) {
	t.Helper()
	ready, ok := c.shown[0].Message.(protocol.SessionReady)
	if !ok || !ready.Resumed || !ready.Recovered || ready.ResumeToken != token {
		t.Fatalf("after event %d: greeted with %+v", k, c.shown[0].Message)
	}
	open := ""
	for i, e := range c.shown[1:] {
		if want := uint64(k + 1 + i); e.Seq != want {
			t.Fatalf("after event %d: number %d where %d is due", k, e.Seq, want)
		}
		switch m := e.Message.(type) {
		case protocol.Error:
			open = string(m.Code)
		case protocol.ResponseCancelled:
			if open != string(protocol.CodeTurnInterrupted) || m.Reason != protocol.CancelError {
				t.Errorf("after event %d: cancelled with %+v after %q", k, m, open)
			}
		case protocol.TurnMetrics: // of the turn that was broken off
		case protocol.SessionState:
			if m.Value != protocol.Idle {
				t.Errorf("after event %d: restored into %s", k, m.Value)
			}
		default:
			t.Errorf("after event %d: %s", k, e.Message.Type())
		}
	}
}

// TestTheConversationIsKept: the history goes on in the next process.
func TestTheConversationIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		c := start(t, m.config())
		c.join()
		c.send(protocol.InputTextSubmit{Text: "good morning"})
		synctest.Wait()
		c.cancel(session.ErrShutdown)
		<-c.ended
		if m.deleted {
			t.Fatal("a session that the gateway's end ended was deleted")
		}
		if !strings.HasPrefix(c.closed[0], "1001 ") {
			t.Errorf("closed with %q", c.closed)
		}
		d := m.restore(t, uint64(len(m.events)))
		d.send(protocol.HistoryGet{})
		synctest.Wait()
		h, ok := d.shown[len(d.shown)-1].Message.(protocol.History)
		if !ok || len(h.Items) != 2 || h.Items[0].Text != "good morning" || h.Items[1].Text != "You said: good morning" {
			t.Errorf("the history is %+v", h)
		}
	})
}

// A restored session can be resumed for as long as one that was left alone: from the start of its process, and no longer.
func TestARestoredSessionWaitsForItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		c := start(t, m.config())
		c.join()
		c.cancel(session.ErrShutdown)
		<-c.ended
		time.Sleep(time.Hour) // nothing runs
		again := func() *client { return m.runAgain(t, func(cfg *session.Config) { cfg.Window = time.Minute }) }
		back := again()
		time.Sleep(time.Minute - time.Millisecond)
		back.resume(session.Hello{Token: token})
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(back.closed) != 0 || m.deleted {
			t.Fatalf("who came in time is closed with %q", back.closed)
		}
		back.cancel(session.ErrShutdown)
		<-back.ended
		began := time.Now()
		<-again().ended
		if d := time.Since(began); d != time.Minute || !m.deleted {
			t.Errorf("it waited %v for nobody, deleted: %v", d, m.deleted)
		}
	})
}

// What a token allows holds after a restart, too.
func TestARestartKeepsWhichTurnsThereMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		cfg := m.config()
		cfg.Only = []session.Turns{session.Deterministic}
		c := start(t, cfg)
		c.join()
		c.cancel(session.ErrShutdown)
		<-c.ended
		again := m.restore(t, 0)
		again.next()
		again.send(protocol.SessionStart{Turns: string(session.Agent)})
		again.expect("! unsupported")
	})
}

func TestWhatIsOverIsDeleted(t *testing.T) {
	for name, end := range map[string]func(*client){
		"closed":    func(c *client) { c.send(protocol.SessionClose{}) },
		"idle":      func(*client) { time.Sleep(11 * time.Minute) },
		"abandoned": func(c *client) { c.session.Leave(c); time.Sleep(3 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m memory
				c := start(t, m.config())
				c.join()
				end(c)
				<-c.ended
				if !m.deleted {
					t.Error("it is still kept")
				}
			})
		})
	}
}

// TestAFullDisk: the client is told once, and the conversation goes on.
func TestAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		c := start(t, m.config())
		c.join()
		synctest.Wait()
		m.mu.Lock()
		m.full = true
		m.mu.Unlock()
		c.send(protocol.InputTextSubmit{Text: "one"}, protocol.InputTextSubmit{Text: "two"})
		synctest.Wait()
		told := 0
		for _, e := range c.shown {
			if m, ok := e.Message.(protocol.Error); ok {
				told++
				if m.Code != protocol.CodeInternal || !strings.Contains(m.Message, "disk") {
					t.Errorf("told %+v", m)
				}
			}
		}
		if last := c.shown[len(c.shown)-1]; told != 1 || last.Message != (protocol.SessionState{Value: protocol.Idle}) {
			t.Errorf("told %d times, ended with %v", told, last.Message)
		}
	})
}

func TestWhatCannotBeRestored(t *testing.T) {
	event := func(text string) [][]byte { return [][]byte{[]byte(text)} }
	for name, from := range map[string]session.Stored{
		"no state":   {ID: sessionID},
		"bad state":  {ID: sessionID, State: []byte(`{"token":5}`)},
		"bad event":  {ID: sessionID, State: []byte(`{}`), Events: event(`{`)},
		"a gap":      {ID: sessionID, State: []byte(`{}`), Events: append(event(`{"type":"response.completed","payload":{},"seq":1,"ts":1}`), event(`{"type":"response.completed","payload":{},"seq":3,"ts":1}`)...)},
		"no numbers": {ID: sessionID, State: []byte(`{}`), Events: event(`{"type":"response.completed","payload":{}}`)},
	} {
		if _, _, err := session.Restore(session.Config{Mock: deterministic.Engine{}}, from); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}
