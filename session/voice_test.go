package session_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
)

// drone is a [session.Synthesizer] that speaks 50 ms for each byte, in chunks of 40 ms: a tone whose samples are all the
// number of the sentence. A pause comes before every chunk.
type drone struct {
	rate  int
	pause time.Duration
	spoke atomic.Int64 // sentences
	fails func(sentence, chunk int) error
}

func (d *drone) Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error] {
	return func(yield func(speech.Chunk, error) bool) {
		n := int(d.spoke.Add(1))
		left := speech.Count(time.Duration(len(text))*50*time.Millisecond, d.rate)
		for k := 0; left > 0; k++ {
			if d.fails != nil {
				if err := d.fails(n, k); err != nil {
					yield(speech.Chunk{}, err)
					return
				}
			}
			if d.pause > 0 && sleep(ctx, d.pause) != nil {
				return
			}
			samples := make([]int16, min(left, speech.Count(40*time.Millisecond, d.rate)))
			for i := range samples {
				samples[i] = int16(n)
			}
			left -= len(samples)
			if !yield(speech.Chunk{Samples: samples, Rate: d.rate}, nil) {
				return
			}
		}
	}
}

// player is a client that plays what it is sent and says so four times a second. Time is that of the bubble.
type player struct {
	*client
	stuck  bool // it acknowledges nothing
	stops  time.Duration
	played time.Duration
	got    time.Duration // of sound, in all
	most   time.Duration // how much of it was ahead of what had been acknowledged
	text   string        // that went with it
	gap    bool
	id     string
	acked  time.Duration
}

var withVoice = protocol.SessionStart{Audio: &protocol.AudioFormats{Output: &protocol.Format{Encoding: "pcm16", Rate: 24000, Framing: "json"}}}

// named are voices as a session has them: voice1, voice2, …
func named(voices ...session.Synthesizer) []session.NamedVoice {
	var list []session.NamedVoice
	for i, v := range voices {
		list = append(list, session.NamedVoice{Name: fmt.Sprintf("voice%d", i+1), Synthesizer: v})
	}
	return list
}

// listener joins a session that answers with e and speaks with the voices.
func listener(t *testing.T, e engine, voices ...session.Synthesizer) *player {
	t.Helper()
	cfg := version2(agentBacked(nil, e))
	cfg.Voices = named(voices...)
	p := &player{client: start(t, cfg)}
	p.onSend = p.hear
	p.join()
	p.send(withVoice)
	synctest.Wait()
	return p
}

// hear takes sound. It is called by the session's goroutine.
func (p *player) hear(e session.Event) {
	m, ok := e.Message.(protocol.ResponseAudioDelta)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pcm, _ := base64.StdEncoding.DecodeString(m.Chunk)
	if p.id != m.ResponseID {
		p.id, p.got, p.played, p.text, p.acked = m.ResponseID, 0, 0, "", 0
	}
	if m.StartMs != p.got.Milliseconds() {
		p.gap = true
	}
	p.got += speech.BytesDuration(len(pcm), 24000)
	p.most = max(p.most, p.got-p.acked)
	p.text += m.Text
}

// play plays for so long.
func (p *player) play(long time.Duration) {
	const step = 50 * time.Millisecond
	for end := time.Now().Add(long); time.Now().Before(end); {
		time.Sleep(step)
		synctest.Wait()
		if ack, due := p.step(step); due {
			p.send(ack)
			synctest.Wait()
		}
	}
}

// step plays a little, and says whether it is time to say so.
func (p *player) step(long time.Duration) (ack protocol.PlaybackAck, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stuck || p.id == "" {
		return ack, false
	}
	p.played = min(p.played+long, p.got)
	if p.played-p.acked < 200*time.Millisecond && p.played < p.got {
		return ack, false
	}
	p.acked = p.played
	return protocol.PlaybackAck{ResponseID: p.id, PlayedMs: p.played.Milliseconds()}, true
}

// last is the last event of its type.
func last[M protocol.Message](p *player) (m M, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.shown {
		if found, is := e.Message.(M); is {
			m, ok = found, true
		}
	}
	return m, ok
}

const story = "It is noon. The tide turns at three, and then we sail. Be there."

func tells(text string) engine {
	return says(strings.SplitAfter(text, " ")...)
}

func TestTheAnswerIsSpoken(t *testing.T) {
	for _, rate := range []int{16000, 24000, 22050} {
		synctest.Test(t, func(t *testing.T) {
			p := listener(t, tells(story), &drone{rate: rate})
			p.send(typed("when?"))
			p.play(time.Second)
			if done, _ := last[protocol.ResponseCompleted](p); done.ResponseID != "" {
				t.Error("the answer was over before it was played")
			}
			if state, _ := last[protocol.SessionState](p); state.Value != protocol.Speaking {
				t.Errorf("while it is spoken the session is %s", state.Value)
			}
			p.play(10 * time.Second)
			spoken := time.Duration(len("It is noon.")+len("The tide turns at three, and then we sail.")+len("Be there.")) * 50 * time.Millisecond
			if d := p.got - spoken; p.gap || d < -5*time.Millisecond || d > 5*time.Millisecond {
				t.Errorf("%d Hz: %v were played, want %v; a gap: %t", rate, p.got, spoken, p.gap)
			}
			if p.text != story {
				t.Errorf("what was said to be spoken is %q", p.text)
			}
			if p.most > 400*time.Millisecond {
				t.Errorf("%v were ahead of what had been acknowledged", p.most)
			}
			if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
				t.Errorf("it ended with %+v", done)
			}
			if m, _ := last[protocol.TurnMetrics](p); m.FirstAudioMs == nil || *m.FirstAudioMs > 100 {
				t.Errorf("the metrics are %+v", m)
			}
			if state, _ := last[protocol.SessionState](p); state.Value != protocol.Idle {
				t.Errorf("in the end the session is %s", state.Value)
			}
		})
	}
}

func TestNobodyHearsWhoDoesNotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := version2(agentBacked(nil, tells(story)))
		voice := &drone{rate: 24000}
		cfg.Voices = named(voice)
		c := start(t, cfg)
		c.join()
		c.send(typed("when?"))
		synctest.Wait()
		for _, e := range c.shown {
			if _, ok := e.Message.(protocol.ResponseAudioDelta); ok || voice.spoke.Load() > 0 {
				t.Fatal("it was spoken")
			}
		}
		if done := c.shown[len(c.shown)-3].Message.(protocol.ResponseCompleted); done.HeardText != story {
			t.Errorf("it ended with %+v", done)
		}
	})
}

// The first sentence is spoken while the second is still being written.
func TestTheFirstSentenceDoesNotWaitForTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			if yield(delta("It is noon. "), nil) && yield(delta("The"), nil) && sleep(ctx, time.Minute) == nil && yield(delta(" end."), nil) {
				yield(done, nil)
			}
		}, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(2 * time.Second)
		if want := time.Duration(len("It is noon.")) * 50 * time.Millisecond; p.got != want {
			t.Errorf("%v were played, want %v", p.got, want)
		}
		p.play(61 * time.Second)
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != "It is noon. The end." {
			t.Errorf("it ended with %+v", done)
		}
	})
}

// What was heard is what was played, to the word, wherever the answer is broken off; an acknowledgement that comes late
// counts, and the agent is told.
func TestHeardIsWhatWasPlayed(t *testing.T) {
	for stop := 100 * time.Millisecond; stop < 3*time.Second; stop += 130 * time.Millisecond {
		for _, late := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := &remembers{plan: func(int) engine { return tells(story) }}
				p := listener(t, r.engine(), &drone{rate: 24000})
				p.send(typed("when?"))
				p.play(stop)
				cancelled := protocol.ResponseCancel{ResponseID: p.id}
				if !late {
					cancelled.PlayedMs = p.played.Milliseconds()
				}
				p.send(cancelled)
				synctest.Wait()
				if late {
					p.send(protocol.PlaybackAck{ResponseID: p.id, PlayedMs: p.played.Milliseconds()})
				}
				want := wordsWithin(p.played)
				if got, _ := last[protocol.ResponseCancelled](p); !late && (got.HeardText != want || got.PlayedMs != p.played.Milliseconds()) || !strings.HasPrefix(want, got.HeardText) {
					t.Errorf("after %v it ended with %+v, want %q", p.played, got, want)
				}
				p.send(protocol.HistoryGet{}, typed("and?"))
				synctest.Wait()
				h, _ := last[protocol.History](p)
				if len(h.Items) != 2 || h.Items[1].Text != story || h.Items[1].HeardText == nil || *h.Items[1].HeardText != want {
					t.Errorf("after %v the history is %+v, want %q to be heard", p.played, h.Items, want)
				}
				if told := r.requests[1].History; len(told) != 2 || told[1].Text != want || !told[1].Interrupted {
					t.Errorf("the agent is told %+v", told)
				}
			})
		}
	}
}

// wordsWithin is what of the story can have been heard of a drone by then.
func wordsWithin(played time.Duration) string {
	sentences := []string{"It is noon.", "The tide turns at three, and then we sail.", "Be there."}
	heard, at := 0, time.Duration(0)
	for i, s := range sentences {
		of := strings.Index(story, s)
		whole := s
		if i > 0 {
			whole = " " + s // the space before it is its own
			of--
		}
		length := time.Duration(len(s)) * 50 * time.Millisecond
		for end := 1; end <= len(whole); end++ {
			if end < len(whole) && whole[end] != ' ' {
				continue
			}
			if at+length*time.Duration(end)/time.Duration(len(whole)) <= played {
				heard = of + end
			}
		}
		at += length
	}
	return story[:heard]
}

// A client that plays nothing is sent no more than it can hold, one that never says so is sent sound by the clock, and
// while nobody is there it waits.
func TestSoundWaitsForTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(story), &drone{rate: 24000})
		p.stuck = true
		p.send(typed("when?"))
		p.play(1900 * time.Millisecond)
		if p.got != 400*time.Millisecond {
			t.Errorf("%v were sent to a client that has played nothing", p.got)
		}
		p.play(3 * time.Second)
		if p.got < 3*time.Second || p.got > 3500*time.Millisecond {
			t.Errorf("%v were sent to a client that never says what it has played", p.got)
		}
		p.play(5 * time.Second)
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
			t.Errorf("it ended with %+v", done)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(story), &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(500 * time.Millisecond)
		p.session.Leave(p.client)
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.got > 900*time.Millisecond {
			t.Errorf("%v were sent while nobody was there", p.got)
		}
		p.join()
		p.play(10 * time.Second)
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap {
			t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
		}
	})
}

// The next voice takes over where one fails, the client is told, and without any the answer goes on as text.
func TestAVoiceThatFails(t *testing.T) {
	broken := errors.New("no such device: /dev/dsp")
	at := func(sentence, chunk int) func(int, int) error {
		return func(s, c int) error {
			if s == sentence && c == chunk {
				return broken
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		voices []session.Synthesizer
		errors []string
		spoken time.Duration
	}{
		{"before it begins", []session.Synthesizer{&drone{rate: 24000, fails: at(1, 0)}, &drone{rate: 16000}}, []string{"Another one goes on."}, 3100 * time.Millisecond},
		{"in the middle", []session.Synthesizer{&drone{rate: 24000, fails: at(2, 5)}, &drone{rate: 16000}}, []string{"Another one goes on."}, 3100 * time.Millisecond},
		{"the only one", []session.Synthesizer{&drone{rate: 24000, fails: at(2, 5)}}, []string{"The answer is shown as text."}, 550 * time.Millisecond},
		{"all of them", []session.Synthesizer{&drone{rate: 24000, fails: at(1, 0)}, &drone{rate: 16000, fails: at(1, 0)}}, []string{"Another one goes on.", "The answer is shown as text."}, 0},
		{"at a rate that is none", []session.Synthesizer{&drone{rate: 1}}, []string{"The answer is shown as text."}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := listener(t, tells(story), c.voices...)
			p.send(typed("when?"))
			p.play(10 * time.Second)
			var told []string
			for _, e := range p.shown {
				if m, ok := e.Message.(protocol.Error); ok {
					told = append(told, m.Message)
					if m.Code != protocol.CodeSpeechFailed || strings.Contains(m.Message, "/dev") {
						t.Errorf("%s: %+v", c.name, m)
					}
				}
			}
			if len(told) != len(c.errors) {
				t.Errorf("%s: the client was told %q, want %q", c.name, told, c.errors)
			}
			for i := range min(len(told), len(c.errors)) {
				if !strings.Contains(told[i], c.errors[i]) {
					t.Errorf("%s: the client was told %q, want %q", c.name, told, c.errors)
				}
			}
			if d := p.got - c.spoken; d < 0 || d > 210*time.Millisecond {
				t.Errorf("%s: %v were spoken, want %v or a little more", c.name, p.got, c.spoken)
			}
			if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
				t.Errorf("%s: it ended with %+v", c.name, done)
			}
		})
	}
}

// A hundred answers, cut anywhere, by anybody: nothing of an answer is sent after its end, and its journal replays.
func TestAnswersCutWhileTheyAreSpoken(t *testing.T) {
	for n := range 100 {
		synctest.Test(t, func(t *testing.T) {
			p := listener(t, tells(story), &drone{rate: 16000, pause: time.Duration(n%4) * 15 * time.Millisecond})
			p.send(typed("when?"))
			p.play(time.Duration(n) * 37 * time.Millisecond)
			switch n % 3 {
			case 0:
				p.send(cancel)
			case 1:
				p.send(typed("no, wait"))
			case 2:
				p.send(silence(20 * time.Millisecond))
			}
			synctest.Wait()
			over := ""
			for _, e := range p.shown {
				switch m := e.Message.(type) {
				case protocol.ResponseCancelled:
					over = m.ResponseID
				case protocol.ResponseAudioDelta:
					if m.ResponseID == over {
						t.Fatalf("sound of %s after its end", over)
					}
				}
			}
		})
	}
}

// A session with nothing to do for its voice sleeps: while the agent thinks on, while a client plays nothing for a while,
// while the rest of the answer is text alone.
func TestAVoiceThatWaitsIsQuiet(t *testing.T) {
	thinks := func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if yield(delta("It is noon. And"), nil) && sleep(ctx, time.Minute) == nil && yield(delta(" so on."), nil) {
			yield(done, nil)
		}
	}
	writes := func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if yield(delta("It is noon. Or one. Or"), nil) && sleep(ctx, time.Minute) == nil && yield(delta(" so."), nil) {
			yield(done, nil)
		}
	}
	fails := func(s, _ int) error {
		if s == 2 {
			return errors.New("gone")
		}
		return nil
	}
	for _, c := range []struct {
		name   string
		engine engine
		voice  *drone
		pauses bool
	}{
		{"the agent thinks", thinks, &drone{rate: 24000}, false},
		{"the client plays nothing", tells(story), &drone{rate: 24000}, true},
		{"the voice has failed", writes, &drone{rate: 24000, fails: fails}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var journal file
			synctest.Test(t, func(t *testing.T) {
				cfg := version2(agentBacked(nil, c.engine))
				cfg.Voices = named(c.voice)
				cfg.Journal = func() io.WriteCloser { return &journal }
				p := &player{client: start(t, cfg)}
				p.onSend = p.hear
				p.join()
				p.send(withVoice, typed("when?"))
				synctest.Wait()
				p.play(2 * time.Second)
				p.stuck = c.pauses
				p.play(50 * time.Second)
				p.stuck = false
				p.play(30 * time.Second)
				if done, ok := last[protocol.ResponseCompleted](p); !ok {
					t.Errorf("it ended with %+v", done)
				}
				p.cancel(session.ErrShutdown)
				<-p.ended
			})
			if n := strings.Count(journal.String(), `"tick"`); n > 100 {
				t.Errorf("the session woke %d times in a minute and a half", n)
			}
		})
	}
}

// Whoever has chosen a voice hears that one, and where it fails the first of the others; the choice outlives a change of other settings.
func TestAChosenVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &drone{rate: 24000}, &drone{rate: 24000}
		p := listener(t, tells(story), first, second)
		if got, _ := last[protocol.SessionReady](p); got.Voice != "voice1" {
			t.Errorf("without a word the voice is %q", got.Voice)
		}
		p.send(protocol.SessionStart{Voice: "nobody"})
		synctest.Wait()
		if e, _ := last[protocol.Error](p); e.Code != protocol.CodeUnsupported || !strings.Contains(e.Message, "voice1, voice2") {
			t.Errorf("a voice that is not there: %+v", e)
		}
		p.send(protocol.SessionStart{Voice: "voice2"})
		p.send(withVoice)
		synctest.Wait()
		if got, _ := last[protocol.SessionReady](p); got.Voice != "voice2" {
			t.Errorf("the voice is %q", got.Voice)
		}
		p.send(typed("when?"))
		p.play(10 * time.Second)
		if first.spoke.Load() != 0 || second.spoke.Load() == 0 {
			t.Errorf("the voices spoke %d and %d sentences", first.spoke.Load(), second.spoke.Load())
		}
		second.fails = func(int, int) error { return errSecret }
		p.send(typed("when?"))
		p.play(10 * time.Second)
		if first.spoke.Load() == 0 {
			t.Error("nobody speaks where the chosen voice fails")
		}
	})
}
