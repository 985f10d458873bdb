package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/tool"
)

// The whole of what a turn with tools tells, in order.
func TestWhatATurnTells(t *testing.T) {
	model := answers(func(round int, p agent.Prompt) []any {
		if round == 0 {
			return []any{signal.Thinking{Content: "hm"}, text("Let me look."), callOf("c", "clock", `{"zone":"UTC"}`)}
		}
		return []any{text("It is noon."), signal.TokenUsage{PromptTokens: 7, Model: "m"}}
	})
	clock := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Content: "12:00"}, nil }
	a := newAgent(t, agent.Config{ID: "vela", Model: model, Tools: tools{"clock": clock}})
	got, err := run(context.Background(), a, turn.Request{TurnID: "t1", Text: "what time is it"})
	if err != nil {
		t.Fatal(err)
	}
	want := []signal.Payload{
		signal.AgentStateChange{AgentID: "vela", From: signal.AgentIdle, To: signal.AgentThinking},
		signal.Thinking{AgentID: "vela", Content: "hm"},
		signal.TextDelta{AgentID: "vela", Content: "Let me look."},
		signal.AgentStateChange{AgentID: "vela", From: signal.AgentThinking, To: signal.AgentActing},
		signal.ToolCall{AgentID: "vela", ToolName: "clock", CallID: "c", Input: json.RawMessage(`{"zone":"UTC"}`)},
		signal.ToolResult{AgentID: "vela", ToolName: "clock", CallID: "c", Success: true, Output: json.RawMessage(`{"content":"12:00"}`)},
		signal.AgentStateChange{AgentID: "vela", From: signal.AgentActing, To: signal.AgentThinking},
		signal.TextDelta{AgentID: "vela", Content: "\nIt is noon.", Index: 1},
		signal.TokenUsage{AgentID: "vela", PromptTokens: 7, Model: "m"},
		signal.AgentStateChange{AgentID: "vela", From: signal.AgentThinking, To: signal.AgentDone},
		signal.Completion{AgentID: "vela", TaskID: "t1", Success: true},
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("signal %d:\n got %+v\nwant %+v", i+1, got, want)
		}
	}
}

// What a model is given in each round: the history, the question, and what its calls came to.
func TestWhatAModelIsGiven(t *testing.T) {
	own := signal.Other{Name: "signature", Body: json.RawMessage(`{"s":"x"}`)}
	model := &recorded{answers: func(round int, p agent.Prompt) []any {
		if round == 0 {
			return []any{own, text("\n\nLet me look. \n"), callOf("c", "clock", `{"a":1}`), callOf("c", "clock", `{"broken`), callOf("", "nope", ``)}
		}
		return []any{text("Noon.")}
	}}
	clock := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
	a := newAgent(t, agent.Config{Model: model, Tools: tools{"clock": clock}, System: "Be kind."})
	history := []turn.Message{{Role: turn.User, Text: "hello"}, {Role: turn.Assistant, Text: "hi"}}
	if _, err := run(context.Background(), a, turn.Request{Text: "what time is it", History: history}); err != nil {
		t.Fatal(err)
	}
	asked := []agent.Message{{Role: turn.User, Text: "hello"}, {Role: turn.Assistant, Text: "hi"}, {Role: turn.User, Text: "what time is it"}}
	did := []agent.Message{
		{Role: turn.Assistant, Text: "Let me look.", Own: []signal.Other{own}, Calls: []tool.Call{
			{ID: "c", Name: "clock", Input: json.RawMessage(`{"a":1}`)},
			{ID: "c_2", Name: "clock", Input: json.RawMessage(`{}`)},
			{ID: "call", Name: "nope", Input: json.RawMessage(`{}`)},
		}},
		{Role: turn.User, Results: []agent.Result{
			{CallID: "c", Name: "clock", Content: "[no output]"},
			{CallID: "c_2", Name: "clock", Content: "The input of clock is not a JSON object. Call it again with one.", Failed: true},
			{CallID: "call", Name: "nope", Content: `There is no tool with the name "nope". Use only the tools that you were told of.`, Failed: true},
		}},
	}
	for i, want := range [][]agent.Message{asked, append(asked, did...)} {
		p := model.prompts[i]
		if !reflect.DeepEqual(p.Messages, want) {
			t.Errorf("round %d:\n got %+v\nwant %+v", i, p.Messages, want)
		}
		if p.System != "Be kind." || len(p.Tools) != 1 {
			t.Errorf("round %d: system %q, tools %v", i, p.System, p.Tools)
		}
	}
}

// Calls of the past and of the present have different ids, whatever the model calls them.
func TestIDsAreSingleInAConversation(t *testing.T) {
	quick := turn.ToolUse{CallID: "0", Name: "quick", Input: json.RawMessage(`{}`), Output: json.RawMessage(`{}`), Success: true}
	history := []turn.Message{{Role: turn.User, Text: "hello"}, {Role: turn.Assistant, Text: "hi", Tools: []turn.ToolUse{quick}}}
	model := answers(func(round int, p agent.Prompt) []any {
		if round < 2 {
			return []any{callOf("0", "quick", `{}`)}
		}
		return []any{text("Done.")}
	})
	got, err := run(context.Background(), newAgent(t, agent.Config{Model: model, Tools: tools{"quick": say(0)}}), turn.Request{Text: "go", History: history})
	if err != nil {
		t.Fatal(err)
	}
	calls, results := of[signal.ToolCall](got), of[signal.ToolResult](got)
	for i, want := range []string{"0_2", "0_3"} {
		if calls[i].CallID != want || results[i].CallID != want {
			t.Errorf("call %d has the id %q, its result %q, want %q", i, calls[i].CallID, results[i].CallID, want)
		}
	}
}

// Wherever a turn is cancelled, nothing more is yielded, not even an error.
func TestNothingFollowsACancel(t *testing.T) {
	failing := answers(func(round int, p agent.Prompt) []any {
		if round == 0 {
			return []any{text("One"), callOf("0", "quick", `{}`)}
		}
		return []any{text("two"), refused{}}
	})
	for name, model := range map[string]answers{"completed": busy, "failed": failing} {
		a := newAgent(t, agent.Config{Model: model, Tools: tools{"quick": say(0), "slow": say(0)}})
		whole, _ := run(context.Background(), a, turn.Request{Text: "go"})
		for k := range whole {
			ctx, cancel := context.WithCancel(context.Background())
			var got []string
			for p, err := range a.Run(ctx, turn.Request{Text: "go"}) {
				got = append(got, fmt.Sprintf("%T %v", p, err))
				if len(got) == k+1 {
					cancel()
				}
			}
			cancel()
			if len(got) != k+1 {
				t.Errorf("%s: cancelled after signal %d of %d, then came %v", name, k+1, len(whole), got[k+1:])
			}
		}
	}
}

func TestTextOfRoundsDoesNotRunTogether(t *testing.T) {
	for name, c := range map[string]struct {
		first, second []any
		want          string
	}{
		"words":             {[]any{text("One.")}, []any{text("Two.")}, "One.\nTwo."},
		"in pieces":         {[]any{text("One"), text(".")}, []any{text("Two"), text(" and"), text(" three.")}, "One.\nTwo and three."},
		"ends with a space": {[]any{text("One. ")}, []any{text("Two.")}, "One. Two."},
		"begins with lines": {[]any{text("\n\nOne.")}, []any{text("\n"), text(" \nTwo.")}, "One.\nTwo."},
		"nothing before":    {nil, []any{text("Two.")}, "Two."},
		"only white before": {[]any{text(" \n")}, []any{text("Two.")}, "Two."},
		"empty pieces":      {[]any{text(""), text("One."), text("")}, []any{text(""), text("Two.")}, "One.\nTwo."},
	} {
		a := newAgent(t, agent.Config{Tools: tools{"quick": say(0)}, Model: answers(func(round int, p agent.Prompt) []any {
			if round == 0 {
				return append(c.first, callOf("c", "quick", `{}`))
			}
			return c.second
		})})
		got, err := run(context.Background(), a, turn.Request{Text: "count"})
		if err != nil || spokenText(got) != c.want {
			t.Errorf("%s: said %q, %v, want %q", name, spokenText(got), err, c.want)
		}
		for i, d := range of[signal.TextDelta](got) {
			if d.Index != i || d.Content == "" {
				t.Errorf("%s: piece %d is %+v", name, i, d)
			}
		}
	}
}

// A model that never stops calling has to answer in the end, and is told so.
func TestRoundsAreBounded(t *testing.T) {
	for name, words := range map[string]string{"answers": "That is all I know.", "still calls": ""} {
		model := &recorded{answers: func(_ int, p agent.Prompt) []any {
			said := []any{callOf("c", "quick", `{}`)}
			if len(p.Tools) == 0 && words != "" {
				said = append(said, text(words))
			}
			return said
		}}
		a := newAgent(t, agent.Config{Model: model, Tools: tools{"quick": say(0)}, MaxRounds: 3, System: "Be kind."})
		got, err := run(context.Background(), a, turn.Request{Text: "go on"})
		if n := len(of[signal.ToolCall](got)); n != 3 {
			t.Errorf("%s: %d tools ran, want 3", name, n)
		}
		if spokenText(got) != words {
			t.Errorf("%s: said %q", name, spokenText(got))
		}
		if words == "" && codeOf(err) != protocol.CodeAgentFailed || words != "" && err != nil {
			t.Errorf("%s: ended with %v", name, err)
		}
		for i, p := range model.prompts {
			last := i >= 3
			if last != (len(p.Tools) == 0) || last != strings.Contains(p.System, "cannot use any more") {
				t.Errorf("%s: prompt %d has tools %v and says %q", name, i, p.Tools, p.System)
			}
		}
	}
}

func TestAnEmptyAnswerIsAskedForOnceMore(t *testing.T) {
	quick := callOf("c", "quick", `{}`)
	for name, c := range map[string]struct {
		says  [][]any // one answer after another
		asked int
		want  string
		fails bool
	}{
		"at once":            {says: [][]any{{}, {text("Here.")}}, asked: 2, want: "Here."},
		"white space":        {says: [][]any{{text(" \n")}, {text("Here.")}}, asked: 2, want: "Here."},
		"only thoughts":      {says: [][]any{{signal.Thinking{Content: "hm"}}, {}}, asked: 2, fails: true},
		"twice":              {says: [][]any{{}, {}}, asked: 2, fails: true},
		"after a tool":       {says: [][]any{{quick}, {}, {text("Done.")}}, asked: 3, want: "Done."},
		"twice after a tool": {says: [][]any{{quick}, {}, {}}, asked: 3, fails: true},
		"after it was said":  {says: [][]any{{text("I do it."), quick}, {}, {}}, asked: 3, want: "I do it."},
		"once in a turn":     {says: [][]any{{}, {quick}, {}}, asked: 3, fails: true},
	} {
		n := 0
		model := &recorded{answers: func(int, agent.Prompt) []any { n++; return c.says[n-1] }}
		a := newAgent(t, agent.Config{Model: model, Tools: tools{"quick": say(0)}})
		got, err := run(context.Background(), a, turn.Request{Text: "hello"})
		if len(model.prompts) != c.asked || spokenText(got) != c.want {
			t.Errorf("%s: asked %d times, want %d; said %q, want %q", name, len(model.prompts), c.asked, spokenText(got), c.want)
		}
		if c.fails && (codeOf(err) != protocol.CodeAgentFailed || err.Error() != "The agent gave no answer.") || !c.fails && err != nil {
			t.Errorf("%s: ended with %v", name, err)
		}
		told := 0
		for _, p := range model.prompts {
			if strings.Contains(p.System, "was empty") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%s: the model was told %d times that its answer was empty, want once", name, told)
		}
	}
}

func codeOf(err error) protocol.Code {
	var coded interface{ Code() protocol.Code }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

type refused struct{}

func (refused) Error() string       { return "The model is busy." }
func (refused) Code() protocol.Code { return protocol.CodeAgentUnavailable }
func (refused) Unwrap() error       { return errors.New("429 from 10.0.0.7") }

// A model's error is passed on as it is, and who watches sees the agent stop. What of it no client is told the operator
// finds in the log, once: whoever gives an error words that has none logs that one.
func TestErrorsOfAModel(t *testing.T) {
	plain := errors.New("read stream of 10.0.0.7: EOF")
	for name, c := range map[string]struct {
		err    error
		reason string
		logged int
	}{"with a code": {refused{}, "The model is busy.", 1}, "without one": {plain, "", 0}} {
		var log bytes.Buffer
		a := newAgent(t, agent.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Model: answers(func(int, agent.Prompt) []any { return []any{text("One"), c.err, text("two")} })})
		got, err := run(context.Background(), a, turn.Request{Text: "count"})
		if err != c.err {
			t.Errorf("%s: the error is %v", name, err)
		}
		want := signal.AgentStateChange{AgentID: "a", From: signal.AgentThinking, To: signal.AgentError, Reason: c.reason}
		if spokenText(got) != "One" || got[len(got)-1] != want {
			t.Errorf("%s: yielded %+v", name, got)
		}
		if n := strings.Count(log.String(), "10.0.0.7"); n != c.logged {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
}

// Time is bounded, wherever it is spent.
func TestTimeIsBounded(t *testing.T) {
	wait := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	for name, model := range map[string]answers{
		"in a tool":   func(int, agent.Prompt) []any { return []any{callOf("c", "wait", `{}`)} },
		"in a model":  func(int, agent.Prompt) []any { return []any{text("One"), time.Hour, text("two")} },
		"in its end":  func(int, agent.Prompt) []any { return []any{text("One"), time.Hour} },
		"in a person": func(int, agent.Prompt) []any { return []any{callOf("c", "risky", `{}`)} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(t, agent.Config{Model: model, MaxTime: time.Minute, Rules: asks("risky"), Tools: tools{"wait": wait, "risky": say(0)}})
				began := time.Now()
				req := turn.Request{Text: "wait", Ask: func(ctx context.Context, _ turn.Question) (turn.Answer, error) {
					<-ctx.Done()
					return turn.Answer{}, ctx.Err()
				}}
				got, err := run(context.Background(), a, req)
				if codeOf(err) != protocol.CodeAgentTimeout || time.Since(began) != time.Minute {
					t.Errorf("ended after %v with %v", time.Since(began), err)
				}
				if end, ok := got[len(got)-1].(signal.AgentStateChange); !ok || end.To != signal.AgentError || end.Reason != err.Error() {
					t.Errorf("the last signal is %+v", got[len(got)-1])
				}
			})
		})
	}
}

// Tools that appear during a turn are there in its next round.
func TestToolsAreLookedUpInEveryRound(t *testing.T) {
	there := tools{}
	there["grow"] = func(context.Context, tool.Call) (tool.Result, error) {
		there["another"] = say(0)
		return tool.Result{Content: "ok"}, nil
	}
	model := &recorded{answers: func(round int, _ agent.Prompt) []any {
		if round == 0 {
			return []any{callOf("c", "grow", `{}`)}
		}
		return []any{text("Done.")}
	}}
	if _, err := run(context.Background(), newAgent(t, agent.Config{Model: model, Tools: there}), turn.Request{Text: "grow"}); err != nil {
		t.Fatal(err)
	}
	if a, b := len(model.prompts[0].Tools), len(model.prompts[1].Tools); a != 1 || b != 2 {
		t.Errorf("%d and %d tools, want 1 and 2", a, b)
	}
}

func TestWithoutTools(t *testing.T) {
	model := &recorded{answers: func(round int, _ agent.Prompt) []any {
		if round == 0 {
			return []any{callOf("c", "clock", `{}`)}
		}
		return []any{text("I cannot.")}
	}}
	got, err := run(context.Background(), newAgent(t, agent.Config{Model: model}), turn.Request{Text: "what time is it"})
	results := of[signal.ToolResult](got)
	if err != nil || len(results) != 1 || results[0].Success || spokenText(got) != "I cannot." || len(model.prompts[0].Tools) != 0 {
		t.Errorf("%v, %+v", err, got)
	}
	if !strings.Contains(model.prompts[0].System, "voice") {
		t.Errorf("the system prompt is %q", model.prompts[0].System)
	}
}
