package session_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/turn"
)

// An engine and a recogniser that say that they were interrupted, as most do, are not at fault when the gateway stops:
// nobody is told of an error, although a session that is busy just then finds both waiting, its end and theirs.
func TestAShutdownIsNobodysFault(t *testing.T) {
	interrupted := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if yield(delta("Once upon"), nil) {
			<-ctx.Done()
			yield(nil, fmt.Errorf("ask the model: %w", context.Cause(ctx)))
		}
	})
	for version := 1; version <= 2; version++ {
		for name, send := range map[string][]protocol.Message{"answering": {piece, commit}, "listening": {piece}} {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					cfg := version2(agentBacked(recogniser(counts), interrupted))
					cfg.Version = version
					c := connect(t, cfg)
					c.send(send...)
					c.next()
					c.onSend = func(session.Event) { time.Sleep(time.Millisecond) } // what a peer must not do: the session is busy
					c.send(sessionStart)
					synctest.Wait()
					c.cancel(session.ErrShutdown)
					<-c.ended
					want := []string{"ready", "speaking", "response.cancelled", "turn.metrics", "session.ended"}
					if name == "listening" {
						want = []string{"ready", "listening", "session.ended"}
					}
					if version == 1 {
						want = want[:2]
					}
					c.expect(want...)
				})
			}
		}
	}
}

// A conversation that is cut to its bound begins with a question, also where some had no answer.
func TestACutHistoryBeginsWithAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remembers{plan: func(n int) engine {
			if n%2 == 0 {
				return says()
			}
			return says(fmt.Sprint(n))
		}}
		c := connect(t, version2(agentBacked(nil, r.engine())))
		for range 200 {
			c.send(typed("and?"))
			synctest.Wait()
		}
		for i, req := range r.requests {
			if n := len(req.History); n > 100 || i > 80 && n < 99 || i > 0 && req.History[0].Role != turn.User {
				t.Fatalf("turn %d: %d messages, the first is the %s's", i+1, n, req.History[0].Role)
			}
		}
	})
}

// The window begins when the last peer leaves, not when one leaves that had been taken over.
func TestTheWindowBeginsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := version2(session.Config{Window: time.Minute})
		one := connect(t, cfg)
		two := &client{t: t, session: one.session}
		two.join()
		synctest.Wait()
		if want := []string{"4002 the session went on in another connection"}; !slices.Equal(one.closed, want) {
			t.Errorf("the first is closed %q, want %q", one.closed, want)
		}
		began := time.Now()
		two.session.Leave(two)
		time.Sleep(50 * time.Second)
		one.session.Leave(one)
		<-one.ended
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it ended after %v", d)
		}
	})
}

// What a client of version 1 sends is taken as it always was, whatever version 2 has beside it.
func TestVersion1TakesNothingOfVersion2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := false
		c := connect(t, agentBacked(recogniser(counts), engines["slow"]))
		c.send(protocol.SessionStart{Turns: "deterministic", Interrupt: &no})
		c.expect("ready", "idle")
		for _, m := range []protocol.Message{
			typed("hello"), protocol.InputAudioClear{}, protocol.HistoryGet{}, protocol.HistoryClear{}, protocol.SessionClose{},
			protocol.SessionResume{}, protocol.PlaybackAck{}, session.Audio{PCM: []byte{0, 0}},
		} {
			c.send(m)
			c.expect("! invalid_message")
		}
		c.send(piece, commit)
		time.Sleep(150 * time.Millisecond)
		c.expect("listening", "? heard 1", ". heard 1", "thinking", "speaking", "> One")
		c.send(piece, protocol.ResponseCancel{ResponseID: "another"})
		c.expect("! turn_in_flight", "idle")
	})
}
