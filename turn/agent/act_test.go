package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/tool"
)

// once is a model that calls all these tools at once, by name, then answers.
func once(names ...string) *recorded {
	return &recorded{answers: func(round int, p agent.Prompt) []any {
		if round > 0 {
			return []any{text("Done.")}
		}
		var said []any
		for i, name := range names {
			said = append(said, callOf(fmt.Sprint(i), name, fmt.Sprintf(`{"n":%d}`, i)))
		}
		return said
	}}
}

// resultsOf are the results that the model was given, as "id content".
func (r *recorded) resultsOf(t *testing.T) []string {
	t.Helper()
	last := r.prompts[len(r.prompts)-1].Messages
	var all []string
	for _, got := range last[len(last)-1].Results {
		all = append(all, got.CallID+" "+got.Content)
	}
	return all
}

// Tools of one round run at the same time: each of these waits for the other. However they end, the model gets their
// results in the order of its calls.
func TestToolsRunInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := make(chan struct{}), make(chan struct{})
		meet := tools{
			"a": func(context.Context, tool.Call) (tool.Result, error) {
				close(first)
				<-second
				time.Sleep(time.Second)
				return tool.Result{Content: "a"}, nil
			},
			"b": func(context.Context, tool.Call) (tool.Result, error) {
				<-first
				close(second)
				return tool.Result{Content: "b"}, nil
			},
		}
		model := once("a", "b")
		got, err := run(context.Background(), newAgent(t, agent.Config{Model: model, Tools: meet}), turn.Request{Text: "go"})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"0 a", "1 b"}; !slices.Equal(model.resultsOf(t), want) {
			t.Errorf("the model was given %q, want %q", model.resultsOf(t), want)
		}
		if r := of[signal.ToolResult](got); len(r) != 2 || r[0].ToolName != "b" || r[1].ToolName != "a" {
			t.Errorf("the results were told as %+v, want b's first", r)
		}
	})
}

// An input that is no JSON object reaches no tool. The model is told so, and is shown a call that a vendor takes; whoever
// watches sees what it wrote.
func TestAnInputThatIsNoObject(t *testing.T) {
	ran := one{tool.Definition{Name: "clock", Parameters: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		t.Errorf("the tool was run with %s", input)
		return tool.Result{}, nil
	}}
	set, err := tool.NewSet(ran)
	if err != nil {
		t.Fatal(err)
	}
	model := &recorded{answers: func(round int, _ agent.Prompt) []any {
		if round > 0 {
			return []any{text("Done.")}
		}
		return []any{callOf("c", "clock", `{"at": noon}`)}
	}}
	got, err := run(context.Background(), newAgent(t, agent.Config{Model: model, Tools: set}), turn.Request{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"c The input of clock is not a JSON object. Call it again with one."}; !slices.Equal(model.resultsOf(t), want) {
		t.Errorf("the model was given %q, want %q", model.resultsOf(t), want)
	}
	last := model.prompts[1].Messages
	if back := last[len(last)-2].Calls; len(back) != 1 || string(back[0].Input) != "{}" {
		t.Errorf("its call goes back as %s", back)
	}
	if calls := of[signal.ToolCall](got); len(calls) != 1 || string(calls[0].Input) != `{"input":"{\"at\": noon}"}` {
		t.Errorf("it was shown as %s", calls)
	}
}

// one is a tool made of a function.
type one struct {
	definition tool.Definition
	run        func(context.Context, json.RawMessage) (tool.Result, error)
}

func (o one) Definition() tool.Definition { return o.definition }
func (o one) Run(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	return o.run(ctx, input)
}

// A result is told while other tools still run.
func TestResultsAreToldAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, agent.Config{Model: once("slow", "quick"), Tools: tools{"slow": say(time.Minute), "quick": say(time.Second)}})
		began := time.Now()
		for p := range a.Run(context.Background(), turn.Request{Text: "go"}) {
			if r, ok := p.(signal.ToolResult); ok && r.ToolName == "quick" && time.Since(began) != time.Second {
				t.Errorf("told after %v", time.Since(began))
			}
		}
	})
}

func TestParallelToolsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		work := func(context.Context, tool.Call) (tool.Result, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(time.Second)
			return tool.Result{Content: "ok"}, nil
		}
		model := once(slices.Repeat([]string{"work"}, 10)...)
		began := time.Now()
		if _, err := run(context.Background(), newAgent(t, agent.Config{Model: model, MaxParallel: 3, Tools: tools{"work": work}}), turn.Request{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		if most.Load() != 3 || time.Since(began) != 4*time.Second || len(model.resultsOf(t)) != 10 {
			t.Errorf("%d at once, %v, %q", most.Load(), time.Since(began), model.resultsOf(t))
		}
	})
}

func TestCallsOfOneAnswerAreBounded(t *testing.T) {
	model := once(slices.Repeat([]string{"quick"}, 100)...)
	got, err := run(context.Background(), newAgent(t, agent.Config{Model: model, Tools: tools{"quick": say(0)}}), turn.Request{Text: "go"})
	if n := len(of[signal.ToolCall](got)); err != nil || n != 64 || len(model.resultsOf(t)) != 64 {
		t.Errorf("%d calls, %d results, %v", n, len(model.resultsOf(t)), err)
	}
}

// A tool that panics has failed, and the others have not. The operator sees why, the model does not.
func TestAToolThatPanics(t *testing.T) {
	var log bytes.Buffer
	model := once("oops", "quick")
	a := newAgent(t, agent.Config{Model: model, Log: slog.New(slog.NewTextHandler(&log, nil)), Tools: tools{
		"quick": say(0),
		"oops":  func(context.Context, tool.Call) (tool.Result, error) { panic("secret") },
	}})
	got, err := run(context.Background(), a, turn.Request{Text: "go"})
	if want := []string{"0 The tool broke down.", `1 got {"n":1}`}; err != nil || !slices.Equal(model.resultsOf(t), want) {
		t.Errorf("%v; the model was given %q, want %q", err, model.resultsOf(t), want)
	}
	for _, r := range of[signal.ToolResult](got) {
		if r.Success != (r.ToolName == "quick") {
			t.Errorf("told %+v", r)
		}
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "oops") {
		t.Errorf("logged %q", log.String())
	}
}

// However a turn ends early, its tools are told and waited for, and nothing more is yielded.
func TestToolsEndWithTheTurn(t *testing.T) {
	for name, end := range map[string]func(cancel func()) (goOn bool){
		"cancelled":       func(cancel func()) bool { cancel(); return true },
		"left":            func(func()) bool { return false },
		"its reader dies": func(func()) bool { panic("reader") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, started atomic.Int32
				wait := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					started.Add(1)
					running.Add(1)
					defer running.Add(-1)
					<-ctx.Done()
					time.Sleep(time.Second) // to clean up
					return tool.Result{}, ctx.Err()
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				model := once("wait", "wait", "wait", "wait")
				a := newAgent(t, agent.Config{Model: model, MaxParallel: 2, Tools: tools{"wait": wait}})
				calls, after := 0, 0
				func() {
					defer func() { _ = recover() }()
					a.Run(ctx, turn.Request{Text: "go"})(func(p signal.Payload, err error) bool {
						if calls == 2 {
							after++
							return false
						}
						if _, ok := p.(signal.ToolCall); ok {
							calls++
						}
						if calls < 2 {
							return true
						}
						synctest.Wait()
						return end(cancel)
					})
				}()
				if n := started.Load(); n != 2 {
					t.Errorf("%d tools were started, want the first 2 of 4", n)
				}
				if running.Load() != 0 || after != 0 || len(model.prompts) != 1 {
					t.Errorf("%d tools still run, %d signals came after the end, %d prompts", running.Load(), after, len(model.prompts))
				}
			})
		})
	}
}

// Who asks and what becomes of a yes, a no and nobody.
func TestApprovals(t *testing.T) {
	for name, c := range map[string]struct {
		ask func(context.Context, turn.Question) (turn.Answer, error)
		ran int
	}{
		"yes":    {func(context.Context, turn.Question) (turn.Answer, error) { return turn.Answer{Allow: true}, nil }, 2},
		"no":     {func(context.Context, turn.Question) (turn.Answer, error) { return turn.Answer{}, nil }, 1},
		"nobody": {nil, 1},
	} {
		var mu sync.Mutex
		var asked []string
		ran := 0
		do := func(context.Context, tool.Call) (tool.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ran++
			return tool.Result{Content: "ok"}, nil
		}
		ask := c.ask
		if ask != nil {
			ask = func(ctx context.Context, q turn.Question) (turn.Answer, error) {
				mu.Lock()
				asked = append(asked, q.CallID+" "+q.Name)
				mu.Unlock()
				return c.ask(ctx, q)
			}
		}
		model := once("quick", "risky")
		a := newAgent(t, agent.Config{Model: model, Tools: tools{"quick": do, "risky": do}, Rules: asks("risky")})
		got, err := run(context.Background(), a, turn.Request{Text: "go", Ask: ask})
		if err != nil || ran != c.ran || spokenText(got) != "Done." {
			t.Errorf("%s: %v; %d tools ran, want %d", name, err, ran, c.ran)
		}
		if ask != nil && !slices.Equal(asked, []string{"1 risky"}) {
			t.Errorf("%s: asked %q", name, asked)
		}
		for _, r := range of[signal.ToolResult](got) {
			if r.ToolName == "risky" && r.Success != (c.ran == 2) {
				t.Errorf("%s: told %+v", name, r)
			}
		}
	}
}

// Nobody is asked about a call before its reader has seen it, however slow the reader is.
func TestACallIsSeenBeforeAnybodyIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := false
		ask := func(context.Context, turn.Question) (turn.Answer, error) {
			if !seen {
				t.Error("asked about a call that nobody has seen")
			}
			return turn.Answer{Allow: true}, nil
		}
		a := newAgent(t, agent.Config{Model: once("risky"), Tools: tools{"risky": say(0)}, Rules: asks("risky")})
		for p, err := range a.Run(context.Background(), turn.Request{Text: "go", Ask: ask}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := p.(signal.ToolCall); ok {
				time.Sleep(time.Second)
				seen = true
			}
		}
		if !seen {
			t.Error("no call was told")
		}
	})
}

// The model is not told of tools that are denied.
func TestDeniedTools(t *testing.T) {
	model := once("quick")
	rules := tool.Rules{Default: tool.Allow, Tools: map[string]tool.Rule{"quick": tool.Deny}}
	a := newAgent(t, agent.Config{Model: model, Rules: rules, Tools: tools{"quick": say(0), "slow": say(0)}})
	got, err := run(context.Background(), a, turn.Request{Text: "go"})
	if d := model.prompts[0].Tools; err != nil || len(d) != 1 || d[0].Name != "slow" {
		t.Errorf("%v; the model was told of %v", err, d)
	}
	if r := of[signal.ToolResult](got); len(r) != 1 || r[0].Success {
		t.Errorf("told %+v", r)
	}
}

// A long result is cut for the model, not for who watches.
func TestLongResultsAreCut(t *testing.T) {
	long := strings.Repeat("ä", 30_000)
	model := once("read")
	read := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Content: long}, nil }
	got, err := run(context.Background(), newAgent(t, agent.Config{Model: model, Tools: tools{"read": read}, MaxResult: 32 << 10}), turn.Request{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	shown := model.resultsOf(t)[0]
	if n := len(shown); n > 32<<10+2 || n < 32<<10-200 || !strings.Contains(shown, "left out") {
		t.Errorf("the model was given %d bytes", n)
	}
	var output struct{ Content string }
	if err := json.Unmarshal(of[signal.ToolResult](got)[0].Output, &output); err != nil || output.Content != long {
		t.Errorf("%v; %d bytes were told", err, len(output.Content))
	}
}
