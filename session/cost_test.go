package session

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"vela/protocol"
	"vela/protocol/signal"
)

// watchers are the ways to watch a session; the first is not to.
var watchers = []struct {
	name    string
	metrics bool
	tracer  trace.Tracer
}{
	{"nobody", false, nil},
	{"metrics", true, nil},
	{"metrics and a noop tracer", true, noop.NewTracerProvider().Tracer("")},
	{"metrics and spans that go nowhere", true, sdktrace.NewTracerProvider().Tracer("")},
}

// fixedTurns runs one turn after the other, as its mailbox would: an engine that says a word and ends.
func fixedTurns(s *Session, p Peer) (turn func()) {
	s.replayed = func(Event) {} // no goroutine of an engine
	ask := fromClient{p, "", protocol.MockedTurnTrigger{}}
	signals := []input{
		said{payload: signal.TextDelta{Content: "word"}, at: s.now},
		said{payload: signal.Completion{Success: true}},
		said{ended: true},
	}
	return func() {
		_ = s.step(context.Background(), ask)
		for _, in := range signals {
			_ = s.step(context.Background(), in)
		}
	}
}

// BenchmarkTurn is a turn without its engine.
func BenchmarkTurn(b *testing.B) {
	for _, w := range watchers {
		b.Run(w.name, func(b *testing.B) {
			turn := fixedTurns(watched(w.metrics, w.tracer))
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
		})
	}
}

// BenchmarkWatchedAppend is one append of 20 ms with the partial that it causes, as in BenchmarkAppend.
func BenchmarkWatchedAppend(b *testing.B) {
	for _, w := range watchers {
		b.Run(w.name, func(b *testing.B) {
			s, p := watched(w.metrics, w.tracer)
			var in input = fromClient{p, "", protocol.InputAudioAppend{Chunk: strings.Repeat("A", 856)}}
			b.ReportAllocs()
			for b.Loop() {
				_ = s.step(b.Context(), in)
			}
		})
	}
}

func watched(metrics bool, tracer trace.Tracer) (*Session, Peer) {
	s, p := benchSession(false)
	s.cfg.Tracer = tracerOf(tracer)
	if metrics {
		s.cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	return s, p
}

// A turn that nobody watches allocates as much as one that is counted, or that has a tracer which does nothing.
func TestWatchingCostsNoMemory(t *testing.T) {
	var first float64
	for i, w := range watchers[:3] {
		turn := fixedTurns(watched(w.metrics, w.tracer))
		for range maxEvents { // the log is full: it grows no more
			turn()
		}
		allocs := testing.AllocsPerRun(500, turn)
		if i == 0 {
			first = allocs
		} else if allocs > first+1 { // the runtime may have one of its own
			t.Errorf("%s: %v allocations a turn, %v without", w.name, allocs, first)
		}
	}
}
