package session_test

import (
	"context"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
)

// filling is a listener whose agent has phrases.
func filling(t *testing.T, e engine, phrases []string, voices ...session.Synthesizer) *player {
	t.Helper()
	cfg := version2(agentBacked(nil, e))
	cfg.Voices = named(voices...)
	cfg.Agents[0].Filler = phrases
	p := &player{client: start(t, cfg)}
	p.onSend = p.hear
	p.join()
	p.send(withVoice)
	synctest.Wait()
	return p
}

// aWhile is the phrases of most tests; of a drone each takes half a second.
var aWhile = []string{"A moment..", "Still here"}

const aWhileLong = 500 * time.Millisecond

// heardPhrase is a phrase as a client was sent it.
type heardPhrase struct {
	at   time.Duration // since the question
	long time.Duration
}

// phrases are those that a client was sent, in order.
func (p *player) phrases() (list []heardPhrase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var asked, last time.Time
	for i, e := range p.shown {
		switch m := e.Message.(type) {
		case protocol.ResponseCreated:
			asked = p.times[i]
		case protocol.ResponseAudioDelta:
			if !m.Filler {
				last = time.Time{}
				continue
			}
			if m.Text != "" {
				p.t.Errorf("a phrase speaks %q of the answer", m.Text)
			}
			pcm, _ := base64.StdEncoding.DecodeString(m.Chunk)
			if last.IsZero() || p.times[i].Sub(last) > 2*time.Second {
				list = append(list, heardPhrase{at: p.times[i].Sub(asked)})
			}
			last = p.times[i]
			list[len(list)-1].long += speech.BytesDuration(len(pcm), 24000)
		}
	}
	return list
}

// equalPhrases allows for the steps of the player.
func (p *player) equalPhrases(want ...heardPhrase) {
	p.t.Helper()
	got := p.phrases()
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		late, longer := got[i].at-want[i].at, got[i].long-want[i].long
		same = late >= 0 && late <= 300*time.Millisecond && longer > -time.Millisecond/2 && longer < time.Millisecond/2
	}
	if !same {
		p.t.Errorf("the phrases were %v, want %v", got, want)
	}
}

// after is a payload and the pause before it; steps is an engine that yields some.
type after struct {
	pause time.Duration
	p     signal.Payload
}

func steps(list ...after) engine {
	return func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for _, s := range list {
			if sleep(ctx, s.pause) != nil || !yield(s.p, nil) {
				return
			}
		}
	}
}

var (
	callsTool   = signal.ToolCall{ToolName: "bash", AgentID: "test", CallID: "c1", Input: []byte(`{"command":"make"}`)}
	toolReturns = signal.ToolResult{ToolName: "bash", AgentID: "test", CallID: "c1", Success: true, Output: []byte(`{"content":""}`)}
)

// A tool that takes two minutes is not silent: a phrase after 4 s, then ever more rarely. None of them is a part of the answer.
func TestALongToolIsNotSilent(t *testing.T) {
	for _, rate := range []int{24000, 16000} {
		synctest.Test(t, func(t *testing.T) {
			r := &remembers{plan: func(int) engine {
				return steps(after{0, callsTool}, after{2 * time.Minute, toolReturns}, after{0, delta(story)}, after{0, done})
			}}
			var spoken []string
			d := &drone{rate: rate}
			p := filling(t, r.engine(), aWhile, voiceFunc(func(ctx context.Context, text string, yield func(speech.Chunk, error) bool) {
				spoken = append(spoken, text)
				d.Synthesize(ctx, text)(yield)
			}))
			p.send(typed("when?"))
			p.play(2*time.Minute + 10*time.Second)
			if want := append(slices.Concat(aWhile, aWhile), "It is noon."); !slices.Equal(spoken[:5], want) {
				t.Errorf("%d Hz: spoken is %q", rate, spoken)
			}
			p.equalPhrases(heardPhrase{4 * time.Second, aWhileLong}, heardPhrase{19 * time.Second, aWhileLong},
				heardPhrase{49 * time.Second, aWhileLong}, heardPhrase{109 * time.Second, aWhileLong})
			if p.text != story || p.gap {
				t.Errorf("%d Hz: %q was said to be spoken; a gap: %t", rate, p.text, p.gap)
			}
			if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
				t.Errorf("%d Hz: it ended with %+v", rate, done)
			}
			if m, _ := last[protocol.TurnMetrics](p); m.FirstAudioMs == nil || *m.FirstAudioMs != 120_000 {
				t.Errorf("%d Hz: the metrics are %+v: a phrase is not the answer's first sound", rate, m)
			}
			p.send(typed("and?"), protocol.HistoryGet{})
			synctest.Wait()
			if told := r.requests[1].History; len(told) != 2 || told[1].Text != story {
				t.Errorf("%d Hz: the agent is told %+v", rate, told)
			}
			if h, _ := last[protocol.History](p); len(h.Items) != 2 || h.Items[1].Text != story || h.Items[1].HeardText != nil {
				t.Errorf("%d Hz: the history is %+v", rate, h.Items)
			}
		})
	}
}

// The silence is counted from the end of what was heard, not from the question, and text begins it anew. What was written
// before a tool is spoken before it runs, though nobody knows how it goes on.
func TestAPhraseWaitsForSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := filling(t, steps(
			after{3 * time.Second, delta("I will look")}, after{0, callsTool}, // 0.55 s of sound, to 3.6 s
			after{7 * time.Second, toolReturns}, after{0, delta(" and")}, // at 10 s
			after{3 * time.Second, delta(" then")}, after{3 * time.Second, delta(" see.")}, after{0, done}, // at 16 s
		), aWhile, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(5 * time.Second)
		if p.text != "I will look" {
			t.Errorf("while the tool runs %q is spoken", p.text)
		}
		p.play(20 * time.Second)
		p.equalPhrases(heardPhrase{7500 * time.Millisecond, aWhileLong})
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != "I will look and then see." {
			t.Errorf("it ended with %+v", done)
		}
	})
}

func TestTextIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := filling(t, steps(
			after{3 * time.Second, delta("I")}, after{3 * time.Second, delta(" will")}, after{3 * time.Second, delta(" look.")}, after{0, done},
		), aWhile, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(20 * time.Second)
		p.equalPhrases()
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != "I will look." {
			t.Errorf("it ended with %+v", done)
		}
	})
}

// A voice that has failed in an answer says none of its phrases, and where all fail no other phrase is tried.
func TestPhrasesOfVoicesThatFail(t *testing.T) {
	always := func(int, int) error { return errSecret }
	e := steps(after{0, delta("It is noon.")}, after{0, callsTool}, after{40 * time.Second, toolReturns}, after{0, done})
	synctest.Test(t, func(t *testing.T) {
		bad, good := &drone{rate: 24000, fails: always}, &drone{rate: 24000}
		p := filling(t, e, aWhile, bad, good)
		p.send(typed("when?"))
		p.play(45 * time.Second)
		if b, g := bad.spoke.Load(), good.spoke.Load(); b != 1 || g != 3 || len(p.phrases()) != 2 {
			t.Errorf("the voice that failed was asked %d times, the other one %d times; the phrases were %v", b, g, p.phrases())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		bad := &drone{rate: 24000, fails: always}
		p := filling(t, steps(after{0, callsTool}, after{40 * time.Second, toolReturns}, after{0, done}), aWhile, bad)
		p.send(typed("when?"))
		p.play(45 * time.Second)
		if n := bad.spoke.Load(); n != 1 || len(p.told()) != 0 {
			t.Errorf("a voice that fails was asked for %d phrases; told %q", n, p.told())
		}
	})
}

// While something is to be heard nothing is said over it, however long it is.
func TestNoPhraseOverTheAnswer(t *testing.T) {
	long := strings.Repeat("The tide turns at three and then we sail. ", 5)
	synctest.Test(t, func(t *testing.T) {
		p := filling(t, steps(after{0, delta(long)}, after{0, callsTool}, after{20 * time.Second, toolReturns}, after{0, done}), aWhile, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(time.Minute)
		spoken := time.Duration(len(strings.TrimSpace(long))-4) * 50 * time.Millisecond // the spaces between are not
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != long || spoken < 10*time.Second {
			t.Errorf("it ended with %+v", done)
		}
		if got := p.phrases(); len(got) != 1 || got[0].at < spoken+4*time.Second-50*time.Millisecond {
			t.Errorf("the answer was spoken for %v, and the phrases came at %v", spoken, got)
		}
	})
}

// The answer's first sentence breaks a phrase off: what was not sent of it is not, and what was is 400 ms at most.
func TestAPhraseGivesWay(t *testing.T) {
	long := []string{"Wait for me, I am looking for it and will be back in no time at all."} // 3.4 s of a drone
	for begins := 4000 * time.Millisecond; begins < 7500*time.Millisecond; begins += 170 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			d := &drone{rate: 24000, pause: 30 * time.Millisecond}
			p := filling(t, steps(after{begins, delta(story)}, after{0, done}), long, d)
			p.send(typed("when?"))
			p.play(begins - 50*time.Millisecond)
			p.mu.Lock()
			held := p.got - p.played
			p.mu.Unlock()
			p.play(15 * time.Second)
			if p.gap || p.text != story || p.most > 400*time.Millisecond || held > 400*time.Millisecond {
				t.Errorf("after %v: %q was spoken; a gap: %t; %v ahead; %v held", begins, p.text, p.gap, p.most, held)
			}
			phrase := time.Duration(0)
			for _, h := range p.phrases() {
				phrase += h.long
			}
			whole := time.Duration(len(long[0])) * 50 * time.Millisecond
			if most := max(0, begins-4*time.Second) + 400*time.Millisecond + 50*time.Millisecond; phrase > min(most, whole)+time.Millisecond {
				t.Errorf("after %v: %v of the phrase were sent, want %v at most", begins, phrase, min(most, whole))
			}
			if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
				t.Errorf("after %v: it ended with %+v", begins, done)
			}
		})
	}
}

// Whoever breaks an answer off in a phrase has heard nothing of it but what came before.
func TestACutInAPhrase(t *testing.T) {
	for name, end := range map[string]protocol.Message{"cancel": cancel, "speech": silence(20 * time.Millisecond), "typed": typed("no, wait")} {
		for _, first := range []string{"", "It is noon."} {
			synctest.Test(t, func(t *testing.T) {
				tool := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
					if (first == "" || yield(delta(first), nil)) && yield(callsTool, nil) {
						<-ctx.Done()
					}
				})
				p := filling(t, tool, aWhile, &drone{rate: 24000})
				p.send(typed("when?"))
				p.play(4*time.Second + time.Duration(len(first))*50*time.Millisecond + 250*time.Millisecond)
				before, played := len(p.phrases()), p.acked.Milliseconds()
				p.send(end)
				synctest.Wait()
				got, ok := last[protocol.ResponseCancelled](p)
				if before != 1 || !ok || got.HeardText != first || got.PlayedMs != played {
					t.Errorf("%s after %q: %d phrases, and it ended with %+v", name, first, before, got)
				}
				over := false
				for _, e := range p.shown {
					switch m := e.Message.(type) {
					case protocol.ResponseCancelled:
						over = true
					case protocol.ResponseAudioDelta:
						if over && m.ResponseID == "r1" {
							t.Errorf("%s: sound of an answer that is over", name)
						}
					}
				}
			})
		}
	}
}

// Nothing is said: without phrases, to who wants text alone, while a person is asked, and where nobody is.
func TestWhereNothingIsSaid(t *testing.T) {
	waits := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if yield(callsTool, nil) {
			<-ctx.Done()
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := filling(t, waits, nil, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(time.Minute)
		p.equalPhrases()
	})
	synctest.Test(t, func(t *testing.T) {
		d := &drone{rate: 24000}
		cfg := version2(agentBacked(nil, waits))
		cfg.Voices, cfg.Agents[0].Filler = named(d), aWhile
		c := start(t, cfg)
		c.join()
		c.send(typed("when?"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.spoke.Load() != 0 {
			t.Error("a phrase was spoken to who wants text")
		}
	})
	synctest.Test(t, func(t *testing.T) { // the question is answered after 30 s
		p := filling(t, func(ctx context.Context, req turn.Request, yield yieldSignal) {
			if _, err := req.Ask(ctx, turn.Question{CallID: "c1", Name: "bash"}); err == nil && sleep(ctx, time.Minute) == nil {
				yield(done, nil)
			}
		}, aWhile, &drone{rate: 24000})
		yes := true
		p.send(protocol.SessionStart{Approvals: &yes}, typed("when?"))
		p.play(30 * time.Second)
		p.equalPhrases()
		p.send(protocol.ApprovalAnswer{ApprovalID: "a1.1", Allow: true})
		p.play(10 * time.Second)
		p.equalPhrases(heardPhrase{34 * time.Second, aWhileLong})
	})
	synctest.Test(t, func(t *testing.T) { // who comes back after a minute hears one
		d := &drone{rate: 24000}
		p := filling(t, waits, aWhile, d)
		p.send(typed("when?"))
		p.session.Leave(p.client)
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.spoke.Load() != 0 {
			t.Error("a phrase was spoken to nobody")
		}
		p.join()
		p.play(5 * time.Second)
		p.equalPhrases(heardPhrase{time.Minute, aWhileLong})
	})
}

// A client that says nothing of what it plays is told by the clock, one that has stopped in the middle of the answer is not.
func TestPhrasesByTheClock(t *testing.T) {
	e := steps(after{0, delta("It is noon.")}, after{0, callsTool}, after{30 * time.Second, toolReturns}, after{0, done})
	for stops, want := range map[time.Duration]int{0: 2, 200 * time.Millisecond: 0} {
		synctest.Test(t, func(t *testing.T) {
			p := filling(t, e, aWhile, &drone{rate: 24000})
			p.send(typed("when?"))
			p.play(stops)
			p.stuck = true
			p.play(28 * time.Second)
			if got := p.phrases(); len(got) != want {
				t.Errorf("stopped after %v: the phrases were %v, want %d", stops, got, want)
			}
		})
	}
}

// A phrase that the voice cannot say is nobody's error, and no phrase delays the answer or fills the memory.
func TestPhrasesThatAreNone(t *testing.T) {
	fails := func(s, _ int) error {
		if s == 1 {
			return errSecret
		}
		return nil
	}
	endless := voiceFunc(func(ctx context.Context, text string, yield func(speech.Chunk, error) bool) {
		if text != aWhile[0] {
			(&drone{rate: 24000}).Synthesize(ctx, text)(yield)
			return
		}
		for c := hum(time.Second, 24000); yield(c, nil); {
		}
	})
	hangs := voiceFunc(func(ctx context.Context, text string, yield func(speech.Chunk, error) bool) {
		if text != aWhile[0] {
			(&drone{rate: 24000}).Synthesize(ctx, text)(yield)
			return
		}
		<-ctx.Done()
	})
	odd := voiceFunc(func(ctx context.Context, text string, yield func(speech.Chunk, error) bool) {
		if text != aWhile[0] {
			(&drone{rate: 24000}).Synthesize(ctx, text)(yield)
			return
		}
		yield(speech.Chunk{Samples: make([]int16, 10), Rate: 3}, nil)
	})
	e := steps(after{8 * time.Second, delta(story)}, after{0, done})
	for name, c := range map[string]struct {
		voices []session.Synthesizer
		most   time.Duration // of the phrase
	}{
		"fails":           {[]session.Synthesizer{&drone{rate: 24000, fails: fails}}, 0},
		"another says it": {[]session.Synthesizer{&drone{rate: 24000, fails: fails}, &drone{rate: 16000}}, aWhileLong},
		"never ends":      {[]session.Synthesizer{endless}, 4500 * time.Millisecond},
		"hangs":           {[]session.Synthesizer{hangs}, 0},
		"at a wrong rate": {[]session.Synthesizer{odd}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := filling(t, e, aWhile, c.voices...)
				p.send(typed("when?"))
				p.play(25 * time.Second)
				long := time.Duration(0)
				for _, h := range p.phrases() {
					long += h.long
				}
				if long > c.most+2*time.Millisecond || c.most > 0 && long < aWhileLong-2*time.Millisecond {
					t.Errorf("%v of a phrase were sent, want %v at most", long, c.most)
				}
				if told := p.told(); len(told) > 0 {
					t.Errorf("the client was told %q", told)
				}
				if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story || p.gap || p.text != story {
					t.Errorf("it ended with %+v; a gap: %t", done, p.gap)
				}
			})
		})
	}
}

// Half a phrase is not said to somebody who was away for the other half.
func TestAPhraseGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := filling(t, steps(after{40 * time.Second, delta(story)}, after{0, done}), []string{"Wait for me, I am looking for it and will be back."}, &drone{rate: 24000})
		p.send(typed("when?"))
		p.play(4300 * time.Millisecond)
		p.session.Leave(p.client)
		time.Sleep(8 * time.Second)
		p.join()
		p.play(3 * time.Second)
		long := time.Duration(0)
		for _, h := range p.phrases() {
			long += h.long
		}
		if long > 800*time.Millisecond {
			t.Errorf("%v of a phrase were sent", long)
		}
	})
}

// While an agent is silent its session sleeps, but for its phrases.
func TestPhrasesCostNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := version2(agentBacked(nil, steps(after{0, callsTool}, after{5 * time.Minute, delta(story)}, after{0, done})))
		var k ticks
		cfg.Voices, cfg.Journal = named(&drone{rate: 24000}), func() io.WriteCloser { return &k }
		cfg.Agents[0].Filler = aWhile
		p := &player{client: start(t, cfg)}
		p.onSend = p.hear
		p.join()
		p.send(withVoice, typed("when?"))
		p.play(5*time.Minute + 10*time.Second)
		p.cancel(nil)
		<-p.ended
		if n := len(p.phrases()); n != 7 || k.n > 4*n { // at 4, 19, 49 s, and each minute from then on
			t.Errorf("the timer rang %d times for %d phrases", k.n, n)
		}
	})
}
