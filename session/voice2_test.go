package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
)

// voiceFunc is a [session.Synthesizer] made of a function.
type voiceFunc func(ctx context.Context, text string, yield func(speech.Chunk, error) bool)

func (f voiceFunc) Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error] {
	return func(yield func(speech.Chunk, error) bool) { f(ctx, text, yield) }
}

// hum is so much sound.
func hum(d time.Duration, rate int) speech.Chunk {
	return speech.Chunk{Samples: make([]int16, speech.Count(d, rate)), Rate: rate}
}

// told is what a client was told of errors.
func (p *player) told() (words []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.shown {
		if m, ok := e.Message.(protocol.Error); ok {
			words = append(words, string(m.Code)+": "+m.Message)
		}
	}
	return words
}

// sent is how much sound the player was, so far.
func (p *player) sent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

const voiceChanged, voiceLost = "speech_failed: The voice failed. Another one goes on.", "speech_failed: The voice failed. The answer is shown as text."

// A voice may do anything: the client is told once, the next voice goes on, and the answer ends.
func TestAVoiceThatIsNone(t *testing.T) {
	for name, bad := range map[string]voiceFunc{
		"fails in mid-sentence": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			_ = yield(hum(200*time.Millisecond, 24000), nil) && yield(speech.Chunk{}, errSecret)
		},
		"speaks at 0 Hz": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(speech.Chunk{Samples: make([]int16, 100)}, nil)
		},
		"speaks at 1 Hz": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(speech.Chunk{Samples: make([]int16, 100), Rate: 1}, nil)
		},
		"speaks at 10^9 Hz": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(speech.Chunk{Samples: make([]int16, 100), Rate: 1e9}, nil)
		},
		"speaks at a rate below none": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(speech.Chunk{Samples: make([]int16, 100), Rate: -24000}, nil)
		},
		"has a chunk of ten minutes": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(hum(10*time.Minute, 24000), nil)
		},
		"never ends": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			for c := hum(time.Second, 24000); yield(c, nil); {
			}
		},
		"says nothing": func(ctx context.Context, _ string, _ func(speech.Chunk, error) bool) { <-ctx.Done() },
		"says nothing, and says why": func(ctx context.Context, _ string, yield func(speech.Chunk, error) bool) {
			<-ctx.Done()
			yield(speech.Chunk{}, context.Cause(ctx))
		},
		"begins and stops": func(ctx context.Context, _ string, yield func(speech.Chunk, error) bool) {
			if yield(hum(time.Second, 24000), nil) {
				<-ctx.Done()
			}
		},
		"yields nothing for ever": func(ctx context.Context, _ string, yield func(speech.Chunk, error) bool) {
			for ctx.Err() == nil && yield(speech.Chunk{Rate: 24000}, nil) {
				_ = sleep(ctx, time.Second)
			}
		},
		"panics": func(context.Context, string, func(speech.Chunk, error) bool) { panic(errSecret) },
		"panics in mid-sentence": func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(hum(200*time.Millisecond, 24000), nil)
			panic("no such page")
		},
	} {
		for _, voices := range [][]session.Synthesizer{{bad}, {bad, &drone{rate: 24000}}, {bad, bad}} {
			t.Run(fmt.Sprint(name, ", one of ", len(voices)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := listener(t, tells(story), voices...)
					p.send(typed("when?"))
					p.play(5 * time.Minute)
					want := []string{voiceChanged}
					switch {
					case len(voices) == 1:
						want = []string{voiceLost}
					case voices[1] != nil && fmt.Sprintf("%T", voices[1]) == fmt.Sprintf("%T", bad):
						want = []string{voiceChanged, voiceLost}
					}
					if got := p.told(); !slices.Equal(got, want) {
						t.Errorf("told %q, want %q", got, want)
					}
					if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap {
						t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
					}
					p.send(typed("and?")) // the session goes on
					synctest.Wait()
					if m, _ := last[protocol.ResponseCreated](p); m.ResponseID != "r2" {
						t.Errorf("the next answer is %+v", m)
					}
				})
			})
		}
	}
}

// A voice that makes no sound of a sentence has spoken it.
func TestAVoiceThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(story), voiceFunc(func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			yield(speech.Chunk{Rate: 24000}, nil)
		}))
		p.send(typed("when?"))
		p.play(time.Second)
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || len(p.told()) > 0 || p.got > 0 {
			t.Errorf("it ended with %+v, %q", done, p.told())
		}
	})
}

// What waits of a voice that never ends is bounded, in samples that it has made.
func TestWhatAVoiceMakesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := time.Duration(0)
		p := listener(t, tells(story), voiceFunc(func(_ context.Context, _ string, yield func(speech.Chunk, error) bool) {
			for c := hum(time.Second, 24000); yield(c, nil); made += c.Duration() {
			}
		}))
		p.stuck = true
		p.send(typed("when?"))
		p.play(time.Second)
		if made > 125*time.Second {
			t.Errorf("%v of sound were made for nobody", made)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := &drone{rate: 24000}
		p := listener(t, tells(strings.Repeat("The tide turns at three. ", 1000)), d)
		p.stuck = true
		p.send(typed("when?"))
		p.play(time.Second)
		if n := d.spoke.Load(); n > 12 { // of 1.2 s each
			t.Errorf("%d sentences were made for nobody", n)
		}
	})
}

// A sentence that breaks off is said again by the next voice, from its beginning, and what was made of it and not sent is never heard. Until
// then no word counts as heard that cannot have been spoken: half of a sentence has half of its words.
func TestASentenceThatBreaksOff(t *testing.T) {
	const long, rest = "The tide turns at three and then we sail around the island.", " Be there."
	breaks := func(after time.Duration) session.Synthesizer {
		return voiceFunc(func(ctx context.Context, _ string, yield func(speech.Chunk, error) bool) {
			_ = yield(hum(after, 24000), nil) && sleep(ctx, 700*time.Millisecond) == nil && yield(speech.Chunk{}, errors.New("no more"))
		})
	}
	for _, c := range []struct {
		stop   time.Duration
		voices int
		heard  string
	}{
		{500 * time.Millisecond, 1, "The"},
		{500 * time.Millisecond, 2, "The"},
		{900 * time.Millisecond, 1, long + rest}, // all that was shown, as from now on there is no sound
		{900 * time.Millisecond, 2, "The tide"},  // of the first second, at the slowest that anybody speaks
		{1900 * time.Millisecond, 2, "The tide turns at"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := listener(t, tells(long+rest), []session.Synthesizer{breaks(time.Second), &drone{rate: 24000}}[:c.voices]...)
			p.send(typed("when?"))
			p.play(c.stop)
			p.send(protocol.ResponseCancel{PlayedMs: p.played.Milliseconds()})
			synctest.Wait()
			if got, _ := last[protocol.ResponseCancelled](p); got.HeardText != c.heard {
				t.Errorf("%d voices: after %v %q is heard, want %q", c.voices, c.stop, got.HeardText, c.heard)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(long+rest), breaks(5*time.Second), &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(20 * time.Second)
		again := time.Duration(len(long)+len("Be there.")) * 50 * time.Millisecond
		if sent := p.got - again; sent < 700*time.Millisecond || sent > 1100*time.Millisecond || p.gap {
			t.Errorf("%v were played, %v more than the whole answer takes", p.got, sent)
		}
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != long+rest || p.text != long+rest {
			t.Errorf("it ended with %+v; %q was told to be spoken", done, p.text)
		}
	})
}

// ticks are how often a session's timer rang, by its journal.
type ticks struct{ n int }

func (k *ticks) Write(line []byte) (int, error) {
	var l struct{ In struct{ Kind string } }
	if err := json.Unmarshal(line, &l); err != nil {
		return 0, err
	}
	if l.In.Kind == "tick" {
		k.n++
	}
	return len(line), nil
}

func (*ticks) Close() error { return nil }

// A session whose sound waits for something sleeps: its timer rings only where time itself is what is waited for.
func TestSoundThatWaitsCostsNothing(t *testing.T) {
	pauses := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if yield(delta("It is noon. "), nil) && yield(delta("The"), nil) && sleep(ctx, time.Minute) == nil && yield(delta(" end."), nil) {
			yield(done, nil)
		}
	})
	for _, c := range []struct {
		name  string
		agent engine
		voice session.Synthesizer
		most  int
		do    func(p *player)
	}{
		{"the agent pauses", pauses, &drone{rate: 24000}, 10, func(p *player) { p.play(70 * time.Second) }},
		{"the agent pauses, and nothing is acknowledged", pauses, &drone{rate: 24000}, 40, func(p *player) { p.stuck = true; p.play(70 * time.Second) }},
		{"the client stalls", tells(story), &drone{rate: 24000}, 10, func(p *player) { p.play(time.Second); p.stuck = true; p.play(5 * time.Minute) }},
		{"the client goes", tells(story), &drone{rate: 24000}, 10, func(p *player) { p.play(time.Second); p.session.Leave(p.client); time.Sleep(time.Minute) }},
		{"the client goes and has acknowledged nothing", tells(story), &drone{rate: 24000}, 10, func(p *player) {
			p.stuck = true
			p.play(time.Second)
			p.session.Leave(p.client)
			time.Sleep(time.Minute)
		}},
		{"the voice is silent", tells(story), voiceFunc(func(ctx context.Context, _ string, yield func(speech.Chunk, error) bool) {
			_ = yield(hum(time.Second, 24000), nil)
			<-ctx.Done()
		}), 10, func(p *player) { p.play(80 * time.Second) }},
		{"all is played", tells(story), &drone{rate: 24000}, 10, func(p *player) { p.play(time.Minute) }},
		{"by the clock", tells(story), &drone{rate: 24000}, 80, func(p *player) { p.stuck = true; p.play(10 * time.Second) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := version2(agentBacked(nil, c.agent))
				var k ticks
				cfg.Voices, cfg.Journal = named(c.voice), func() io.WriteCloser { return &k }
				p := &player{client: start(t, cfg)}
				p.onSend = p.hear
				p.join()
				p.send(withVoice, typed("when?"))
				c.do(p)
				synctest.Wait()
				p.cancel(nil)
				<-p.ended
				if k.n > c.most {
					t.Errorf("the timer rang %d times, want %d at most", k.n, c.most)
				}
			})
		})
	}
}

// A client that has stalled for good does not keep its session for good, one that is spoken to by the clock keeps it.
func TestAStalledClientIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(story), &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(time.Second)
		p.stuck = true
		p.play(21 * time.Minute)
		if len(p.closed) != 1 || !strings.HasPrefix(p.closed[0], "4005") && !strings.Contains(p.closed[0], "nothing was said") {
			t.Errorf("closed %q", p.closed)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(strings.Repeat(story+" ", 250)), &drone{rate: 24000})
		p.stuck = true
		p.send(typed("when?"))
		p.play(12 * time.Minute)
		if len(p.closed) != 0 || p.got < 11*time.Minute {
			t.Errorf("after %v closed %q", p.got, p.closed)
		}
	})
}

// A client that acknowledges nothing and was away for a while is not sent all of that while at once.
func TestTheClockStandsStillWhileNobodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(strings.Repeat(story+" ", 30)), &drone{rate: 24000})
		p.stuck = true
		p.send(typed("when?"))
		p.play(5 * time.Second)
		before := p.sent()
		p.session.Leave(p.client)
		time.Sleep(time.Minute)
		p.join()
		synctest.Wait()
		if more := p.sent() - before; more > 100*time.Millisecond {
			t.Errorf("%v were sent at once to a client that came back", more)
		}
		p.play(5 * time.Second)
		if more := p.sent() - before; more < 4*time.Second || more > 6*time.Second {
			t.Errorf("%v were sent in the 5 s after", more)
		}
	})
}

// An answer whose client acknowledges nothing ends soon after the last of its sound.
func TestTheEndByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(strings.Repeat(story+" ", 10)), &drone{rate: 24000})
		p.stuck = true
		p.send(typed("when?"))
		p.play(40 * time.Second)
		done, ended := time.Time{}, time.Time{}
		for i, e := range p.shown {
			switch e.Message.(type) {
			case protocol.ResponseAudioDelta:
				done = p.times[i]
			case protocol.ResponseCompleted:
				ended = p.times[i]
			}
		}
		if d := ended.Sub(done); d < time.Second || d > 1500*time.Millisecond {
			t.Errorf("it ended %v after the last of its sound", d)
		}
	})
}

// Whatever a client claims to have played, no more is heard than was sent, and a claim below nothing is refused.
func TestWhatAClientClaims(t *testing.T) {
	for ms, want := range map[int64]string{
		math.MaxInt64: "sent", 1 << 62: "sent", math.MaxInt64/1_000_000 + 1: "sent", 1 << 40: "sent", 3: "none", 0: "none",
		-1: "refused", math.MinInt64: "refused",
	} {
		for _, late := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := listener(t, tells(story), &drone{rate: 24000})
				p.stuck = true
				p.send(typed("when?"))
				p.play(time.Second)
				ack := protocol.PlaybackAck{ResponseID: p.id, PlayedMs: ms}
				sent := wordsWithin(p.got)
				if late {
					p.send(cancel, ack)
				} else {
					p.send(ack, cancel)
				}
				p.send(protocol.HistoryGet{})
				synctest.Wait()
				words := ""
				if want == "sent" && late {
					words = sent
				}
				h, _ := last[protocol.History](p)
				heard := *h.Items[1].HeardText
				refused := len(p.told()) == 1 && strings.HasPrefix(p.told()[0], "invalid_message: playedMs")
				if refused != (want == "refused") || want != "sent" && heard != "" || late && heard != words {
					t.Errorf("%d, late %t: told %q, heard %q, want %s %q", ms, late, p.told(), heard, want, words)
				}
				if !late && want == "sent" && heard == "" {
					t.Errorf("%d: nothing is heard", ms)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) { // of a cancel, too
		p := listener(t, tells(story), &drone{rate: 24000})
		p.stuck = true
		p.send(typed("when?"))
		p.play(time.Second)
		p.send(protocol.ResponseCancel{PlayedMs: 1 << 62})
		synctest.Wait()
		if got, _ := last[protocol.ResponseCancelled](p); got.PlayedMs != 400 {
			t.Errorf("400 ms were sent: %+v", got)
		}
	})
}

// Acknowledgements of an answer that is over, of one that there never was, and after the conversation went on.
func TestAcknowledgementsThatComeLate(t *testing.T) {
	heard := func(p *player) []string {
		p.send(protocol.HistoryGet{})
		synctest.Wait()
		h, _ := last[protocol.History](p)
		var words []string
		for _, item := range h.Items {
			if item.Role == "assistant" && item.HeardText != nil {
				words = append(words, *item.HeardText)
			} else {
				words = append(words, item.Text)
			}
		}
		return words
	}
	answers := engine(func(ctx context.Context, req turn.Request, yield yieldSignal) {
		if req.Text == "hm?" { // is never answered, so that its turn has no words, whenever it is cancelled
			<-ctx.Done()
			return
		}
		tells(story)(ctx, req, yield)
	})
	cut := func(t *testing.T) *player {
		p := listener(t, answers, &drone{rate: 24000})
		p.stuck = true
		p.send(typed("when?"))
		p.play(100 * time.Millisecond)
		p.send(cancel)
		synctest.Wait()
		return p
	}
	ack := protocol.PlaybackAck{ResponseID: "r1", PlayedMs: 400}
	for name, c := range map[string]struct {
		do   func(p *player)
		want []string
	}{
		"in time":         {func(p *player) { p.play(1900 * time.Millisecond); p.send(ack) }, []string{"when?", "It is"}},
		"too late":        {func(p *player) { p.play(2100 * time.Millisecond); p.send(ack) }, []string{"when?", ""}},
		"of another":      {func(p *player) { p.send(protocol.PlaybackAck{ResponseID: "r7", PlayedMs: 400}) }, []string{"when?", ""}},
		"of nobody":       {func(p *player) { p.send(protocol.PlaybackAck{PlayedMs: 400}) }, []string{"when?", ""}},
		"less than known": {func(p *player) { p.send(ack, protocol.PlaybackAck{ResponseID: "r1", PlayedMs: 1}) }, []string{"when?", "It is"}},
		"cleared":         {func(p *player) { p.send(protocol.HistoryClear{}, ack) }, nil},
		"the next one is cut": {func(p *player) {
			p.send(typed("and?"))
			p.play(100 * time.Millisecond)
			p.send(ack, cancel, ack)
		}, []string{"when?", "It is", "and?", ""}},
		"the next one has begun": {func(p *player) { p.send(typed("hm?"), ack, cancel) }, []string{"when?", "It is", "hm?"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cut(t)
				c.do(p)
				if got := heard(p); !slices.Equal(got, c.want) {
					t.Errorf("the history is %q, want %q", got, c.want)
				}
			})
		})
	}
}

// Sentences with nothing to say take no time, wherever they are, and an answer that has no others ends at once.
func TestWhatIsNotSpoken(t *testing.T) {
	code := "```go\nx := 1\n```\n"
	for name, c := range map[string]struct {
		text   string
		spoken []string
	}{
		"nothing":        {"", nil},
		"white space":    {" \n\n ", nil},
		"marks":          {"* * *\n\n---\n", nil},
		"code alone":     {code, []string{speech.CodeOnScreen}},
		"code first":     {code + "It is noon.", []string{speech.CodeOnScreen, "It is noon."}},
		"code last":      {"It is noon.\n" + code, []string{"It is noon.", speech.CodeOnScreen}},
		"code twice":     {code + "It is noon.\n" + code, []string{speech.CodeOnScreen, "It is noon."}},
		"in the middle":  {"It is noon.\n\n***\n\nBe there.", []string{"It is noon.", "Be there."}},
		"marks at first": {"***\n\nBe there.", []string{"Be there."}},
		"marks at last":  {"Be there.\n\n***\n", []string{"Be there."}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var spoken []string
				d := &drone{rate: 24000}
				p := listener(t, says(c.text), voiceFunc(func(ctx context.Context, text string, yield func(speech.Chunk, error) bool) {
					spoken = append(spoken, text)
					d.Synthesize(ctx, text)(yield)
				}))
				p.send(typed("when?"))
				p.play(10 * time.Second)
				if !slices.Equal(spoken, c.spoken) {
					t.Errorf("spoken is %q, want %q", spoken, c.spoken)
				}
				if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != c.text {
					t.Errorf("it ended with %+v", done)
				}
				if len(spoken) > 0 && p.text != c.text {
					t.Errorf("what was said to be spoken is %q of %q", p.text, c.text)
				}
				if len(spoken) == 0 {
					for i, e := range p.shown {
						if _, ok := e.Message.(protocol.ResponseCompleted); ok && p.times[i] != p.times[1] {
							t.Error("it took time")
						}
					}
				}
			})
		})
	}
}

// An agent that fails while its words are spoken ends the sound with them; what was heard counts.
func TestAnAgentThatFailsWhileItIsSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			if yield(delta(story), nil) && sleep(ctx, time.Second) == nil {
				yield(nil, errSecret)
			}
		}, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(5 * time.Second)
		got, ok := last[protocol.ResponseCancelled](p)
		if want := wordsWithin(time.Duration(got.PlayedMs) * time.Millisecond); !ok || got.Reason != protocol.CancelError || got.HeardText != want || want == "" {
			t.Errorf("it ended with %+v, want %q", got, want)
		}
		if p.got > 1500*time.Millisecond {
			t.Errorf("%v were sent", p.got)
		}
		if state, _ := last[protocol.SessionState](p); state.Value != protocol.Idle {
			t.Errorf("the session is %s", state.Value)
		}
	})
}

// A session that ends while it speaks lets go of its voice: the bubble ends only once no goroutine is left.
func TestASessionThatEndsWhileItSpeaks(t *testing.T) {
	for name, end := range map[string]func(p *player){
		"shutdown":  func(p *player) { p.client.cancel(session.ErrShutdown) },
		"closed":    func(p *player) { p.send(protocol.SessionClose{}) },
		"abandoned": func(p *player) { p.session.Leave(p.client); time.Sleep(3 * time.Minute) },
	} {
		for _, pause := range []time.Duration{0, 30 * time.Millisecond, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				p := listener(t, tells(story), &drone{rate: 24000, pause: pause})
				p.send(typed("when?"))
				p.play(time.Second)
				end(p)
				<-p.ended
				got, ok := last[protocol.ResponseCancelled](p)
				if name != "abandoned" && (!ok || pause == 0 && got.HeardText != wordsWithin(time.Duration(got.PlayedMs)*time.Millisecond)) {
					t.Errorf("%s: it ended with %+v", name, got)
				}
			})
		}
	}
}

// Who takes a session over hears the rest; what the other one says it has played counts no more.
func TestSoundIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(story), &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(time.Second)
		next := &player{client: &client{t: t, session: p.session}}
		next.onSend = next.hear
		if err := p.session.Join(t.Context(), next.client, session.Hello{Resume: true, After: p.shown[len(p.shown)-1].Seq}); err != nil {
			t.Fatal(err)
		}
		p.send(protocol.PlaybackAck{ResponseID: "r1", PlayedMs: 1 << 30})
		synctest.Wait()
		next.mu.Lock()
		next.id, next.got, next.played, next.acked, next.text = p.id, p.got, p.played, p.acked, p.text
		next.mu.Unlock()
		next.play(10 * time.Second)
		if done, ok := last[protocol.ResponseCompleted](next); !ok || done.HeardText != story || next.gap || next.text != story || next.most > 400*time.Millisecond {
			t.Errorf("it ended with %+v; a gap: %t; %v ahead; %q", done, next.gap, next.most, next.text)
		}
	})
}

// Two seats hear the same, and the one that has played more decides how far the session goes.
func TestTwoSeatsHearTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(story), &drone{rate: 24000})
		room := &player{client: &client{t: t, session: p.session}, stuck: true}
		room.onSend = room.hear
		if err := p.session.Join(t.Context(), room.client, session.Hello{Seat: session.Room}); err != nil {
			t.Fatal(err)
		}
		p.send(typed("when?"))
		p.play(10 * time.Second)
		if done, ok := last[protocol.ResponseCompleted](room); !ok || done.HeardText != story || room.got != p.got || room.text != story {
			t.Errorf("it ended with %+v after %v of %v", done, room.got, p.got)
		}
	})
}

// After a crash behind any event, no word is taken for heard that a client cannot have played.
func TestACrashWhileItSpeaks(t *testing.T) {
	var events [][]byte
	var state []byte
	var acked []time.Duration // when each event was kept
	synctest.Test(t, func(t *testing.T) {
		var m memory
		cfg := m.configOf(tells(story))
		cfg.Voices = named(&drone{rate: 24000})
		p := &player{client: start(t, cfg)}
		p.onSend = func(e session.Event) {
			p.hear(e)
			if e.Seq > 0 {
				acked = append(acked, p.acked)
			}
		}
		p.join()
		p.send(withVoice)
		synctest.Wait()
		state = m.state
		p.send(typed("when?"))
		p.play(10 * time.Second)
		events = slices.Clone(m.events)
	})
	most := ""
	for k := range events {
		synctest.Test(t, func(t *testing.T) {
			crashed := memory{events: slices.Clone(events[:k+1]), state: state}
			cfg := crashed.configOf(tells(story))
			cfg.Voices = named(&drone{rate: 24000})
			s, _, err := session.Restore(cfg, session.Stored{ID: sessionID, State: state, Events: crashed.events})
			if err != nil {
				t.Fatal(err)
			}
			go s.Run(t.Context())
			c := &client{t: t, session: s}
			if err := s.Join(t.Context(), c, session.Hello{Resume: true, Token: token}); err != nil {
				t.Fatal(err)
			}
			c.send(protocol.HistoryGet{})
			synctest.Wait()
			p := &player{client: c}
			got, ok := last[protocol.ResponseCancelled](p)
			sounded := bytes.Contains(bytes.Join(events[:k+1], nil), []byte("audio.delta"))
			if !ok || !sounded {
				return
			}
			played := acked[k]
			if want := wordsWithin(played); len(got.HeardText) > len(want) || !strings.HasPrefix(story, got.HeardText) || got.PlayedMs > played.Milliseconds() {
				t.Errorf("after event %d %v had been acknowledged, %+v, want %q at most", k+1, played, got, want)
			}
			h, _ := last[protocol.History](p)
			if n := len(h.Items); n != 2 || h.Items[1].HeardText == nil && h.Items[1].Text != got.HeardText || h.Items[1].HeardText != nil && *h.Items[1].HeardText != got.HeardText {
				t.Errorf("after event %d the history is %+v", k+1, h.Items)
			}
			most = max(most, got.HeardText)
		})
	}
	if len(most) < len(story)/2 {
		t.Errorf("the most that was heard before a crash is %q", most)
	}
}

// Ten megabytes of text to speak cost a few times their size, and the sound of a few sentences; a cancel is heard at once.
func TestTenMegabytesToSpeak(t *testing.T) {
	for name, part := range map[string]string{"prose": story + " ", "one sentence": "and so on ", "code": "x := 1\n", "spaces": "   \n"} {
		text := strings.Repeat(part, 10<<20/len(part))
		if name == "code" {
			text = "```\n" + text
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &drone{rate: 24000}
				p := listener(t, says(text), d)
				p.stuck = true
				before := heap()
				p.send(typed("when?"))
				synctest.Wait()
				if grown := heap() - before; grown > 6*len(text) {
					t.Errorf("%d KB of text hold %d KB", len(text)>>10, grown>>10)
				}
				if n := d.spoke.Load(); n > 12 {
					t.Errorf("%d sentences were made", n)
				}
				p.send(cancel)
				synctest.Wait()
				if state, _ := last[protocol.SessionState](p); state.Value != protocol.Idle || len(p.told()) != 0 {
					t.Errorf("the session is %s; told %q", state.Value, p.told())
				}
			})
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
