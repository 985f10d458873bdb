package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/turn"
)

// uses is an engine that calls a tool for each pair of an input and an output, and says a word.
func uses(pairs ...[2]string) engine {
	return func(_ context.Context, _ turn.Request, yield yieldSignal) {
		for i, p := range pairs {
			id := fmt.Sprint("c", i+1)
			if !yield(signal.ToolCall{ToolName: "read_file", AgentID: "test", CallID: id, Input: json.RawMessage(p[0])}, nil) ||
				!yield(signal.ToolResult{ToolName: "read_file", AgentID: "test", CallID: id, Success: true, Output: json.RawMessage(p[1])}, nil) {
				return
			}
		}
		_ = yield(delta("Done."), nil) && yield(done, nil)
	}
}

// typedTurns types so many turns at a session that r answers, and returns what the client was shown.
func typedTurns(t *testing.T, r *remembers, n int) []session.Event {
	c := connect(t, version2(agentBacked(nil, r.engine())))
	for range n {
		c.send(typed("go on"))
		synctest.Wait()
	}
	return c.shown
}

// What the agent did stands in the conversation with what came of it, beside what it said.
func TestTheAgentKnowsWhatItDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(int) engine {
			return uses([2]string{`{"path":"a"}`, `{"content":"A"}`}, [2]string{`{"path":"b"}`, `{"content":"B"}`})
		}}
		typedTurns(t, r, 2)
		h := r.requests[1].History
		if got := texts(h); !slices.Equal(got, []string{"user: go on", "assistant: Done."}) {
			t.Fatalf("the history is %q", got)
		}
		if len(h[0].Tools) != 0 || len(h[1].Tools) != 2 {
			t.Fatalf("tools %v and %v", h[0].Tools, h[1].Tools)
		}
		for i, want := range []turn.ToolUse{
			{CallID: "c1", Name: "read_file", Input: []byte(`{"path":"a"}`), Output: []byte(`{"content":"A"}`), Success: true},
			{CallID: "c2", Name: "read_file", Input: []byte(`{"path":"b"}`), Output: []byte(`{"content":"B"}`), Success: true},
		} {
			if got := h[1].Tools[i]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("tool call %d is %+v, want %+v", i+1, got, want)
			}
		}
	})
}

// inRounds is an engine that says a word, calls two tools at once and then a third, and ends with another word, or waits.
func inRounds(waits bool) engine {
	state := func(to signal.AgentState) signal.Payload { return signal.AgentStateChange{AgentID: "test", To: to} }
	call := func(id string) signal.Payload {
		return signal.ToolCall{ToolName: "clock", AgentID: "test", CallID: id}
	}
	result := func(id string) signal.Payload {
		return signal.ToolResult{ToolName: "clock", AgentID: "test", CallID: id, Success: true}
	}
	return func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for _, p := range []signal.Payload{
			delta("Let me look."), state(signal.AgentActing), call("c1"), call("c2"), result("c2"), result("c1"),
			state(signal.AgentThinking), state(signal.AgentActing), call("c3"), result("c3"), state(signal.AgentThinking), delta("\nDone."),
		} {
			if !yield(p, nil) {
				return
			}
		}
		if waits {
			<-ctx.Done()
			return
		}
		yield(done, nil)
	}
}

// placed is where the calls of a message stand in its answer.
func placed(m turn.Message) (all []string) {
	for _, u := range m.Tools {
		all = append(all, fmt.Sprint(u.CallID, " in ", u.Round, " after ", u.After))
	}
	return all
}

// Which calls the model made together, and what had been said before them, stays in the conversation: in the session's
// memory, in its store, and where the process was killed in the middle of the answer.
func TestTheAgentKnowsInWhichRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(n int) engine { return inRounds(n == 2) }}
		var m memory
		c := start(t, m.configOf(r.engine()))
		c.join()
		for range 2 {
			c.send(typed("go on"))
			synctest.Wait()
		}
		m.mu.Lock()
		killed := memory{state: m.state, events: slices.Clone(m.events)}
		m.mu.Unlock()
		next := killed.restoreAs(t, uint64(len(killed.events)), func(cfg *session.Config) { cfg.Agents = agents(r.engine()) })
		next.send(typed("go on"))
		synctest.Wait()
		if len(r.requests) != 3 || len(r.requests[2].History) != 4 {
			t.Fatalf("the agent was asked %+v", r.requests)
		}
		want := []string{"c1 in 1 after 12", "c2 in 1 after 12", "c3 in 2 after 12"}
		for name, said := range map[string]turn.Message{
			"in memory": r.requests[1].History[1], "kept": r.requests[2].History[1], "taken up": r.requests[2].History[3],
		} {
			if got := placed(said); !slices.Equal(got, want) {
				t.Errorf("%s: the calls are %q, want %q", name, got, want)
			}
		}
	})
}

// Calls of one round are of one round, even where one has returned before the next is seen to begin.
func TestAFastToolEndsNoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(int) engine { return uses([2]string{`{}`, `{}`}, [2]string{`{}`, `{}`}) }}
		typedTurns(t, r, 2)
		if got, want := placed(r.requests[1].History[1]), []string{"c1 in 0 after 0", "c2 in 0 after 0"}; !slices.Equal(got, want) {
			t.Errorf("the calls are %q, want %q", got, want)
		}
	})
}

// A tool that takes or gives more than a message should hold is shown and remembered without it.
func TestToolOutputIsBounded(t *testing.T) {
	long := `{"content":"` + strings.Repeat("x", 100<<10) + `"}`
	middle := `{"content":"` + strings.Repeat("x", 20<<10) + `"}`
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(int) engine {
			return uses([2]string{long, long}, [2]string{middle, middle}, [2]string{`{}`, `{}`})
		}}
		shown := map[string][2]int{}
		for _, e := range typedTurns(t, r, 2)[:15] {
			switch m := e.Message.(type) {
			case protocol.ToolCall:
				shown[m.CallID] = [2]int{len(m.Input), 0}
			case protocol.ToolResult:
				shown[m.CallID] = [2]int{shown[m.CallID][0], len(m.Output)}
			}
		}
		if want := map[string][2]int{"c1": {2, 0}, "c2": {len(middle), len(middle)}, "c3": {2, 2}}; fmt.Sprint(shown) != fmt.Sprint(want) {
			t.Errorf("inputs and outputs of %v bytes were shown, want %v", shown, want)
		}
		var kept [][2]int
		for _, u := range r.requests[1].History[1].Tools {
			kept = append(kept, [2]int{len(u.Input), len(u.Output)})
		}
		if want := [][2]int{{2, 0}, {2, 0}, {2, 2}}; fmt.Sprint(kept) != fmt.Sprint(want) {
			t.Errorf("inputs and outputs of %v bytes were kept, want %v", kept, want)
		}
	})
}

// Of a long conversation the oldest tool calls keep their names alone, and what engines were handed stays as it was.
func TestOldToolCallsAreForgotten(t *testing.T) {
	const size = 15 << 10
	body := `{"content":"` + strings.Repeat("x", size) + `"}`
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(int) engine { return uses([2]string{`{"path":"a"}`, body}) }}
		typedTurns(t, r, 40)
		for i, req := range r.requests {
			whole, total := 0, 0
			for k, m := range req.History {
				for _, u := range m.Tools {
					total += len(u.Input) + len(u.Output)
					if u.Name != "read_file" {
						t.Fatalf("turn %d: a call of %q", i+1, u.Name)
					}
					if len(u.Output) > 0 {
						whole++
					} else if whole > 0 {
						t.Fatalf("turn %d: message %d was forgotten before an older one", i+1, k+1)
					}
				}
			}
			if want := min(i, (256<<10)/(len(body)+len(`{"path":"a"}`))); whole != want || total > 256<<10+40*2 {
				t.Fatalf("turn %d: %d outputs and %d bytes are kept, want %d outputs", i+1, whole, total, want)
			}
		}
	})
}

// A call that never returned is remembered as one, and an agent that calls without end fills no memory.
func TestOnlyTheLastCallsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(int) engine {
			return func(_ context.Context, _ turn.Request, yield yieldSignal) {
				for i := range 100 {
					if !yield(signal.ToolCall{ToolName: "dig", AgentID: "test", CallID: fmt.Sprint(i)}, nil) {
						return
					}
				}
				yield(done, nil)
			}
		}}
		typedTurns(t, r, 2)
		h := r.requests[1].History
		if len(h) != 2 || len(h[1].Tools) != 64 || h[1].Tools[0].CallID != "36" || h[1].Tools[63].Success {
			t.Fatalf("the history is %q with %d tool calls", texts(h), len(h[1].Tools))
		}
	})
}

// A question that is about no tool is settled by a person, and not by a tool that returns.
func TestAQuestionAboutNoTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := agentBacked(nil, engine(func(ctx context.Context, req turn.Request, yield yieldSignal) {
			yes := make(chan turn.Answer, 1)
			go func() {
				a, _ := req.Ask(ctx, turn.Question{Name: "sail", Summary: "Set sail?"})
				yes <- a
			}()
			time.Sleep(time.Second) // until it is asked
			yield(signal.ToolResult{ToolName: "dig", AgentID: "test", Success: true}, nil)
			yield(delta(fmt.Sprint((<-yes).Allow)), nil)
			yield(done, nil)
		}))
		cfg.Version = 2
		c := start(t, cfg)
		c.join()
		approvals := true
		c.send(protocol.SessionStart{Approvals: &approvals}, protocol.InputTextSubmit{Text: "sail"})
		time.Sleep(2 * time.Second)
		c.send(protocol.ApprovalAnswer{ApprovalID: "a1.1", Allow: true})
		time.Sleep(time.Second)
		if got := strings.Join(c.next(), " "); !strings.Contains(got, "true") {
			t.Errorf("it came to %s", got)
		}
	})
}

// An answer for good is for the agent that asked: another one's tool of the same name may work elsewhere.
func TestAnAnswerForGoodIsForOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := engine(func(ctx context.Context, req turn.Request, yield yieldSignal) {
			_, _ = req.Ask(ctx, turn.Question{CallID: "1", Name: "write_file", Summary: "Write?"})
			yield(done, nil)
		})
		cfg := agentBacked(nil, asks)
		cfg.Version = 2
		cfg.Agents = append(cfg.Agents, session.NamedEngine{Name: "other", Engine: asks})
		c := start(t, cfg)
		c.join()
		synctest.Wait()
		approvals := true
		var asked []string
		for _, agent := range []string{"test", "test", "other", "other", "test"} {
			seen := len(c.shown)
			c.send(protocol.SessionStart{Agent: agent, Approvals: &approvals}, typed("go on"))
			synctest.Wait()
			for _, e := range c.shown[seen:] {
				if m, ok := e.Message.(protocol.ApprovalRequest); ok {
					asked = append(asked, agent+" "+m.ApprovalID)
					c.send(protocol.ApprovalAnswer{ApprovalID: m.ApprovalID, Allow: true, Remember: true})
				}
			}
			synctest.Wait()
		}
		if want := []string{"test a1.1", "other a3.1"}; !slices.Equal(asked, want) {
			t.Errorf("asked were %q, want %q", asked, want)
		}
	})
}
