package session

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"vela/protocol"
	"vela/turn/deterministic"
)

// sink is a peer that lets go of everything.
type sink struct{ events int }

func (s *sink) Send(Event)                       { s.events++ }
func (s *sink) Resend(events []Event)            { s.events += len(events) }
func (s *sink) Close(protocol.CloseCode, string) {}

// discard is a journal that nobody reads.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

// benchSession is a session without its goroutine: the benchmark is its mailbox.
func benchSession(journal bool) (*Session, *sink) {
	cfg := Config{ID: "bench", Version: 2, Mock: deterministic.Engine{}, Log: slog.New(slog.DiscardHandler)}
	if journal {
		cfg.Journal = func() io.WriteCloser { return discard{} }
	}
	s := New(cfg)
	s.now = time.Now()
	s.timer = time.NewTimer(time.Hour)
	s.startJournal()
	p := &sink{}
	s.join(p, Hello{})
	return s, p
}

// BenchmarkEmit is what an event costs on its way out: handed to the peer only, numbered and kept as well, journaled as
// well. The first is the floor.
func BenchmarkEmit(b *testing.B) {
	event := protocol.ResponseTextDelta{Text: "a few words of an answer ", ResponseID: "r1"}
	b.Run("floor", func(b *testing.B) {
		s, p := benchSession(false)
		b.ReportAllocs()
		for b.Loop() {
			s.tell(p, event)
		}
	})
	for _, journal := range []bool{false, true} {
		b.Run(map[bool]string{false: "kept", true: "kept and journaled"}[journal], func(b *testing.B) {
			s, _ := benchSession(journal)
			b.ReportAllocs()
			for b.Loop() {
				s.emit(event)
			}
		})
	}
}

// BenchmarkAppend is one append of 20 ms with the partial that it causes.
func BenchmarkAppend(b *testing.B) {
	for _, journal := range []bool{false, true} {
		b.Run(map[bool]string{false: "kept", true: "kept and journaled"}[journal], func(b *testing.B) {
			s, p := benchSession(journal)
			var in input = fromClient{p, "", protocol.InputAudioAppend{Chunk: strings.Repeat("A", 856)}}
			b.ReportAllocs()
			for b.Loop() {
				s.journal.input(s.now, in)
				if err := s.step(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkResume is a resume of 4,096 events, as far as the session has to do with it.
func BenchmarkResume(b *testing.B) {
	s, _ := benchSession(false)
	for i := range maxEvents {
		s.emit(protocol.ResponseTextDelta{Text: fmt.Sprintf("piece %d of an answer ", i), ResponseID: "r1"})
	}
	p := &sink{}
	b.ReportAllocs()
	for b.Loop() {
		s.resume(p, s.events.last-maxEvents)
	}
	b.ReportMetric(float64(p.events)/float64(b.N), "events/op")
}
