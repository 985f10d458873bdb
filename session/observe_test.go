package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/turn"
)

// Whatever becomes of a turn, whoever observes it is shown the question, what the engine yields, and one end.
func TestTurnsAreSignals(t *testing.T) {
	yields := func(err error, payloads ...signal.Payload) engine {
		return func(ctx context.Context, req turn.Request, yield func(signal.Payload, error) bool) {
			for _, p := range payloads {
				if !yield(p, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			<-ctx.Done()
		}
	}
	done := signal.Completion{TaskID: "t1", AgentID: "a", Success: true}
	const asked = `t1 task_dispatch {"taskId":"t1","from":"user","to":"test","description":"hello"}`
	for name, x := range map[string]struct {
		engine engine
		cancel bool
		want   []string
	}{
		"a good one": {
			yields(errors.New("late"), signal.Thinking{AgentID: "a", Content: "hm"}, signal.ToolCall{ToolName: "n", AgentID: "a", CallID: "c"}, delta("hi"), done),
			false, []string{asked, `t1 thinking {"agentId":"a","content":"hm"}`, `t1 tool_call {"toolName":"n","agentId":"a","callId":"c"}`, `t1 text_delta {"agentId":"test","content":"hi"}`, `t1 completion {"taskId":"t1","agentId":"a","success":true}`},
		},
		"one that fails": {
			yields(errSecret, delta("hi")), false,
			[]string{asked, `t1 text_delta {"agentId":"test","content":"hi"}`, `t1 error {"code":"agent_failed","message":"The agent stopped with an error.","severity":"error"}`},
		},
		"one that fails in its own words": {
			yields(wordsError{protocol.CodeAgentUnavailable, "Try later."}), false,
			[]string{asked, `t1 error {"code":"agent_unavailable","message":"Try later.","severity":"error"}`},
		},
		"one that is cancelled": {
			yields(nil, delta("hi")), true,
			[]string{asked, `t1 text_delta {"agentId":"test","content":"hi"}`, `t1 completion {"taskId":"t1","success":false,"result":"client"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				cfg := agentBacked(nil, x.engine)
				cfg.Version = 2
				cfg.Observe = func(o session.Observed) {
					mu.Lock()
					defer mu.Unlock()
					body, err := json.Marshal(o.Payload)
					if err == nil {
						err = signal.CheckPayload(o.Payload.SignalType(), body)
					}
					if err != nil {
						t.Error(err)
					}
					got = append(got, fmt.Sprintf("%s %s %s", o.TurnID, o.Payload.SignalType(), body))
				}
				c := connect(t, cfg)
				c.send(protocol.InputTextSubmit{Text: "hello"})
				synctest.Wait()
				if x.cancel {
					c.send(protocol.ResponseCancel{})
					synctest.Wait()
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, x.want) {
					t.Errorf("got\n%q\nwant\n%q", got, x.want)
				}
			})
		})
	}
}
