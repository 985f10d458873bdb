package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/turn"
)

// A page that is loaded again in the middle of an answer of ten minutes, or after it, gets every event: of the sound that
// was played only what it spoke, and all of the sound that was not.
func TestALongAnswerIsRecovered(t *testing.T) {
	text := strings.TrimSpace(strings.Repeat(story+" ", 200)) // of 3.1 s each
	synctest.Test(t, func(t *testing.T) {
		p := listener(t, tells(text), &drone{rate: 24000})
		p.send(typed("when?"))
		for _, after := range []time.Duration{5 * time.Minute, 7 * time.Minute} {
			p.play(after)
			played, seq, told := p.acked, p.shown[len(p.shown)-1].Seq, p.text
			next := &player{client: &client{t: t, session: p.session}}
			next.onSend = next.hear
			if err := p.session.Join(t.Context(), next.client, session.Hello{Resume: true}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			ready := next.shown[0].Message.(protocol.SessionReady)
			if !ready.Recovered || ready.LastSeq != seq || len(next.shown) != int(seq)+1 {
				t.Fatalf("after %v: recovered is %t, %d events of %d", after, ready.Recovered, len(next.shown)-1, seq)
			}
			words, unplayed := "", 0
			for i, e := range next.shown[1:] {
				if e.Seq != uint64(i+1) {
					t.Fatalf("event %d has number %d", i+1, e.Seq)
				}
				m, ok := e.Message.(protocol.ResponseAudioDelta)
				words += m.Text
				if !ok {
					continue
				}
				if over := time.Duration(m.StartMs)*time.Millisecond+40*time.Millisecond <= played; over != (m.Chunk == "") {
					t.Fatalf("after %v the sound at %d ms has %d letters", played, m.StartMs, len(m.Chunk))
				}
				if m.Chunk != "" {
					unplayed++
				}
			}
			if words != told || after == 5*time.Minute && (unplayed == 0 || unplayed > 10) || after > 5*time.Minute && unplayed != 0 {
				t.Errorf("after %v %d bytes were spoken of %d; %d pieces are still to be played", after, len(words), len(told), unplayed)
			}
			next.id, next.got, next.played, next.acked, next.text = p.id, p.got, p.played, p.acked, p.text
			p = next
		}
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != text {
			t.Errorf("it has not ended as it should: %t", ok)
		}
	})
}

// A client that has played some of an answer and then stops for good does not keep its turn: it ends, with what was heard.
// One that goes on in time hears all.
func TestAClientThatStopsPlaying(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat(story+" ", 10))
	writes := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) { // for longer than the client plays
		if yield(delta(long), nil) && sleep(ctx, 100*time.Second) == nil && yield(delta(" The end."), nil) {
			yield(done, nil)
		}
	})
	repeats := func(p *player) { // the same claim again and again is no progress
		for range 65 {
			p.send(protocol.PlaybackAck{ResponseID: p.id, PlayedMs: p.acked.Milliseconds()})
			p.play(time.Second)
		}
	}
	for name, c := range map[string]struct {
		agent  engine
		text   string
		do     func(p *player)
		ends   time.Duration // after the stop, at most
		stalls bool
	}{
		"for good":                     {tells(long), long, func(p *player) { p.play(65 * time.Second) }, 65 * time.Second, true},
		"and says the same":            {tells(long), long, repeats, 65 * time.Second, true},
		"while the agent still writes": {writes, long + " The end.", func(p *player) { p.play(3 * time.Minute) }, 3 * time.Minute, true},
		"for a while":                  {tells(long), long, func(p *player) { p.play(50 * time.Second); p.stuck = false; p.play(40 * time.Second) }, 90 * time.Second, false},
		"while it is away": {tells(long), long, func(p *player) {
			p.session.Leave(p.client)
			time.Sleep(100 * time.Second)
			p.join()
			p.stuck = false
			p.play(40 * time.Second)
		}, 140 * time.Second, false},
		"and comes back later": {tells(long), long, func(p *player) {
			p.play(40 * time.Second)
			p.session.Leave(p.client)
			time.Sleep(100 * time.Second)
			p.join()
			p.play(15 * time.Second)
			p.stuck = false
			p.play(40 * time.Second)
		}, 200 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &remembers{plan: func(int) engine { return c.agent }}
				p := listener(t, r.engine(), &drone{rate: 24000})
				p.send(typed("when?"))
				p.play(2 * time.Second)
				stopped := p.acked
				p.stuck = true
				c.do(p)
				got, ok := last[protocol.ResponseCompleted](p)
				heard, item := c.text, c.text
				if c.stalls {
					heard = wordsWithin(stopped)
				}
				if !ok || got.HeardText != heard || heard == "" {
					t.Errorf("it ended %t with %q, want %q", ok, got.HeardText, heard)
				}
				if state, _ := last[protocol.SessionState](p); state.Value != protocol.Idle {
					t.Errorf("the session is %s", state.Value)
				}
				p.send(protocol.HistoryGet{}, typed("and?"))
				synctest.Wait()
				h, _ := last[protocol.History](p)
				if len(h.Items) != 2 || h.Items[1].Text != item || c.stalls != (h.Items[1].HeardText != nil) {
					t.Errorf("the history is %+v", h.Items)
				}
				if told := r.requests[1].History; len(told) != 2 || told[1].Text != heard {
					t.Errorf("the agent is told %+v", told)
				}
				if len(p.told()) > 0 {
					t.Errorf("told %q", p.told())
				}
			})
		})
	}
}
