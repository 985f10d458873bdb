package session_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"vela/session"
	"vela/turn"
)

// remembers is an engine that keeps every request, and answers as the plan for that turn says.
type remembers struct {
	requests []turn.Request
	plan     func(n int) engine
}

func (r *remembers) engine() engine {
	return func(ctx context.Context, req turn.Request, yield yieldSignal) {
		r.requests = append(r.requests, req)
		r.plan(len(r.requests))(ctx, req, yield)
	}
}

// texts is a history in one line a message.
func texts(history []turn.Message) []string {
	var lines []string
	for _, m := range history {
		line := string(m.Role) + ": " + m.Text
		if m.Interrupted {
			line += " (interrupted)"
		}
		lines = append(lines, line)
	}
	return lines
}

// The agent is told what was asked and answered before, in order: of an answer that failed or was cancelled, as much as
// was shown.
func TestTheAgentKnowsTheFinishedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(n int) engine {
			switch n {
			case 2:
				return engines["fails"].(engine)
			case 3:
				return engines["falls silent"].(engine)
			case 4:
				return engines["stops"].(engine)
			}
			return says("Answer", fmt.Sprintf(" %d", n))
		}}
		c := connect(t, agentBacked(recogniser(counts), r.engine()))
		for range 6 {
			c.send(piece, commit)
			synctest.Wait()
			c.send(cancel, trigger) // the cancel is for the one that falls silent
			time.Sleep(time.Second)
		}
		c.next()
		if len(r.requests) != 6 {
			t.Fatalf("%d requests", len(r.requests))
		}
		cut := []string{"user: heard 1", "assistant: Once upon (interrupted)"}
		for i, want := range [][]string{
			nil,
			{"user: heard 1", "assistant: Answer 1"},
			slices.Concat([]string{"user: heard 1", "assistant: Answer 1"}, cut),
			slices.Concat([]string{"user: heard 1", "assistant: Answer 1"}, cut, cut),
			slices.Concat([]string{"user: heard 1", "assistant: Answer 1"}, cut, cut, cut),
			slices.Concat([]string{"user: heard 1", "assistant: Answer 1"}, cut, cut, cut, []string{"user: heard 1", "assistant: Answer 5"}),
		} {
			req := r.requests[i]
			if got := texts(req.History); !slices.Equal(got, want) {
				t.Errorf("turn %d: the history is %q, want %q", i+1, got, want)
			}
			if req.SessionID != sessionID || req.Text != "heard 1" || req.Ask == nil {
				t.Errorf("turn %d: the request is %+v", i+1, req)
			}
			for _, m := range req.History {
				if m.At.IsZero() || m.At.After(time.Now()) {
					t.Errorf("turn %d: %q was said at %v", i+1, m.Text, m.At)
				}
			}
		}
		ids := map[string]bool{}
		for _, req := range r.requests {
			ids[req.TurnID] = true
		}
		if len(ids) != 6 {
			t.Errorf("six turns share the ids %v", ids)
		}
	})
}

// Fifty exchanges are remembered, the latest ones.
func TestTheHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(n int) engine { return says(fmt.Sprint(n)) }}
		c := connect(t, agentBacked(hears("hello"), r.engine()))
		for range 53 {
			c.send(piece, commit)
			synctest.Wait()
		}
		for i, req := range r.requests {
			n := min(2*i, 100)
			if len(req.History) != n {
				t.Fatalf("turn %d: %d messages, want %d", i+1, len(req.History), n)
			}
			for j := 0; j < n; j += 2 {
				user, assistant := req.History[j], req.History[j+1]
				if answer := fmt.Sprint(i - n/2 + j/2 + 1); user.Role != turn.User || assistant.Role != turn.Assistant || assistant.Text != answer {
					t.Fatalf("turn %d: message %d is %v, want an answer of %s", i+1, j+1, assistant, answer)
				}
			}
		}
	})
}

// What an engine was handed stays as it is while the conversation goes on, and an engine that appends to it writes
// into nothing that others read.
func TestTheHistoryIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(n int) engine {
			return func(ctx context.Context, req turn.Request, yield yieldSignal) {
				mine := append(req.History, turn.Message{Role: turn.User, Text: "scribbled"})
				mine[len(mine)-1].Text = "scribbled again"
				says(fmt.Sprint(n))(ctx, req, yield)
			}
		}}
		c := connect(t, agentBacked(hears("hello"), r.engine()))
		var before [][]turn.Message
		for range 60 {
			c.send(piece, commit)
			synctest.Wait()
			before = append(before, slices.Clone(r.requests[len(r.requests)-1].History))
		}
		for i, req := range r.requests {
			if !reflect.DeepEqual(req.History, before[i]) {
				t.Fatalf("turn %d: its history has changed since", i+1)
			}
			if cap(req.History) != len(req.History) {
				t.Fatalf("turn %d: there is room behind its history that others may read", i+1)
			}
		}
	})
}

// The fixed turn knows nothing of the conversation, so that it stays the same.
func TestTheFixedTurnHasNoHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{}
		cfg := agentBacked(hears("hello"), says("hi"))
		cfg.Mock = mocked{engine: func(ctx context.Context, req turn.Request, yield yieldSignal) {
			r.requests = append(r.requests, req)
			says("mocked")(ctx, req, yield)
		}}
		c := connect(t, cfg)
		c.send(piece, commit)
		c.next()
		c.send(trigger)
		c.expect("listening", ". question", "thinking", "speaking", "> mocked", "completed", "idle")
		if len(r.requests) != 1 || len(r.requests[0].History) != 0 || r.requests[0].Text != "question" {
			t.Errorf("requests %+v", r.requests)
		}
	})
}

// mocked is a [session.Mock] with an engine of the test's own.
type mocked struct{ engine }

func (mocked) Question() string     { return "question" }
func (mocked) Partial(n int) string { return fmt.Sprint("partial ", n) }
func (mocked) Final(n int) string   { return fmt.Sprint("final ", n) }

var _ session.Mock = mocked{}
