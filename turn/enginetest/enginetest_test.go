package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
	"vela/turn"
)

// engine is a [turn.Engine] made of a function.
type engine func(ctx context.Context, req turn.Request, yield yield)

type yield = func(signal.Payload, error) bool

// Run implements [turn.Engine].
func (e engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) { e(ctx, req, yield) }
}

// recorder is a [testing.TB] of which one can see how it failed.
type recorder struct{ said []string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

var (
	word = signal.TextDelta{AgentID: "test", Content: "word"}
	done = signal.Completion{TaskID: "1", AgentID: "test", Success: true}
	call = signal.ToolCall{ToolName: "clock", AgentID: "test", CallID: "1", Input: json.RawMessage(`{}`)}
	told = signal.ToolResult{ToolName: "clock", AgentID: "test", CallID: "1", Success: true}
)

// good is an engine with nothing wrong, which does all that an engine may: it waits, asks, and runs a tool in a
// goroutine of its own. The broken ones below are it with one thing changed.
func good(ctx context.Context, req turn.Request, yield yield) {
	if ctx.Err() != nil || !yield(signal.Thinking{AgentID: "test", Content: "hm"}, nil) {
		return
	}
	if req.Ask != nil {
		if _, err := req.Ask(ctx, turn.Question{Name: "clock"}); err != nil {
			yield(nil, err)
			return
		}
	}
	if ctx.Err() != nil || !yield(call, nil) {
		return
	}
	result := make(chan signal.ToolResult, 1)
	go func() { result <- told }()
	for _, p := range []signal.Payload{<-result, word, done} {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return
		}
		if !yield(p, nil) {
			return
		}
	}
}

// all yields the payloads and minds neither its context nor its reader.
func all(yield yield, payloads ...signal.Payload) {
	for _, p := range payloads {
		yield(p, nil)
	}
}

// each yields the payloads as an engine should.
func each(ctx context.Context, yield yield, payloads ...signal.Payload) bool {
	for _, p := range payloads {
		if ctx.Err() != nil || !yield(p, nil) {
			return false
		}
	}
	return true
}

func TestAGoodEnginePasses(t *testing.T) {
	Run(t, func(*testing.T) turn.Engine { return engine(good) }, turn.Request{Text: "what time is it"})
	t.Run("in a bubble", func(t *testing.T) {
		Suite{New: func(*testing.T) turn.Engine { return engine(good) }, Bubble: true}.Run(t)
	})
	t.Run("that fails", func(t *testing.T) {
		Suite{
			New: func(*testing.T) turn.Engine {
				return engine(func(ctx context.Context, _ turn.Request, yield yield) {
					if each(ctx, yield, word) && ctx.Err() == nil {
						yield(nil, errors.New("broken"))
					}
				})
			},
			Fails: true,
		}.Run(t)
	})
}

// The suite says what is wrong with each of them, in the check that is for it.
func TestABrokenEngineIsCaught(t *testing.T) {
	for _, c := range broken {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			said := ""
			say := func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				said = sayOf(t, c.check, Suite{Fails: c.fails, Bubble: c.bubble, Patience: 100 * time.Millisecond}, c.make(release))
			}
			if c.bubble {
				synctest.Test(t, func(t *testing.T) {
					say(t)
					time.Sleep(time.Minute) // a goroutine that the suite gave up ends by itself
				})
			} else {
				say(t)
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("the suite says %q, want something with %q", said, c.says)
			}
		})
	}
}

// Every check catches some engine, and lets the good one pass.
func TestEveryCheckIsTested(t *testing.T) {
	for _, c := range checks {
		if said := sayOf(t, c.name, Suite{}, engine(good)); said != "" {
			t.Errorf("%s: a good engine fails: %s", c.name, said)
		}
		caught := false
		for _, b := range broken {
			caught = caught || b.check == c.name
		}
		if !caught {
			t.Errorf("%s: catches no broken engine", c.name)
		}
	}
}

// of makes an engine that needs no release to end.
func of(e engine) func(<-chan struct{}) engine { return func(<-chan struct{}) engine { return e } }

// sayOf runs one check and returns what it reports.
func sayOf(t *testing.T, name string, s Suite, e turn.Engine) string {
	t.Helper()
	for _, c := range checks {
		if c.name == name {
			r := &recorder{}
			x := s.trial(r, e)
			x.longest = time.Second
			c.run(x)
			return strings.Join(r.said, "\n")
		}
	}
	t.Fatalf("no check is called %q", name)
	return ""
}

// broken are engines that are wrong in one way each.
var broken = []struct {
	what   string
	check  string // which check catches it
	says   string // and what it says
	fails  bool   // the engine is said to fail
	bubble bool   // it is caught in a bubble: what is wrong with it is a matter of time
	make   func(release <-chan struct{}) engine
}{
	{what: "says nothing", check: "answers in order", says: "nothing was yielded",
		make: of(func(context.Context, turn.Request, yield) {})},
	{what: "has no completion", check: "answers in order", says: "want a completion",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { each(ctx, yield, word) })},
	{what: "completes twice", check: "answers in order", says: "nothing may follow",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { each(ctx, yield, word, done, done) })},
	{what: "goes on after its completion", check: "answers in order", says: "signal 1 of 2 is a completion",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { each(ctx, yield, done, word) })},
	{what: "goes on after an error", check: "answers in order", says: "is an error: nothing may follow",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			if yield(nil, errors.New("broken")) {
				each(ctx, yield, done)
			}
		})},
	{what: "fails after its completion", check: "answers in order", says: "signal 1 of 2 is a completion",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			if each(ctx, yield, done) {
				yield(nil, errors.New("broken"))
			}
		})},
	{what: "completes although it should fail", check: "answers in order", says: "want an error", fails: true,
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { each(ctx, yield, word, done) })},
	{what: "yields nil", check: "answers in order", says: "is nil",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { each(ctx, yield, nil, done) })},
	{what: "yields a payload with its error", check: "answers in order", says: "a payload and an error",
		make: of(func(_ context.Context, _ turn.Request, yield yield) { yield(word, errors.New("broken")) })},
	{what: "yields a person's signal", check: "answers in order", says: "no business",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, signal.UserClick{Target: "x"}, done)
		})},
	{what: "tells a result before its call", check: "answers in order", says: "was not yielded before",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { each(ctx, yield, told, call, done) })},
	{what: "answers only once", check: "answers in order", says: "the second time",
		make: func(<-chan struct{}) engine {
			var used atomic.Bool
			return func(ctx context.Context, _ turn.Request, yield yield) {
				if !used.Swap(true) {
					each(ctx, yield, word, done)
				}
			}
		}},
	{what: "panics", check: "answers in order", says: "panicked: oops",
		make: of(func(context.Context, turn.Request, yield) { panic("oops") })},
	{what: "says what is no UTF-8", check: "yields text that is UTF-8 and objects that are JSON", says: "not UTF-8",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, signal.TextDelta{Content: "Kapit\xe4n"}, done)
		})},
	{what: "cuts a letter in two", check: "yields text that is UTF-8 and objects that are JSON", says: "signal 2",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, word, signal.Thinking{Content: "\xc3"}, signal.Thinking{Content: "\xa4"}, done)
		})},
	{what: "calls a tool with no object", check: "yields text that is UTF-8 and objects that are JSON", says: "no JSON object",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, signal.ToolCall{ToolName: "clock", Input: json.RawMessage(`{"a":`)}, done)
		})},
	{what: "counts tokens backwards", check: "yields signals that the schema takes", says: "promptTokens",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, signal.TokenUsage{PromptTokens: -1}, done)
		})},
	{what: "completes nothing in particular", check: "yields signals that the schema takes", says: "no task",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, word, signal.Completion{Success: true})
		})},
	{what: "asks nobody", check: "asks nobody where there is nobody", says: "panicked",
		make: of(func(ctx context.Context, req turn.Request, yield yield) {
			if _, err := req.Ask(ctx, turn.Question{}); err == nil {
				each(ctx, yield, word, done)
			}
		})},
	{what: "has no end after a no", check: "takes a no", says: "neither a completion nor an error",
		make: of(func(ctx context.Context, req turn.Request, yield yield) {
			if each(ctx, yield, word) && req.Ask == nil {
				each(ctx, yield, done)
			}
		})},
	{what: "waits for an answer for ever", check: "stops waiting for an answer when cancelled", says: "did not end",
		make: func(release <-chan struct{}) engine {
			return func(ctx context.Context, req turn.Request, yield yield) {
				if req.Ask != nil {
					own, cancel := context.WithCancel(context.WithoutCancel(ctx))
					go func() { <-release; cancel() }()
					_, _ = req.Ask(own, turn.Question{})
				}
				each(ctx, yield, word, done)
			}
		}},
	{what: "takes no answer for a yes", check: "stops waiting for an answer when cancelled", says: "completed all the same",
		make: of(func(ctx context.Context, req turn.Request, yield yield) {
			if req.Ask != nil {
				_, _ = req.Ask(ctx, turn.Question{})
			}
			all(yield, word, done)
		})},
	{what: "changes the history", check: "leaves the request as it is", says: "was changed",
		make: of(func(ctx context.Context, req turn.Request, yield yield) {
			if len(req.History) > 0 {
				req.History[0].Text = "something else"
			}
			each(ctx, yield, word, done)
		})},
	{what: "appends to the history in place", check: "leaves the request as it is", says: "in place",
		make: of(func(ctx context.Context, req turn.Request, yield yield) {
			_ = append(req.History, turn.Message{Role: turn.User, Text: req.Text})
			each(ctx, yield, word, done)
		})},
	{what: "starts although it is cancelled", check: "is silent when cancelled before the start", says: "after the cancel",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			if yield(word, nil) {
				each(ctx, yield, word, done)
			}
		})},
	{what: "ignores a cancel", check: "is silent when cancelled after each signal", says: "after the cancel",
		make: of(func(_ context.Context, _ turn.Request, yield yield) {
			_ = yield(word, nil) && yield(word, nil) && yield(done, nil)
		})},
	{what: "completes although it is cancelled", check: "is silent when cancelled after each signal", says: "after signal 2: signal.Completion",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			if each(ctx, yield, word, word) {
				yield(done, nil)
			}
		})},
	{what: "says that it was cancelled, twice", check: "is silent when cancelled after each signal", says: "after the cancel",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			if !each(ctx, yield, word, done) && yield(nil, ctx.Err()) {
				yield(nil, ctx.Err())
			}
		})},
	{what: "sleeps through a cancel", check: "is silent when cancelled after each signal", says: "did not end",
		make: func(release <-chan struct{}) engine {
			return func(ctx context.Context, _ turn.Request, yield yield) {
				if each(ctx, yield, word) {
					if ctx.Err() != nil {
						<-release
					}
					each(ctx, yield, done)
				}
			}
		}},
	{what: "sleeps through a cancel that comes while it waits", check: "ends when cancelled between two signals", says: "did not end", bubble: true,
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			if each(ctx, yield, word) && ctx.Err() == nil {
				time.Sleep(300 * time.Millisecond) // three times the suite's patience here, half of it left
				each(ctx, yield, done)
			}
		})},
	{what: "goes on after its reader has left", check: "ends when its reader leaves after each signal", says: "yielded again",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) { all(yield, word, word, done) })},
	{what: "does not end after its reader has left", check: "ends when its reader leaves after each signal", says: "did not end",
		make: func(release <-chan struct{}) engine {
			return func(ctx context.Context, _ turn.Request, yield yield) {
				if !each(ctx, yield, word, done) && ctx.Err() == nil {
					<-release
				}
			}
		}},
	{what: "yields from another goroutine", check: "answers in order", says: "another goroutine",
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				each(ctx, yield, word, done)
			}()
			<-ended
		})},
	{what: "yields when it is over", check: "answers in order", says: "after its sequence had returned", bubble: true,
		make: of(func(ctx context.Context, _ turn.Request, yield yield) {
			each(ctx, yield, word, done)
			go func() {
				for yield(word, nil) { // until it is over
					runtime.Gosched()
				}
			}()
		})},
	{what: "leaves a goroutine behind", check: "answers in order", says: "left a goroutine behind",
		make: func(release <-chan struct{}) engine {
			return func(ctx context.Context, _ turn.Request, yield yield) {
				go func() { <-release }()
				each(ctx, yield, word, done)
			}
		}},
	{what: "leaves a goroutine behind when cancelled", check: "is silent when cancelled after each signal", says: "left a goroutine behind",
		make: func(release <-chan struct{}) engine {
			return func(ctx context.Context, _ turn.Request, yield yield) {
				if !each(ctx, yield, word, done) && ctx.Err() != nil {
					go func() { <-release }()
				}
			}
		}},
	{what: "leaves a goroutine behind when its reader leaves", check: "ends when its reader leaves after each signal", says: "left a goroutine behind",
		make: func(release <-chan struct{}) engine {
			return func(ctx context.Context, _ turn.Request, yield yield) {
				words := make(chan signal.Payload)
				go func() {
					for _, p := range []signal.Payload{word, word, done} {
						select {
						case words <- p:
						case <-ctx.Done():
							return
						case <-release:
							return
						}
					}
					close(words)
				}()
				for p := range words {
					if !each(ctx, yield, p) {
						return
					}
				}
			}
		}},
	{what: "serves one at a time", check: "serves several at once", says: "want a completion", bubble: true,
		make: func(<-chan struct{}) engine {
			var busy atomic.Int32
			return func(ctx context.Context, _ turn.Request, yield yield) {
				defer busy.Add(-1)
				if busy.Add(1) > 1 {
					yield(nil, errors.New("busy"))
					return
				}
				time.Sleep(20 * time.Millisecond)
				each(ctx, yield, word, done)
			}
		}},
}
