package session_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
)

// traced is a client whose session's spans are looked at.
type traced struct {
	*client
	spans *tracetest.InMemoryExporter
	began time.Time
}

// traceSession connects to a session of version 2 whose spans are kept.
func traceSession(t *testing.T, cfg session.Config) *traced {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	cfg.Version, cfg.Token = 2, "token-of-this-session"
	cfg.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
	return &traced{connect(t, cfg), spans, time.Now()}
}

// told is every span that has ended, the turn's before its halves: its name, its parent's, from when to when, and what
// is in it.
func (c *traced) told() []string {
	synctest.Wait()
	spans := c.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		if by := a.StartTime.Compare(b.StartTime); by != 0 {
			return by
		}
		return strings.Compare(b.Name, a.Name) // vela.turn comes before what begins with it
	})
	names := map[trace.SpanID]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	var lines []string
	for _, s := range spans {
		line := fmt.Sprintf("%s in %q %v-%v", s.Name, names[s.Parent.SpanID()], c.at(s.StartTime), c.at(s.EndTime))
		if s.Status.Code != codes.Unset {
			line += fmt.Sprintf(" %s(%s)", s.Status.Code, s.Status.Description)
		}
		for _, a := range s.Attributes {
			switch a.Key { // the same in every span; TestSpansNameTheirSession looks at them
			case "session.id", "gen_ai.conversation.id":
				continue
			}
			line += fmt.Sprintf(" %s=%v", strings.TrimPrefix(string(a.Key), "vela.turn."), a.Value.String())
		}
		for _, e := range s.Events {
			line += fmt.Sprintf(" %s@%v", e.Name, c.at(e.Time))
		}
		lines = append(lines, line)
	}
	return lines
}

func (c *traced) at(t time.Time) time.Duration { return t.Sub(c.began) }

func (c *traced) want(lines ...string) {
	c.t.Helper()
	if got := c.told(); !slices.Equal(got, lines) {
		c.t.Errorf("spans\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(lines, "\n  "))
	}
}

// slowly answers 100 ms after the question and ends 50 ms later.
func slowly(ctx context.Context, _ turn.Request, yield func(signal.Payload, error) bool) {
	for _, p := range []signal.Payload{delta("a secret "), delta("answer")} {
		if sleep(ctx, 100*time.Millisecond) != nil || !yield(p, nil) {
			return
		}
	}
	if yield(signal.TokenUsage{AgentID: "test", PromptTokens: 30, CompletionTokens: 4}, nil) {
		yield(done, nil)
	}
}

// recognisesSlowly takes 200 ms after the commit.
func recognisesSlowly(text string, err error) recogniser {
	return func(ctx context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool) {
		for range audio {
		}
		if sleep(ctx, 200*time.Millisecond) == nil {
			yield(speech.Transcript{Text: text, Final: true}, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failsLate is an engine that says a word, and fails.
func failsLate(ctx context.Context, _ turn.Request, yield func(signal.Payload, error) bool) {
	if sleep(ctx, 100*time.Millisecond) == nil && yield(delta("half a secret"), nil) {
		yield(nil, errSecret)
	}
}

// digs is an engine that calls a tool three times: it works, it fails, and it never returns.
func digs(ctx context.Context, _ turn.Request, yield func(signal.Payload, error) bool) {
	for _, p := range []signal.Payload{
		signal.ToolCall{ToolName: "dig", CallID: "1", Input: []byte(`{"path":"a secret place"}`)},
		signal.ToolResult{ToolName: "dig", CallID: "1", Success: true, Output: []byte(`{"content":"a secret"}`)},
		signal.ToolCall{ToolName: "dig", CallID: "2"},
		signal.ToolResult{ToolName: "dig", CallID: "2"},
		signal.ToolCall{ToolName: "dig", CallID: "3"},
		delta("a secret answer"),
	} {
		if _, called := p.(signal.ToolCall); !called && sleep(ctx, 100*time.Millisecond) != nil || !yield(p, nil) {
			return
		}
	}
	yield(done, nil)
}

// speak is two seconds of holding the button.
func (c *traced) speak() {
	c.send(piece)
	time.Sleep(2 * time.Second)
	c.send(commit)
}

var secretQuestion = protocol.InputTextSubmit{Text: "a secret question"}

const (
	asksAgent = " id=t1 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test"
	usage     = " gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=4"
)

var spanTests = map[string]struct {
	cfg  session.Config
	do   func(c *traced)
	want []string
}{
	"a spoken turn": {
		agentBacked(recognisesSlowly("a secret question", nil), engine(slowly)),
		func(c *traced) { c.speak(); time.Sleep(time.Second) },
		[]string{
			`vela.turn in "" 0s-2.4s kind=agent` + asksAgent + usage + ` outcome=completed`,
			`stt in "vela.turn" 0s-2.2s commit@2s`,
			`engine in "vela.turn" 2.2s-2.4s` + asksAgent + ` first_text@2.3s`,
		},
	},
	"a typed turn": {
		agentBacked(nil, engine(slowly)),
		func(c *traced) { c.send(secretQuestion); time.Sleep(time.Second) },
		[]string{
			`vela.turn in "" 0s-200ms kind=agent` + asksAgent + usage + ` outcome=completed`,
			`engine in "vela.turn" 0s-200ms` + asksAgent + ` first_text@100ms`,
		},
	},
	"a turn with tools": {
		agentBacked(nil, engine(digs)),
		func(c *traced) { c.send(secretQuestion); time.Sleep(time.Second) },
		[]string{
			`vela.turn in "" 0s-300ms kind=agent` + asksAgent + ` outcome=completed`,
			`execute_tool dig in "engine" 0s-100ms gen_ai.operation.name=execute_tool gen_ai.tool.name=dig gen_ai.tool.call.id=1`,
			`engine in "vela.turn" 0s-300ms` + asksAgent + ` first_text@300ms`,
			`execute_tool dig in "engine" 100ms-200ms Error(tool_failed) gen_ai.operation.name=execute_tool gen_ai.tool.name=dig gen_ai.tool.call.id=2 error.type=tool_failed`,
			`execute_tool dig in "engine" 200ms-300ms gen_ai.operation.name=execute_tool gen_ai.tool.name=dig gen_ai.tool.call.id=3`,
		},
	},
	"the fixed turn": {
		session.Config{},
		func(c *traced) { c.send(chunk, commit) },
		[]string{
			`vela.turn in "" 0s-0s kind=deterministic id=t1 outcome=completed`,
			`engine in "vela.turn" 0s-0s id=t1 first_text@0s`,
		},
	},
	"cancelled while it is heard": {
		agentBacked(recognisesSlowly("a secret question", nil), engine(slowly)),
		func(c *traced) { c.send(piece); time.Sleep(time.Second); c.send(cancel) },
		[]string{
			`vela.turn in "" 0s-1s kind=agent outcome=cancelled`,
			`stt in "vela.turn" 0s-1s`,
		},
	},
	"cancelled while it is recognised": {
		agentBacked(recognisesSlowly("a secret question", nil), engine(slowly)),
		func(c *traced) { c.speak(); time.Sleep(time.Millisecond); c.send(cancel) },
		[]string{
			`vela.turn in "" 0s-2.001s kind=agent outcome=cancelled`,
			`stt in "vela.turn" 0s-2.001s commit@2s`,
		},
	},
	"cancelled while it is answered": {
		agentBacked(nil, engine(slowly)),
		func(c *traced) { c.send(secretQuestion); time.Sleep(150 * time.Millisecond); c.send(cancel) },
		[]string{
			`vela.turn in "" 0s-150ms kind=agent` + asksAgent + ` outcome=cancelled`,
			`engine in "vela.turn" 0s-150ms` + asksAgent + ` first_text@100ms`,
		},
	},
	"dropped for the fixed turn": {
		agentBacked(recognisesSlowly("a secret question", nil), engine(slowly)),
		func(c *traced) { c.send(piece); time.Sleep(time.Second); c.send(trigger) },
		[]string{
			`vela.turn in "" 0s-1s kind=agent outcome=cancelled`,
			`stt in "vela.turn" 0s-1s`,
			`vela.turn in "" 1s-1s kind=deterministic id=t1 outcome=completed`,
			`engine in "vela.turn" 1s-1s id=t1 first_text@1s`,
		},
	},
	"talked over": {
		agentBacked(recognisesSlowly("", nil), engine(slowly)),
		func(c *traced) {
			c.send(secretQuestion)
			time.Sleep(150 * time.Millisecond)
			c.speak()
			time.Sleep(time.Second)
		},
		[]string{
			`vela.turn in "" 0s-150ms kind=agent` + asksAgent + ` outcome=interrupted`,
			`engine in "vela.turn" 0s-150ms` + asksAgent + ` first_text@100ms`,
			`vela.turn in "" 150ms-2.35s kind=agent outcome=nothing`,
			`stt in "vela.turn" 150ms-2.35s commit@2.15s`,
		},
	},
	"typed over": {
		agentBacked(nil, engine(slowly)),
		func(c *traced) {
			c.send(secretQuestion)
			time.Sleep(50 * time.Millisecond)
			c.send(secretQuestion)
			time.Sleep(time.Second)
		},
		[]string{
			`vela.turn in "" 0s-50ms kind=agent` + asksAgent + ` outcome=interrupted`,
			`engine in "vela.turn" 0s-50ms` + asksAgent,
			`vela.turn in "" 50ms-250ms kind=agent` + strings.ReplaceAll(asksAgent, "t1", "t2") + usage + ` outcome=completed`,
			`engine in "vela.turn" 50ms-250ms` + strings.ReplaceAll(asksAgent, "t1", "t2") + ` first_text@150ms`,
		},
	},
	"an agent that fails": {
		agentBacked(nil, engine(failsLate)),
		func(c *traced) { c.send(secretQuestion); time.Sleep(time.Second) },
		[]string{
			`vela.turn in "" 0s-100ms Error(agent_failed) kind=agent` + asksAgent + ` error.type=agent_failed outcome=failed`,
			`engine in "vela.turn" 0s-100ms Error(agent_failed)` + asksAgent + ` error.type=agent_failed first_text@100ms`,
		},
	},
	"an agent that knows why it fails": {
		agentBacked(nil, engine(func(_ context.Context, _ turn.Request, yield func(signal.Payload, error) bool) {
			yield(nil, wordsError{protocol.CodeAgentTimeout, "secret words for a client"})
		})),
		func(c *traced) { c.send(secretQuestion) },
		[]string{
			`vela.turn in "" 0s-0s Error(agent_timeout) kind=agent` + asksAgent + ` error.type=agent_timeout outcome=failed`,
			`engine in "vela.turn" 0s-0s Error(agent_timeout)` + asksAgent + ` error.type=agent_timeout`,
		},
	},
	"no agent": {
		agentBacked(recognisesSlowly("a secret question", nil), nil),
		func(c *traced) { c.speak(); time.Sleep(time.Second); c.send(secretQuestion) },
		[]string{
			`vela.turn in "" 0s-2.2s Error(agent_unavailable) kind=agent error.type=agent_unavailable outcome=failed`,
			`stt in "vela.turn" 0s-2.2s commit@2s`,
			`vela.turn in "" 3s-3s Error(agent_unavailable) kind=agent error.type=agent_unavailable outcome=failed`,
		},
	},
	"a recogniser that fails": {
		agentBacked(recognisesSlowly("", errSecret), engine(slowly)),
		func(c *traced) { c.speak(); time.Sleep(time.Second) },
		[]string{
			`vela.turn in "" 0s-2.2s Error(speech_failed) kind=agent error.type=speech_failed outcome=failed`,
			`stt in "vela.turn" 0s-2.2s Error(speech_failed) error.type=speech_failed commit@2s`,
		},
	},
	"no recogniser": {
		agentBacked(nil, engine(slowly)),
		func(c *traced) { c.speak() },
		[]string{
			`vela.turn in "" 0s-2s Error(speech_unavailable) kind=agent error.type=speech_unavailable outcome=failed`,
			`stt in "vela.turn" 0s-0s Error(speech_unavailable) error.type=speech_unavailable`,
		},
	},
	"nothing recognised": {
		agentBacked(recognisesSlowly("", nil), engine(slowly)),
		func(c *traced) { c.speak(); time.Sleep(time.Second); c.send(commit) },
		[]string{
			`vela.turn in "" 0s-2.2s kind=agent outcome=nothing`,
			`stt in "vela.turn" 0s-2.2s commit@2s`,
		},
	},
	"broken off by the end of the session": {
		agentBacked(nil, engine(slowly)),
		func(c *traced) {
			c.send(secretQuestion)
			time.Sleep(150 * time.Millisecond)
			c.client.cancel(session.ErrShutdown)
		},
		[]string{
			`vela.turn in "" 0s-150ms kind=agent` + asksAgent + ` outcome=cancelled`,
			`engine in "vela.turn" 0s-150ms` + asksAgent + ` first_text@100ms`,
		},
	},
}

func TestSpans(t *testing.T) {
	for name, test := range spanTests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := traceSession(t, test.cfg)
				test.do(c)
				c.want(test.want...)
			})
		})
	}
}

// No span holds what was said or answered, what an error says, or what resumes a session.
func TestSpansHoldNoWords(t *testing.T) {
	for name, test := range spanTests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := traceSession(t, test.cfg)
				test.do(c)
				synctest.Wait()
				all := fmt.Sprintf("%+v", c.spans.GetSpans())
				for _, word := range []string{"secret", "question", "answer", "mocked", "10.0.0.1", "sk-123", "refused", "token-of"} {
					if strings.Contains(all, word) {
						t.Errorf("%q is in %s", word, all)
					}
				}
			})
		})
	}
}

func TestSpansNameTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := traceSession(t, agentBacked(nil, engine(slowly)))
		c.send(secretQuestion)
		time.Sleep(time.Second)
		synctest.Wait()
		spans := c.spans.GetSpans()
		for _, s := range spans {
			var id string
			for _, a := range s.Attributes {
				if a.Key == "gen_ai.conversation.id" {
					id = a.Value.AsString()
				}
			}
			if id != sessionID || s.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
				t.Errorf("%s is of conversation %q and trace %s", s.Name, id, s.SpanContext.TraceID())
			}
		}
		if kind := spans[1].SpanKind; kind != trace.SpanKindServer {
			t.Errorf("the turn's span is of kind %s", kind)
		}
	})
}

// What an engine traces, such as a request to a model, hangs below the engine's span, and what a recogniser does below
// that of stt.
func TestSpansOfEnginesAreChildren(t *testing.T) {
	inner := func(ctx context.Context, name string) {
		_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("inner").Start(ctx, name)
		span.End()
	}
	synctest.Test(t, func(t *testing.T) {
		c := traceSession(t, agentBacked(
			recogniser(func(ctx context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool) {
				inner(ctx, "decode")
				recognisesSlowly("hello", nil)(ctx, audio, yield)
			}),
			engine(func(ctx context.Context, req turn.Request, yield func(signal.Payload, error) bool) {
				inner(ctx, "chat")
				slowly(ctx, req, yield)
			}),
		))
		c.speak()
		time.Sleep(time.Second)
		got := strings.Join(c.told(), "\n")
		for _, want := range []string{`decode in "stt"`, `chat in "engine"`} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
	})
}
