package session_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
)

// stages are the pauses of everybody who takes part in a turn.
type stages struct {
	stt, text, sound time.Duration            // of the recogniser after the commit, the agent, and the voice
	busy             map[string]time.Duration // how long the session is held up by each event of a type
}

// stagedTurn has a turn spoken and answered by sound, and ends it 3 s after the commit.
func stagedTurn(t *testing.T, s stages, typedTurn bool) (m protocol.TurnMetrics, counted, spans []string) {
	t.Helper()
	var journal file
	synctest.Test(t, func(t *testing.T) {
		hears := recogniser(func(ctx context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
			for range audio {
			}
			_ = sleep(ctx, s.stt) == nil && yield(speech.Transcript{Text: "when"}, nil) && yield(speech.Transcript{Text: "when", Final: true}, nil)
		})
		answers := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			_ = sleep(ctx, s.text) == nil && yield(signal.Thinking{AgentID: "test", Content: "Hm."}, nil) &&
				yield(delta("It is noon. And"), nil) && sleep(ctx, 100*time.Millisecond) == nil &&
				yield(signal.Thinking{AgentID: "test", Content: "Hm."}, nil) &&
				yield(signal.TokenUsage{AgentID: "test", PromptTokens: 30, CompletionTokens: 4}, nil) && sleep(ctx, time.Hour) == nil
		})
		cfg, registry := measured(agentBacked(hears, answers))
		cfg.Voices = named(voiceFunc(func(ctx context.Context, text string, yield func(speech.Chunk, error) bool) {
			if sleep(ctx, s.sound) == nil {
				(&drone{rate: 24000}).Synthesize(ctx, text)(yield)
			}
		}))
		cfg.Journal = func() io.WriteCloser { return &journal }
		c := &traced{spans: tracetest.NewInMemoryExporter(), began: time.Now()}
		cfg.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.spans)).Tracer("test")
		c.client = start(t, cfg)
		var holds atomic.Bool
		c.onSend = func(e session.Event) {
			if holds.Load() {
				time.Sleep(s.busy[e.Message.Type()])
			}
		}
		c.join()
		c.send(withVoice)
		synctest.Wait()
		holds.Store(true)
		if typedTurn {
			c.send(typed("when"))
		} else {
			c.send(piece)
			synctest.Wait()
			c.began = time.Now() // the commit
			c.send(commit)
		}
		time.Sleep(3 * time.Second)
		holds.Store(false)
		c.send(cancel)
		synctest.Wait()
		m, _ = last[protocol.TurnMetrics](&player{client: c.client})
		counted, spans = samples(t, registry), c.told()
		c.cancel(nil)
		<-c.ended
	})
	if r, err := session.Replay(bytes.NewReader(journal.Bytes()), nil, nil); err != nil || r.Different != nil {
		t.Errorf("the journal replays with %v, %+v", err, r.Different)
	}
	return m, counted, spans
}

func shown(m protocol.TurnMetrics) string {
	return string(protocol.AppendEnvelope(nil, protocol.Envelope{Message: m}))
}

func ms(n int64) *int64 { return &n }

// Each time is that of its stage, to the millisecond, and the same in the event, in the metrics and in the spans.
func TestTheStagesOfATurn(t *testing.T) {
	const unit = time.Millisecond
	m, counted, spans := stagedTurn(t, stages{stt: 210 * unit, text: 505 * unit, sound: 385 * unit}, false)
	want := protocol.TurnMetrics{TurnID: "t1", SttMs: ms(210), FirstTokenMs: ms(505), FirstAudioMs: ms(890), TotalMs: 3000,
		Usage: &protocol.Usage{PromptTokens: 30, CompletionTokens: 4}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("the metrics are %s, want %s", shown(m), shown(want))
	}
	wantLines(t, counted, "vela_first_audio_seconds{} 1 0.890", "vela_first_text_seconds{} 1 0.505", "vela_gateway_seconds{} 1 0.000",
		"vela_stt_seconds{} 1 0.210", "vela_tokens_total{completion} 4", "vela_tokens_total{prompt} 30", "vela_turn_seconds{agent,cancelled} 1 3.000")
	wantLines(t, spans,
		`vela.turn in "" 0s-3s kind=agent id=t1 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=4 outcome=cancelled`,
		`stt in "vela.turn" 0s-210ms commit@0s`,
		`engine in "vela.turn" 210ms-3s id=t1 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test first_text@715ms`,
		`tts in "vela.turn" 715ms-3s id=t1 first_audio@1.1s`)

	m, _, _ = stagedTurn(t, stages{stt: 210 * unit, text: 505 * unit, sound: 385 * unit}, true)
	want.SttMs = nil
	if !reflect.DeepEqual(m, want) {
		t.Errorf("of a typed turn the metrics are %s, want %s", shown(m), shown(want))
	}
}

// gatewayMs is what the session itself held up, wherever it did.
func TestTheGatewaysOwnShare(t *testing.T) {
	const unit = time.Millisecond
	s := stages{stt: 200 * unit, text: 500 * unit, sound: 95 * unit, busy: map[string]time.Duration{}}
	for _, c := range []struct {
		event string
		busy  time.Duration
		added int64
	}{
		{"none", time.Second, 0},
		{"transcript.partial", 30 * unit, 30},  // the final transcript is there at once
		{"transcript.final", 30 * unit, 0},     // the agent is asked behind it; its time runs from then on
		{"response.text.delta", 10 * unit, 10}, // the sentence waits for its voice
	} {
		s.busy = map[string]time.Duration{c.event: c.busy}
		m, counted, _ := stagedTurn(t, s, false)
		if m.GatewayMs != c.added {
			t.Errorf("held up by %s: %s, want %d ms", c.event, shown(m), c.added)
		}
		wantLines(t, counted, fmt.Sprintf("vela_gateway_seconds{} 1 %.3f", float64(c.added)/1000))
	}
	// Behind the first thought waits the text, and behind the second one, 100 ms later, the sound of 95 ms after the text was taken.
	s.busy = map[string]time.Duration{"thinking.delta": 20 * unit}
	m, _, spans := stagedTurn(t, s, false)
	if m.GatewayMs != 20+5 || *m.FirstTokenMs != 520 || *m.FirstAudioMs != 620 {
		t.Errorf("held up by thoughts: %s", shown(m))
	}
	wantLines(t, spans[:1], `vela.turn in "" 0s-3s kind=agent id=t1 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test gateway_ms=25 gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=4 outcome=cancelled`)
}

// wantLines wants each of some lines among others.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	all := map[string]bool{}
	for _, line := range got {
		all[line] = true
	}
	for _, line := range want {
		if !all[line] {
			t.Errorf("there is no line\n  %s\namong\n  %q", line, got)
		}
	}
}
