package session_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
)

// What an open microphone hears, in these tests, is told by its level: silence, a sound that a detector takes for speech, and
// words. A recogniser makes one of each 200 ms of those.
const (
	quiet int16 = 0
	cough int16 = 1000
	words int16 = 2000
)

const micPiece = 20 * time.Millisecond // of sound in one message

// mic is so much sound, piece by piece.
func mic(level int16, long time.Duration) iter.Seq[protocol.Message] {
	return func(yield func(protocol.Message) bool) {
		samples := make([]int16, speech.Count(micPiece, speech.Rate))
		for i := range samples {
			samples[i] = level
		}
		chunk := protocol.InputAudioAppend{Chunk: base64Of(speech.Bytes(samples))}
		for ; long > 0; long -= micPiece {
			if !yield(chunk) {
				return
			}
		}
	}
}

// loudness is a [session.VoiceDetector] for which whatever is not silent may be speech.
type loudness struct{}

func loud() session.VoiceDetector { return loudness{} }

// Speech implements [session.VoiceDetector].
func (loudness) Speech(frame []int16) float32 {
	loud := 0
	for _, s := range frame {
		if s != 0 {
			loud++
		}
	}
	return float32(loud) / float32(len(frame))
}

// ears recognise words, and nothing in a cough.
func ears(ctx context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
	n, said := 0, 0
	text := func() string { return strings.TrimSpace(strings.Repeat("word ", said)) }
	for samples := range audio {
		for _, s := range samples {
			if s == words {
				n++
			}
		}
		if heard := n / speech.Count(200*time.Millisecond, speech.Rate); heard > said {
			said = heard
			if !yield(speech.Transcript{Text: text()}, nil) {
				return
			}
		}
	}
	if ctx.Err() == nil {
		yield(speech.Transcript{Text: text(), Final: true}, nil)
	}
}

// overheard is so much sound in one message.
func overheard(level int16, long time.Duration) protocol.Message {
	samples := make([]int16, speech.Count(long, speech.Rate))
	for i := range samples {
		samples[i] = level
	}
	return protocol.InputAudioAppend{Chunk: base64Of(speech.Bytes(samples))}
}

// countsWords says how many pieces it has heard, and little or nothing once somebody has coughed.
func countsWords(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
	n, coughs := 0, false
	for samples := range audio {
		n++
		coughs = coughs || slices.Contains(samples, cough)
		text := heardPieces(n)
		if coughs {
			text = "oh"
		}
		if !yield(speech.Transcript{Text: text}, nil) {
			return
		}
	}
	text := heardPieces(n)
	if coughs && n%2 == 0 {
		text = "oh"
	} else if coughs {
		text = ""
	}
	yield(speech.Transcript{Text: text, Final: true}, nil)
}

// handsFree is a session that a detector listens to.
func handsFree(cfg session.Config) session.Config {
	cfg = version2(cfg)
	cfg.Detector = loud
	return cfg
}

var turnsDetected = protocol.SessionStart{TurnDetection: "vad"}

// stream sends what a microphone hears, at the speed of sound.
func (c *client) stream(level int16, long time.Duration) {
	c.t.Helper()
	for piece := range mic(level, long) {
		c.send(piece)
		time.Sleep(micPiece)
	}
	synctest.Wait()
}

// talker joins a hands-free session that answers with e and speaks with the voice; what it plays it says four times a second.
func talker(t *testing.T, e engine, change ...func(*session.Config)) *player {
	t.Helper()
	cfg := handsFree(agentBacked(recogniser(ears), e))
	cfg.Voices = named(&drone{rate: 24000})
	for _, c := range change {
		c(&cfg)
	}
	p := &player{client: start(t, cfg)}
	p.onSend = p.hear
	p.join()
	ask := withVoice
	ask.TurnDetection = "vad"
	p.send(ask)
	synctest.Wait()
	return p
}

// talk is what the microphone hears while the player plays, or does not: a page's player stands still while it listens.
func (p *player) talk(level int16, long time.Duration) {
	p.t.Helper()
	for piece := range mic(level, long) {
		p.send(piece)
		time.Sleep(micPiece)
		synctest.Wait()
		if state, _ := last[protocol.SessionState](p); state.Value == protocol.Listening {
			continue
		}
		if ack, due := p.step(micPiece); due {
			p.send(ack)
			synctest.Wait()
		}
	}
}

// A cough in the middle of an answer, wherever it comes: the sound stops, goes on where it stopped, and nothing is lost or
// comes twice. The client may have acknowledged what it plays, or never do.
func TestACoughStopsNoAnswer(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		for at := time.Duration(0); at < 3*time.Second; at += 180 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				p := talker(t, tells(story))
				p.stuck = stuck
				p.send(typed("when?"))
				p.talk(quiet, at)
				p.talk(cough, 300*time.Millisecond)
				if state, _ := last[protocol.SessionState](p); state.Value != protocol.Listening {
					t.Fatalf("after a cough at %v the session is %s", at, state.Value)
				}
				stopped := p.sent()
				p.talk(quiet, 300*time.Millisecond)
				if p.sent() != stopped {
					t.Errorf("%v of sound came while the answer was held", p.sent()-stopped)
				}
				p.talk(quiet, 20*time.Second)
				if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap || p.text != story {
					t.Errorf("after a cough at %v it ended with %+v; a gap: %t; %q", at, done, p.gap, p.text)
				}
				if final, _ := last[protocol.TranscriptFinal](p); final.Text != "" || final.ItemID != "i2" {
					t.Errorf("the cough is %+v", final)
				}
				if partial, ok := last[protocol.TranscriptPartial](p); ok {
					t.Errorf("the cough was shown as %+v", partial)
				}
			})
		}
	}
}

// While an answer is held no clock of its sound runs: a client that never acknowledges is not taken to have played on, and
// the answer is not over because it should have been.
func TestAHeldAnswerWaits(t *testing.T) {
	for name, at := range map[string]time.Duration{"in the middle": time.Second, "after the last of it was sent": 2750 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := talker(t, tells(story))
				p.send(typed("when?"))
				p.talk(quiet, at)
				p.stuck = true
				p.talk(cough, 9*time.Second)
				if done, ok := last[protocol.ResponseCompleted](p); ok {
					t.Fatalf("it was over while it was held: %+v", done)
				}
				p.talk(quiet, 700*time.Millisecond)
				p.stuck = false
				p.talk(quiet, 5*time.Second)
				if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap {
					t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
				}
			})
		})
	}
}

// What an answer has to say first comes while it is held: its text is shown, and its sound follows as soon as it may go on.
func TestAnAnswerBeginsWhileItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			if sleep(ctx, 400*time.Millisecond) == nil && yield(delta(story), nil) {
				yield(done, nil)
			}
		})
		p.send(typed("when?"))
		p.talk(cough, 600*time.Millisecond)
		if text, _ := last[protocol.ResponseTextDelta](p); text.Text != story || p.sent() > 0 {
			t.Errorf("while it is held %q and %v of sound came", text.Text, p.sent())
		}
		p.talk(quiet, 620*time.Millisecond)
		if state, _ := last[protocol.SessionState](p); state.Value != protocol.Speaking || p.sent() == 0 {
			t.Errorf("after that the session is %s, and %v of sound came", state.Value, p.sent())
		}
		p.talk(quiet, 5*time.Second)
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap {
			t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
		}
	})
}

// Words end the answer, and what was heard of it is what had been played when they began.
func TestWordsEndAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, tells(story))
		p.send(typed("when?"))
		p.talk(quiet, 1500*time.Millisecond)
		p.talk(words, time.Second)
		played := p.acked
		p.talk(quiet, time.Second)
		got, ok := last[protocol.ResponseCancelled](p)
		if want := wordsWithin(played); !ok || got.Reason != protocol.CancelBargeIn || got.HeardText != want || got.PlayedMs != played.Milliseconds() {
			t.Errorf("it ended with %+v, want %q", got, want)
		}
		if final, _ := last[protocol.TranscriptFinal](p); final.Text != "word word word word word" {
			t.Errorf("what was said is %q", final.Text)
		}
		if next, _ := last[protocol.ResponseCreated](p); next.ResponseID != "r2" {
			t.Errorf("the next answer is %+v", next)
		}
	})
}

// What holds an answer for too long has to be words: the recogniser is asked what it was.
func TestAnEndlessNoiseHoldsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, tells(story))
		p.send(typed("when?"))
		p.talk(cough, time.Minute)
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap {
			t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
		}
	})
}

// A recogniser that gives words at the end alone, as a server does, ends the answer with its final transcript.
func TestARecogniserWithoutPartialsInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, tells(story), func(cfg *session.Config) {
			cfg.Transcriber = hears("stop it")
		})
		p.send(typed("when?"))
		p.talk(quiet, 500*time.Millisecond)
		p.talk(words, 800*time.Millisecond)
		if _, over := last[protocol.ResponseCancelled](p); over {
			t.Error("it ended before there were words")
		}
		p.talk(quiet, time.Second)
		if got, _ := last[protocol.ResponseCancelled](p); got.Reason != protocol.CancelBargeIn {
			t.Errorf("it ended with %+v", got)
		}
	})
}

// What is no word for a person is none here: a filler, or whatever a recogniser makes of a sound that is too short.
func TestWhatIsNoWord(t *testing.T) {
	for _, c := range []struct {
		name, heard string
		long        time.Duration
		words       bool
	}{
		{"a filler", "uh", 800 * time.Millisecond, false},
		{"several", "Um, hm...", 800 * time.Millisecond, false},
		{"a short sound", "oh the", 240 * time.Millisecond, false},
		{"a short word", "no", 240 * time.Millisecond, true},
		{"a long sound", "oh the", 800 * time.Millisecond, true},
		{"a filler before words", "uh no", 800 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := talker(t, tells(story), func(cfg *session.Config) { cfg.Transcriber = hears(c.heard, c.heard) })
				p.send(typed("when?"))
				p.talk(quiet, 500*time.Millisecond)
				p.talk(cough, c.long)
				p.talk(quiet, 20*time.Second)
				if _, over := last[protocol.ResponseCancelled](p); over != c.words {
					t.Errorf("%q after %v ended the answer: %t", c.heard, c.long, over)
				}
				if final, _ := last[protocol.TranscriptFinal](p); (final.Text != "") != c.words {
					t.Errorf("%q after %v is told as %q", c.heard, c.long, final.Text)
				}
			})
		})
	}
}

// A recogniser that fails lets a held answer go on, once it is told.
func TestARecogniserFailsOverAHeldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, tells(story), func(cfg *session.Config) { cfg.Transcriber = recognisers["is busy"] })
		p.send(typed("when?"))
		p.talk(quiet, 500*time.Millisecond)
		p.talk(words, time.Second)
		p.talk(quiet, 10*time.Second)
		if told := p.told(); len(told) != 1 || !strings.HasPrefix(told[0], "speech_unavailable") {
			t.Errorf("told %q", told)
		}
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap {
			t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
		}
	})
}

// An hour of silence costs no event, no allowance and no memory, and it is no sign of life: the session ends as it would
// without a microphone. Speech keeps it alive.
func TestAnOpenMicrophoneHearsAnHourOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowance := &minutes{left: time.Minute}
		cfg := handsFree(agentBacked(recogniser(ears), says("yes")))
		cfg.Idle, cfg.Allowance = 2*time.Hour, allowance
		c := start(t, cfg)
		c.join()
		c.send(turnsDetected)
		silent := func(long time.Duration) {
			const much = 200 * time.Millisecond
			for ; long > 0; long -= much {
				c.send(overheard(quiet, much))
				time.Sleep(much)
			}
			synctest.Wait()
		}
		silent(time.Minute)
		c.next()
		before := heap()
		silent(time.Hour)
		if shown := c.next(); len(shown) > 0 {
			t.Errorf("an hour of silence is shown as %q", shown)
		}
		if allowance.left != time.Minute {
			t.Errorf("it took %v of the allowance", time.Minute-allowance.left)
		}
		if after := heap(); after > before+64<<10 {
			t.Errorf("it holds %d KB", (after-before)>>10)
		}
		c.stream(words, time.Second)
		c.stream(quiet, time.Second)
		if shown := c.next(); len(shown) == 0 || shown[len(shown)-1] != "idle" {
			t.Errorf("what is said after it is shown as %q", shown)
		}
		if took := time.Minute - allowance.left; took < 1800*time.Millisecond || took > 2200*time.Millisecond {
			t.Errorf("a second of words took %v of the allowance", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		cfg := handsFree(agentBacked(recogniser(ears), says("yes")))
		cfg.Idle = time.Minute
		c := start(t, cfg)
		c.join()
		c.send(turnsDetected)
		for range 4 {
			c.stream(quiet, 50*time.Second)
			c.stream(words, time.Second)
		}
		c.stream(quiet, time.Second)
		if len(c.closed) > 0 {
			t.Fatalf("%q while somebody spoke now and then", c.closed)
		}
		for piece := range mic(quiet, 2*time.Minute) {
			if c.session.Receive(t.Context(), c, "", piece) != nil {
				break
			}
			time.Sleep(micPiece)
		}
		if len(c.closed) != 1 || !strings.HasPrefix(c.closed[0], "4005") {
			t.Errorf("a microphone that hears nothing: %q", c.closed)
		}
	})
}

// A client may catch up after a stall, but not send for ever at more than twice the speed of speech; it is told once.
func TestAMicrophoneThatIsTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, handsFree(agentBacked(recogniser(ears), says("yes"))))
		c.join()
		c.send(turnsDetected)
		c.next()
		flood := func(long time.Duration) {
			for piece := range mic(quiet, long) {
				c.send(piece)
			}
		}
		flood(59 * time.Second)
		c.expect()
		flood(10 * time.Second)
		c.expect("! rate_limited")
		time.Sleep(5 * time.Second)
		flood(20 * time.Second)
		c.expect()
		time.Sleep(time.Minute)
		flood(59 * time.Second)
		c.expect()
		flood(10 * time.Second)
		c.expect("! rate_limited")
	})
}

// Without an allowance nothing is heard, and no answer is held for it; the client is told once for each thing that is said.
func TestHandsFreeWithoutAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, tells(story), func(cfg *session.Config) { cfg.Allowance = &minutes{left: 100 * time.Millisecond} })
		p.send(typed("when?"))
		p.talk(quiet, 500*time.Millisecond)
		p.talk(words, time.Second)
		p.talk(quiet, 10*time.Second)
		if told := p.told(); len(told) != 1 || !strings.HasPrefix(told[0], "audio_too_long") {
			t.Errorf("told %q", told)
		}
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
			t.Errorf("it ended with %+v", done)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := start(t, func() session.Config {
			cfg := handsFree(agentBacked(recogniser(ears), says("yes")))
			cfg.Allowance = &minutes{left: 700 * time.Millisecond}
			return cfg
		}())
		c.join()
		c.send(turnsDetected)
		c.next()
		c.stream(words, 2*time.Second)
		c.stream(quiet, time.Second)
		c.expect("listening", "? word", "? word word", "? word word word", "! audio_too_long", ". word word word", "thinking",
			"response.created", "speaking", "> yes", "completed", "turn.metrics", "idle")
	})
}

// Endless speech is heard as far as a turn may go, and no further.
func TestSpeechWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := handsFree(agentBacked(hears("much"), says("yes")))
		cfg.MaxAudio = 2 * time.Second
		c := start(t, cfg)
		c.join()
		c.send(turnsDetected)
		c.next()
		c.stream(words, 10*time.Second)
		c.expect("listening", "! audio_too_long")
		c.stream(quiet, time.Second)
		c.expect(". much", "thinking", "response.created", "speaking", "> yes", "completed", "turn.metrics", "idle")
	})
}

// Two people in one session, each with a microphone: who speaks first is heard, and the other one is let go.
func TestTwoOpenMicrophones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, handsFree(agentBacked(recogniser(ears), says("yes"))))
		c.join()
		c.send(turnsDetected)
		room := &actor{name: "room", stage: &stage{t: t, began: time.Now()}}
		if err := c.session.Join(t.Context(), room, session.Hello{Seat: session.Room}); err != nil {
			t.Fatal(err)
		}
		c.next()
		both := func(mine, theirs int16, long time.Duration) {
			for piece := range mic(mine, long) {
				c.send(piece)
				for other := range mic(theirs, micPiece) {
					if err := c.session.Receive(t.Context(), room, "", other); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(micPiece)
			}
			synctest.Wait()
		}
		both(words, quiet, 300*time.Millisecond)
		both(words, words, 300*time.Millisecond)
		both(quiet, words, time.Second)
		both(quiet, quiet, time.Second)
		c.expect("listening", "? word", "? word word", "? word word word", ". word word word", "thinking", "response.created",
			"speaking", "> yes", "completed", "turn.metrics", "idle")
		both(quiet, words, 400*time.Millisecond)
		both(quiet, quiet, time.Second)
		c.expect("listening", "? word", "? word word", ". word word", "thinking", "response.created",
			"speaking", "> yes", "completed", "turn.metrics", "idle")
	})
}

// A microphone at another rate is heard as well as one at ours.
func TestHandsFreeAtAnotherRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, handsFree(agentBacked(hears("yes, at 48 kHz"), says("yes"))))
		c.join()
		format := protocol.Format{Encoding: "pcm16", Rate: 48000, Framing: "binary"}
		c.send(protocol.SessionStart{TurnDetection: "vad", Audio: &protocol.AudioFormats{Input: &format}})
		c.next()
		for level, long := range map[int16]time.Duration{words: time.Second, quiet: 0} {
			samples := make([]int16, 960)
			for i := range samples {
				samples[i] = level
			}
			for ; long > 0; long -= micPiece {
				c.send(session.Audio{PCM: speech.Bytes(samples)})
			}
		}
		for range 60 {
			c.send(session.Audio{PCM: make([]byte, 1920)})
		}
		c.expect("listening", ". yes, at 48 kHz", "thinking", "response.created", "speaking", "> yes", "completed", "turn.metrics", "idle")
	})
}

// The spans of an answer that a cough did not stop, and of one that words did: what the user says is a turn of its own.
func TestSpansOfAHeldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := agentBacked(recogniser(ears), engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			if sleep(ctx, 2*time.Second) == nil && yield(delta("yes"), nil) {
				yield(done, nil)
			}
		}))
		cfg.Detector = loud
		c := traceSession(t, cfg)
		c.send(turnsDetected, typed("when?"))
		c.stream(quiet, 200*time.Millisecond)
		c.stream(cough, 300*time.Millisecond)
		c.stream(quiet, 700*time.Millisecond)
		c.stream(words, 400*time.Millisecond)
		c.stream(quiet, 700*time.Millisecond)
		c.send(cancel)
		c.want(
			`vela.turn in "" 0s-1.4s kind=agent id=t1 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test outcome=interrupted`,
			`engine in "vela.turn" 0s-1.4s id=t1 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test`,
			`vela.turn in "" 400ms-1.1s kind=agent outcome=nothing`,
			`stt in "vela.turn" 400ms-1.1s speech_end@492ms commit@1.1s`,
			`vela.turn in "" 1.4s-2.3s kind=agent id=t2 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test outcome=cancelled`,
			`stt in "vela.turn" 1.4s-2.2s speech_end@1.592s commit@2.2s`,
			`engine in "vela.turn" 2.2s-2.3s id=t2 gen_ai.operation.name=invoke_agent gen_ai.agent.name=test`,
		)
	})
}

// What a detector said stands in the journal: a replay, which has none, makes the same events.
func TestAHandsFreeJournalReplays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		cfg := agentBacked(recogniser(ears), tells(story))
		cfg.Detector = loud
		cfg.VAD = protocol.VAD{SilenceMs: 300}
		cfg.Voices = named(&drone{rate: 24000})
		cfg.Allowance = &minutes{left: time.Duration(5+seed) * time.Second}
		journal := record(t, cfg, func(c *client) {
			rng := rand.New(rand.NewPCG(seed, 3))
			ask := withVoice
			ask.TurnDetection = "vad"
			c.send(ask)
			for range 30 {
				level, long := pick(rng, quiet, quiet, cough, words), time.Duration(rng.IntN(900))*time.Millisecond
				if rng.IntN(4) == 0 { // at once: many frames, and what comes of them, in one input
					c.send(overheard(level, long))
				} else {
					c.stream(level, long)
				}
				switch rng.IntN(12) {
				case 0:
					c.send(typed("and then?"))
				case 1:
					c.send(commit)
				case 2:
					c.send(protocol.InputAudioClear{})
				case 3:
					c.send(cancel)
				case 4:
					time.Sleep(3 * time.Second)
				}
			}
		})
		if r := replayed(t, journal); r.Different != nil {
			t.Fatalf("seed %d: %+v", seed, *r.Different)
		} else if r.Events < 20 {
			t.Errorf("seed %d: only %d events", seed, r.Events)
		}
		deaf := bytes.ReplaceAll(journal, []byte(`"likely":[1`), []byte(`"likely":[0`))
		if r, err := session.Replay(bytes.NewReader(deaf), deterministic.Engine{}, nil); err == nil && r.Different == nil {
			t.Errorf("seed %d: a detector that heard nothing makes the same events", seed)
		}
	}
}

// Somebody who talks for longer than a session may be without a word is there all the time.
func TestSpeechIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := handsFree(agentBacked(recogniser(ears), says("yes")))
		cfg.Idle = 30 * time.Second
		c := start(t, cfg)
		c.join()
		c.send(turnsDetected)
		c.stream(words, 2*time.Minute)
		if len(c.closed) > 0 {
			t.Errorf("in the middle of speech: %q", c.closed)
		}
	})
}

// The clocks of an answer's sound stand still while it is held: of a client that acknowledges nothing, and of one that has
// been sent all of it. And nothing wakes up to look at them.
func TestNoClockRunsWhileAnAnswerIsHeld(t *testing.T) {
	var journal file
	hold := func(t *testing.T, at time.Duration, stuck bool) *player {
		journal = file{}
		p := talker(t, tells(story), func(cfg *session.Config) { cfg.Journal = func() io.WriteCloser { return &journal } })
		p.stuck = stuck
		p.send(typed("when?"))
		p.talk(quiet, at)
		p.stuck = true
		before := bytes.Count(journal.Bytes(), []byte(`"kind":"tick"`))
		p.talk(cough, 5*time.Second)
		if ticks := bytes.Count(journal.Bytes(), []byte(`"kind":"tick"`)) - before; ticks > 20 {
			t.Errorf("it woke up %d times while the answer was held", ticks)
		}
		p.talk(quiet, 700*time.Millisecond)
		return p
	}
	synctest.Test(t, func(t *testing.T) {
		p := hold(t, time.Second, true)
		if most := 1900 * time.Millisecond; p.sent() > most {
			t.Errorf("%v were sent to a client that had played for little more than a second", p.sent())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := hold(t, 2900*time.Millisecond, false)
		if done, over := last[protocol.ResponseCompleted](p); over {
			t.Errorf("it was over before the rest of it could be played: %+v", done)
		}
		p.talk(quiet, 2*time.Second)
		if done, over := last[protocol.ResponseCompleted](p); !over || done.HeardText == "" {
			t.Errorf("it ended with %+v", done)
		}
	})
}

// A process that ends while an answer is held: the next one knows what had been asked, and how the session listens.
func TestAHeldAnswerIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		cfg := m.config()
		cfg.Agents, cfg.Transcriber, cfg.Detector = agents(engines2["takes its time"]), recogniser(ears), loud
		c := start(t, cfg)
		c.join()
		c.send(protocol.SessionStart{TurnDetection: "vad", VAD: &protocol.VAD{SilenceMs: 300}}, typed("when?"))
		c.stream(quiet, 8*time.Second)
		c.stream(cough, 300*time.Millisecond)
		c.stream(quiet, 400*time.Millisecond)
		for _, again := range []bool{false, true} {
			if again { // in the middle of the next cough
				c.stream(cough, 300*time.Millisecond)
			}
			m.mu.Lock()
			crashed := &memory{state: slices.Clone(m.state), events: slices.Clone(m.events)}
			m.mu.Unlock()
			next := crashed.restoreAs(t, 0, func(cfg *session.Config) { cfg.Transcriber, cfg.Detector = recogniser(ears), loud })
			next.send(protocol.HistoryGet{})
			synctest.Wait()
			ready := next.shown[0].Message.(protocol.SessionReady)
			if ready.TurnDetection != "vad" || ready.VAD == nil || ready.VAD.SilenceMs != 300 {
				t.Errorf("it is resumed as %+v", ready.Terms)
			}
			h := next.shown[len(next.shown)-1].Message.(protocol.History)
			if len(h.Items) != 2 || h.Items[0].Text != "when?" || h.Items[1].Text != "I will look." {
				t.Errorf("the conversation is %+v", h.Items)
			}
			if state := next.shown[len(next.shown)-2].Message; state != (protocol.SessionState{Value: protocol.Idle}) {
				t.Errorf("before that came %+v", state)
			}
		}
		m.mu.Lock()
		crashed := &memory{state: slices.Clone(m.state), events: slices.Clone(m.events)}
		m.mu.Unlock()
		next := crashed.restoreAs(t, 0, func(*session.Config) {})
		synctest.Wait()
		if ready := next.shown[0].Message.(protocol.SessionReady); ready.TurnDetection != "none" || ready.VAD != nil {
			t.Errorf("without a detector it is resumed as %+v", ready.Terms)
		}
	})
}

// A phrase for a silence is held like the answer, and goes on to its end: the time in between is none of its own.
func TestAPhraseIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talker(t, dallies(time.Minute), func(cfg *session.Config) {
			cfg.Agents[0].Filler, cfg.Agents[0].FillerAfter = []string{"One moment, please."}, 500*time.Millisecond
		})
		p.send(typed("when?"))
		p.talk(quiet, 600*time.Millisecond)
		p.talk(cough, 6*time.Second)
		if p.sent() == 0 || p.sent() > 800*time.Millisecond {
			t.Errorf("%v of the phrase came before it was held", p.sent())
		}
		p.talk(quiet, 2*time.Second)
		if whole := 950 * time.Millisecond; p.sent() != whole {
			t.Errorf("%v of the phrase came, want %v", p.sent(), whole)
		}
	})
}
