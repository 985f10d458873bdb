package session

import (
	"context"
	"encoding/base64"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
)

// teller answers with a text in one piece; hummer speaks 60 ms of silence for each byte, without a pause; listens hears
// the same question always.
type (
	teller  string
	hummer  struct{}
	listens struct{}
)

func (t teller) Run(context.Context, turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		_ = yield(signal.TextDelta{Content: string(t)}, nil) && yield(signal.Completion{Success: true}, nil)
	}
}

func (hummer) Synthesize(_ context.Context, text string) iter.Seq2[speech.Chunk, error] {
	return func(yield func(speech.Chunk, error) bool) {
		left := speech.Count(time.Duration(len(text))*60*time.Millisecond, speech.Rate)
		for piece := speech.Count(speech.LongestChunk, speech.Rate); left > 0; left -= piece {
			if !yield(speech.Chunk{Samples: make([]int16, min(left, piece)), Rate: speech.Rate}, nil) {
				return
			}
		}
	}
}

func (listens) Transcribe(_ context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		for range audio {
		}
		yield(speech.Transcript{Text: "when does the boat sail", Final: true}, nil)
	}
}

// benchTalk is what an agent says in a minute or so.
var benchTalk = strings.Repeat("The tide turns at three, and then we sail around the island. ", 20)

func talking(text string) *Session {
	return New(Config{
		ID: "bench", Version: 2, Turns: Agent, Mock: deterministic.Engine{}, Log: slog.New(slog.DiscardHandler),
		Transcriber: listens{}, Voices: []NamedVoice{{"hummer", hummer{}}}, Agents: []NamedEngine{{Name: "a", Engine: teller(text)}},
	})
}

var benchVoice = protocol.SessionStart{Audio: &protocol.AudioFormats{
	Input:  &protocol.Format{Encoding: "pcm16", Rate: speech.Rate, Framing: "binary"},
	Output: &protocol.Format{Encoding: "pcm16", Rate: speech.Rate, Framing: "json"},
}}

// follow is a peer that says when an event of some type has come.
type follow struct {
	of   string
	came chan struct{}
}

func (f *follow) Send(e Event) {
	if e.Message.Type() == f.of {
		select {
		case f.came <- struct{}{}:
		default:
		}
	}
}
func (f *follow) Resend([]Event)                   {}
func (f *follow) Close(protocol.CloseCode, string) {}

// BenchmarkSpeakingSession is the memory of a session with sound both ways: two seconds were said to it, and it speaks a
// minute to a client that has played nothing yet, which is when most of it waits. A session that idles is the floor.
func BenchmarkSpeakingSession(b *testing.B) {
	const sessions = 200
	for _, speaks := range []bool{false, true} {
		b.Run(map[bool]string{false: "idle, the floor", true: "speaking"}[speaks], func(b *testing.B) {
			total := 0
			for b.Loop() {
				before := heapNow()
				ctx, stop := context.WithCancel(b.Context())
				done := make(chan struct{}, sessions)
				for range sessions {
					s := talking(benchTalk)
					go func() { s.Run(ctx); done <- struct{}{} }()
					p := &follow{of: "session.state", came: make(chan struct{}, 1)}
					if speaks {
						p.of = "response.audio.delta"
					}
					post(b, s.Join(ctx, p, Hello{}))
					if speaks {
						post(b, s.Receive(ctx, p, "", benchVoice))
						for range 50 {
							post(b, s.Receive(ctx, p, "", Audio{PCM: make([]byte, 1280)}))
						}
						post(b, s.Receive(ctx, p, "", protocol.InputTextSubmit{Text: "when does the boat sail"}))
					}
					<-p.came
				}
				time.Sleep(100 * time.Millisecond) // the voices have made what may wait
				total += heapNow() - before
				stop()
				for range sessions {
					<-done
				}
			}
			b.ReportMetric(float64(total)/float64(b.N)/sessions/1e3, "KB/session")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTextToSpeak is 10 MB of text at once: what it holds, and how long the session is busy with its sentences.
func BenchmarkTextToSpeak(b *testing.B) {
	text := strings.Repeat(benchTalk, 10<<20/len(benchTalk))
	b.SetBytes(int64(len(text)))
	held := 0
	for b.Loop() {
		before := heapNow()
		s := talking(text)
		ctx, stop := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		p := &follow{of: "response.audio.delta", came: make(chan struct{}, 1)}
		post(b, s.Join(ctx, p, Hello{}))
		post(b, s.Receive(ctx, p, "", benchVoice))
		post(b, s.Receive(ctx, p, "", protocol.InputTextSubmit{Text: "when does the boat sail"}))
		<-p.came
		held += heapNow() - before
		stop()
		<-done
	}
	b.ReportMetric(float64(held)/float64(b.N)/float64(len(text)), "held/byte")
}

// BenchmarkSound is an event of 40 ms of sound on its way from the synthesizer to the client, and its acknowledgement:
// copied and encoded only, which is the floor, and through a session, without and with a journal.
func BenchmarkSound(b *testing.B) {
	n := speech.Count(chunkLength, speech.Rate)
	b.Run("floor", func(b *testing.B) {
		_, p := benchSession(false)
		samples := make([]int16, n)
		b.ReportAllocs()
		for b.Loop() {
			p.Send(Event{Message: protocol.ResponseAudioDelta{Chunk: base64.StdEncoding.EncodeToString(speech.Bytes(append([]int16(nil), samples...)))}})
		}
	})
	for _, journal := range []bool{false, true} {
		b.Run(map[bool]string{false: "through a session", true: "and journaled"}[journal], func(b *testing.B) {
			s, p := benchSession(journal)
			v := &voice{rate: speech.Rate, spoken: []speech.Sentence{{}}}
			s.answer = &answer{id: "r1", voice: v}
			made := piece{chunk: speech.Chunk{Samples: make([]int16, n), Rate: speech.Rate}}
			b.ReportAllocs()
			for b.Loop() {
				ack := fromClient{p, "", protocol.PlaybackAck{ResponseID: "r1", PlayedMs: v.duration(v.sent).Milliseconds()}}
				for _, in := range []input{made, ack} {
					s.journal.input(s.now, in)
					if err := s.step(b.Context(), in); err != nil {
						b.Fatal(err)
					}
				}
			}
			if want := b.N + 1; p.events < want {
				b.Fatalf("%d events of %d", p.events, want)
			}
		})
	}
}

func post(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func heapNow() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
