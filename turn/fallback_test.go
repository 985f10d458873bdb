package turn_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"testing"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/enginetest"
)

// engine is a [turn.Engine] made of what it yields, payloads or errors. A question is asked, and its answer ignored.
type engine []any

// Run implements [turn.Engine].
func (e engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		for _, item := range e {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			switch item := item.(type) {
			case turn.Question:
				if req.Ask != nil {
					_, _ = req.Ask(ctx, item)
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

var (
	errA, errB = errors.New("a failed"), errors.New("b failed")

	thought = signal.Thinking{AgentID: "a", Content: "hm"}
	usage   = signal.TokenUsage{AgentID: "a", PromptTokens: 3}
	state   = signal.AgentStateChange{AgentID: "a", From: signal.AgentThinking, To: signal.AgentError}
	word    = signal.TextDelta{AgentID: "a", Content: "word"}
	silence = signal.TextDelta{AgentID: "a"}
	call    = signal.ToolCall{AgentID: "a", ToolName: "clock"}
	other   = signal.TextDelta{AgentID: "b", Content: "other"}
	done    = signal.Completion{TaskID: "t", AgentID: "b", Success: true}
)

func TestFallback(t *testing.T) {
	for name, c := range map[string]struct {
		engines []turn.Engine
		want    []any
		skipped []error
	}{
		"the first answers":      {[]turn.Engine{engine{word, done}, engine{other, done}}, []any{word, done}, nil},
		"the first fails":        {[]turn.Engine{engine{errA}, engine{other, done}}, []any{other, done}, []error{errA}},
		"two fail":               {[]turn.Engine{engine{errA}, engine{errB}, engine{other, done}}, []any{other, done}, []error{errA, errB}},
		"all fail":               {[]turn.Engine{engine{errA}, engine{errB}}, []any{errB}, []error{errA}},
		"after what is unseen":   {[]turn.Engine{engine{thought, usage, silence, state, errA}, engine{other, done}}, []any{thought, usage, silence, state, other, done}, []error{errA}},
		"after a word":           {[]turn.Engine{engine{thought, word, errA}, engine{other, done}}, []any{thought, word, errA}, nil},
		"after a tool call":      {[]turn.Engine{engine{call, errA}, engine{other, done}}, []any{call, errA}, nil},
		"after a question":       {[]turn.Engine{engine{turn.Question{}, errA}, engine{other, done}}, []any{errA}, nil},
		"what fails was noticed": {[]turn.Engine{engine{errA}, engine{word, errB}, engine{other, done}}, []any{word, errB}, []error{errA}},
		"it just ends":           {[]turn.Engine{engine{thought}, engine{other, done}}, []any{thought, other, done}, []error{turn.ErrNoAnswer}},
		"all just end":           {[]turn.Engine{engine{}, engine{thought}}, []any{thought, turn.ErrNoAnswer}, []error{turn.ErrNoAnswer}},
		"it ends with a word":    {[]turn.Engine{engine{word}, engine{other, done}}, []any{word}, nil},
		"it ends with nothing":   {[]turn.Engine{engine{signal.Completion{AgentID: "a", Success: true}}, engine{other, done}}, []any{signal.Completion{AgentID: "a", Success: true}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var skipped []error
			asked := 0
			f := turn.Fallback(func(err error) { skipped = append(skipped, err) }, c.engines...)
			got := all(context.Background(), f, turn.Request{Ask: func(context.Context, turn.Question) (turn.Answer, error) {
				asked++
				return turn.Answer{}, nil
			}})
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("yielded %v, want %v", got, c.want)
			}
			if !reflect.DeepEqual(skipped, c.skipped) {
				t.Errorf("skipped %v, want %v", skipped, c.skipped)
			}
			if (name == "after a question") != (asked == 1) {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func all(ctx context.Context, e turn.Engine, req turn.Request) []any {
	var got []any
	for p, err := range e.Run(ctx, req) {
		if err != nil {
			got = append(got, err)
		} else {
			got = append(got, p)
		}
	}
	return got
}

func TestFallbackOfNobody(t *testing.T) {
	if got := all(context.Background(), turn.Fallback(nil), turn.Request{}); len(got) != 1 {
		t.Errorf("yielded %v, want an error", got)
	}
}

// Nobody is asked in the place of an engine that failed because the turn is over.
func TestFallbackEndsWithTheTurn(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := engine{thought, errA}
	var got []any
	f := turn.Fallback(func(err error) { t.Errorf("skipped %v", err) }, stop, engine{other, done})
	for p, err := range f.Run(ctx, turn.Request{}) {
		got = append(got, p, err)
		cancel()
	}
	if want := []any{thought, nil, nil, context.Canceled}; !reflect.DeepEqual(got, want) {
		t.Errorf("yielded %v, want %v", got, want)
	}
}

func TestFallbackIsAnEngine(t *testing.T) {
	for name, c := range map[string]struct {
		engines []turn.Engine
		fails   bool
	}{
		"the first answers": {engines: []turn.Engine{engine{thought, word, done}, engine{other, done}}},
		"the last answers":  {engines: []turn.Engine{engine{thought, errA}, engine{turn.Question{}, other, done}}},
		"nobody answers":    {engines: []turn.Engine{engine{thought, errA}, engine{usage, errB}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Suite{
				New:    func(*testing.T) turn.Engine { return turn.Fallback(nil, c.engines...) },
				Fails:  c.fails,
				Bubble: true,
			}.Run(t)
		})
	}
}
