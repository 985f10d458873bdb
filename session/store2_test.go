package session_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/turn/deterministic"
)

// After a crash behind any event, what the client has been shown in both processes obeys the rules of one session, a
// turn that was asked for is answered or told to be broken off, and the conversation holds every exchange once. The
// state may be as old as the last event or one save newer.
func TestACrashAtEveryEventObeysTheRules(t *testing.T) {
	var events [][]byte
	states := map[int][]byte{} // after so many events
	synctest.Test(t, func(t *testing.T) {
		var m memory
		c := start(t, m.configOf(varied))
		c.onSend = func(e session.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			states[len(m.events)] = m.state
		}
		c.join()
		for _, what := range []protocol.Message{typed("works"), typed("fails"), trigger, typed("slow"), typed("hello")} {
			c.send(what)
			time.Sleep(150 * time.Millisecond) // in the middle of the slow one and of the fixed one
		}
		time.Sleep(time.Second)
		synctest.Wait()
		events = slices.Clone(m.events)
	})
	for k := 1; k <= len(events); k++ {
		for _, state := range [][]byte{states[k], states[min(k+1, len(events))]} {
			synctest.Test(t, func(t *testing.T) {
				crashed := memory{events: slices.Clone(events[:k]), state: state}
				s, _, err := session.Restore(crashed.configOf(varied), session.Stored{ID: sessionID, State: crashed.state, Events: crashed.events})
				if err != nil {
					t.Fatal(err)
				}
				go s.Run(t.Context())
				c := &client{t: t, session: s}
				if err := s.Join(t.Context(), c, session.Hello{Resume: true, Token: token}); err != nil {
					t.Fatal(err)
				}
				c.send(protocol.HistoryGet{})
				synctest.Wait()
				history := c.shown[len(c.shown)-1].Message.(protocol.History)
				_ = s.Receive(t.Context(), c, "", protocol.SessionClose{}) // it may have ended before Receive looks again
				synctest.Wait()
				var all []session.Event
				for _, e := range c.shown {
					if e.Seq != 0 {
						all = append(all, e)
					}
				}
				rules2(t, all)
				asked, told := remembers2(all[:k]), 0
				for _, e := range all[k:] {
					if broken, ok := e.Message.(protocol.Error); ok && broken.Code == protocol.CodeTurnInterrupted {
						told++
					}
				}
				if want := min(1, asked.waiting); told != want {
					t.Errorf("it is told %d times that a turn was broken off, want %d", told, want)
				}
				var got []string
				for _, item := range history.Items {
					if item.Role == "user" {
						got = append(got, item.Text)
					}
				}
				if !slices.Equal(got, asked.texts) {
					t.Errorf("the conversation is %q, want %q", got, asked.texts)
				}
			})
			if t.Failed() {
				t.Fatalf("after event %d, %s", k, events[k-1])
			}
		}
	}
}

func (m *memory) configOf(e engine) session.Config {
	cfg := m.config()
	cfg.Agents, cfg.Mock = agents(e), deterministic.Engine{Pace: 50 * time.Millisecond}
	return cfg
}

// questions are what was asked of the agent, and whether something that was asked is not answered.
type questions struct {
	texts   []string
	waiting int
}

func remembers2(events []session.Event) (q questions) {
	text := ""
	for _, e := range events {
		switch m := e.Message.(type) {
		case protocol.TranscriptFinal:
			text, q.waiting = m.Text, 1
		case protocol.ResponseCreated:
			if text != (deterministic.Engine{}).Question() {
				q.texts = append(q.texts, text)
			}
		case protocol.ResponseCompleted, protocol.ResponseCancelled:
			q.waiting = 0
		}
	}
	return q
}
