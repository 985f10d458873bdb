package agent_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/enginetest"
	"vela/turn/tool"
)

// answers is a model made of a function: what it says in the round with this number, from 0, of a turn. Beside payloads
// there may be errors, which end the answer, and durations, which it waits for.
type answers func(round int, p agent.Prompt) []any

// Stream implements [agent.Model].
func (m answers) Stream(ctx context.Context, p agent.Prompt) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		for _, item := range m(roundOf(p), p) {
			if ctx.Err() != nil {
				yield(nil, fmt.Errorf("model: read stream: %w", ctx.Err()))
				return
			}
			switch item := item.(type) {
			case time.Duration:
				select {
				case <-time.After(item):
				case <-ctx.Done():
				}
			case error:
				yield(nil, item)
				return
			case signal.Payload:
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// roundOf counts the rounds of tools since the user last said something.
func roundOf(p agent.Prompt) int {
	n := 0
	for _, m := range slices.Backward(p.Messages) {
		if m.Role == turn.User && len(m.Results) == 0 {
			break
		}
		if len(m.Results) > 0 {
			n++
		}
	}
	return n
}

func text(s string) signal.TextDelta { return signal.TextDelta{Content: s} }

func callOf(id, name, input string) signal.ToolCall {
	return signal.ToolCall{CallID: id, ToolName: name, Input: json.RawMessage(input)}
}

// recorded is a model that keeps its prompts.
type recorded struct {
	answers
	mu      sync.Mutex
	prompts []agent.Prompt
}

func (r *recorded) Stream(ctx context.Context, p agent.Prompt) iter.Seq2[signal.Payload, error] {
	r.mu.Lock()
	r.prompts = append(r.prompts, p)
	r.mu.Unlock()
	return r.answers.Stream(ctx, p)
}

// tools are functions by name.
type tools map[string]func(ctx context.Context, c tool.Call) (tool.Result, error)

// Definitions implements [tool.Caller].
func (t tools) Definitions() []tool.Definition {
	var all []tool.Definition
	for name := range t {
		all = append(all, tool.Definition{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	slices.SortFunc(all, func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Call implements [tool.Caller].
func (t tools) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if do := t[c.Name]; do != nil {
		return do(ctx, c)
	}
	return tool.Result{}, fmt.Errorf("there is no tool %q", c.Name)
}

// say is a tool that returns its input after a while.
func say(after time.Duration) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		select {
		case <-time.After(after):
			return tool.Result{Content: "got " + string(c.Input)}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
}

// asks are rules that ask about these tools and let every other run.
func asks(names ...string) tool.Rules {
	r := tool.Rules{Default: tool.Allow, Tools: map[string]tool.Rule{}}
	for _, name := range names {
		r.Tools[name] = tool.Ask
	}
	return r
}

func newAgent(t testing.TB, cfg agent.Config) *agent.Agent {
	t.Helper()
	cfg.ID = cmp.Or(cfg.ID, "a")
	cfg.Rules.Default = cmp.Or(cfg.Rules.Default, tool.Allow)
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run is everything that an engine yields, and its error.
func run(ctx context.Context, e turn.Engine, req turn.Request) (all []signal.Payload, failed error) {
	for p, err := range e.Run(ctx, req) {
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// of are the payloads of one type.
func of[P signal.Payload](all []signal.Payload) []P {
	var some []P
	for _, p := range all {
		if p, ok := p.(P); ok {
			some = append(some, p)
		}
	}
	return some
}

func spokenText(all []signal.Payload) string {
	var s string
	for _, d := range of[signal.TextDelta](all) {
		s += d.Content
	}
	return s
}

// busy is a model that thinks, talks and calls several tools in two rounds, then answers.
var busy = answers(func(round int, p agent.Prompt) []any {
	usage := signal.TokenUsage{PromptTokens: 3, CompletionTokens: 4, Model: "m"}
	switch round {
	case 0:
		return []any{
			signal.Thinking{Content: "hm"}, time.Millisecond, text("Let me "), text("look."),
			callOf("0", "slow", `{"n":1}`), callOf("1", "quick", `{"n":2}`), callOf("2", "nope", `{}`), usage,
		}
	case 1:
		return []any{callOf("0", "quick", `{"n":`), callOf("", "risky", `{}`), time.Millisecond, usage}
	}
	return []any{text("It is "), time.Millisecond, text("noon."), usage}
})

func busyAgent(t *testing.T) turn.Engine {
	return newAgent(t, agent.Config{Model: busy, Rules: asks("risky"), MaxParallel: 2, Tools: tools{
		"slow": say(3 * time.Millisecond), "quick": say(time.Millisecond), "risky": say(0),
	}})
}

func TestEngine(t *testing.T) {
	history := []turn.Message{
		{Role: turn.User, Text: "hello"},
		{Role: turn.Assistant, Text: "hi", Tools: []turn.ToolUse{{CallID: "0", Name: "quick", Input: json.RawMessage(`{}`)}}},
		{Role: turn.User, Text: "and then"},
	}
	req := turn.Request{SessionID: "s", TurnID: "t", Text: "what time is it", History: history}
	broken := errors.New("broken")
	failing := func(when int, p ...any) func(*testing.T) turn.Engine {
		return func(t *testing.T) turn.Engine {
			return newAgent(t, agent.Config{Tools: tools{"quick": say(time.Millisecond)}, Model: answers(func(round int, q agent.Prompt) []any {
				if round == when {
					return p
				}
				return []any{text("one"), callOf("0", "quick", `{}`)}
			})})
		}
	}
	plain := func(t *testing.T) turn.Engine {
		return newAgent(t, agent.Config{Model: answers(func(int, agent.Prompt) []any { return []any{text("It is noon.")} })})
	}
	for name, s := range map[string]enginetest.Suite{
		"that uses tools":                 {New: busyAgent},
		"that only talks":                 {New: plain},
		"whose model fails at once":       {New: failing(0, broken), Fails: true},
		"whose model fails in the middle": {New: failing(1, text("two"), time.Millisecond, broken), Fails: true},
		"that says nothing":               {New: failing(0), Fails: true},
		"that takes another's place": {New: func(t *testing.T) turn.Engine {
			return turn.Fallback(nil, failing(0, signal.Thinking{Content: "hm"}, time.Millisecond, broken)(t), busyAgent(t))
		}},
		"that has nobody to take its place": {Fails: true, New: func(t *testing.T) turn.Engine {
			return turn.Fallback(nil, failing(0, broken)(t), failing(1, broken)(t), plain(t))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s.Request, s.Bubble = req, true
			s.Run(t)
		})
	}
}

func TestNew(t *testing.T) {
	model := answers(func(int, agent.Prompt) []any { return nil })
	for name, cfg := range map[string]agent.Config{
		"no ID":                {Model: model},
		"no model":             {ID: "a"},
		"negative rounds":      {ID: "a", Model: model, MaxRounds: -1},
		"negative time":        {ID: "a", Model: model, MaxTime: -1},
		"negative parallelism": {ID: "a", Model: model, MaxParallel: -1},
		"negative results":     {ID: "a", Model: model, MaxResult: -1},
		"negative budget":      {ID: "a", Model: model, Budget: -1},
		"rules that are none":  {ID: "a", Model: model, Rules: tool.Rules{Default: "maybe"}},
	} {
		if _, err := agent.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := agent.New(agent.Config{ID: "a", Model: model}); err != nil {
		t.Error(err)
	}
}
