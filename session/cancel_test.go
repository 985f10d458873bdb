package session_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

// scripted are turns to cancel: what the client sends, one after the other once nothing moves any more.
var scripted = map[string]struct {
	cfg  func() session.Config
	send []protocol.Message
}{
	"trigger":           {at(0), []protocol.Message{trigger}},
	"trigger, paced":    {at(120 * time.Millisecond), []protocol.Message{trigger}},
	"append and commit": {at(0), []protocol.Message{chunk, chunk, chunk, commit}},
	"append and commit, paced": {
		at(120 * time.Millisecond), []protocol.Message{chunk, chunk, chunk, commit}},
	"commit":                {at(0), []protocol.Message{commit}},
	"append and trigger":    {at(0), []protocol.Message{chunk, trigger}},
	"agent":                 {with("echo"), []protocol.Message{piece, piece, commit}},
	"agent, paced":          {with("slow"), []protocol.Message{piece, piece, commit}},
	"agent that uses tools": {with("works"), []protocol.Message{piece, commit}},
	"agent that asks":       {with("asks"), []protocol.Message{piece, commit}},
	"agent that fails":      {with("fails"), []protocol.Message{piece, commit}},
	"agent that panics":     {with("panics"), []protocol.Message{piece, commit}},
	"slow recogniser": {func() session.Config {
		return agentBacked(recognisers["takes 2s"], echo.Engine{})
	}, []protocol.Message{piece, piece, commit}},
}

func at(pace time.Duration) func() session.Config {
	return func() session.Config { return session.Config{Mock: deterministic.Engine{Pace: pace}} }
}

func with(engine string) func() session.Config {
	return func() session.Config { return agentBacked(recogniser(counts), engines[engine]) }
}

// playTurn sends the script of one turn and returns what was shown for it. The cancel is sent as soon as the k-th event is
// shown, from another goroutine, and ends the script; none is sent when k is negative.
func (c *client) playTurn(script []protocol.Message, k int) []string {
	c.t.Helper()
	shown, cancelled := 0, k == 0
	c.onSend = func(session.Event) {
		if shown++; shown == k {
			cancelled = true
			go c.send(cancel)
		}
	}
	if k == 0 {
		c.send(cancel)
	}
	for _, m := range script {
		synctest.Wait()
		if cancelled {
			break
		}
		c.send(m)
	}
	time.Sleep(time.Minute) // whatever a turn has started would show by then
	synctest.Wait()
	c.onSend = nil
	return c.next()
}

// A turn is cancelled right after each of its events: what was shown up to then is the beginning of the whole turn,
// idle is the last of it, nothing follows in a minute, and the next turn on the same session is whole.
func TestCancelAtEveryPoint(t *testing.T) {
	for name, s := range scripted {
		t.Run(name, func(t *testing.T) {
			var whole []string
			synctest.Test(t, func(t *testing.T) { whole = connect(t, s.cfg()).playTurn(s.send, -1) })
			if len(whole) < 4 || whole[len(whole)-1] != "idle" {
				t.Fatalf("the whole turn is %q", whole)
			}
			for k := range len(whole) + 1 {
				synctest.Test(t, func(t *testing.T) {
					c := connect(t, s.cfg())
					if got := c.playTurn(s.send, k); !isCut(got, whole, k) {
						t.Errorf("cancelled after event %d: shown\n  %q\nof\n  %q", k, got, whole)
					}
					if got := c.playTurn(s.send, -1); !slices.Equal(got, whole) {
						t.Errorf("the turn after one cancelled after event %d: shown\n  %q\nwant\n  %q", k, got, whole)
					}
				})
			}
		})
	}
}

// isCut says whether got is the whole turn, or at least k events of it and then idle.
func isCut(got, whole []string, k int) bool {
	if k == 0 {
		return len(got) == 0 // there was nothing to cancel
	}
	if slices.Equal(got, whole) {
		return true
	}
	n := len(got) - 1
	return n >= k && n < len(whole) && slices.Equal(got[:n], whole[:n]) && got[n] == "idle"
}

// A cancelled turn's engine is told so at once, and the session does not wait for it: the next turn starts while the
// last one is still on its way out.
func TestACancelDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told, gone atomic.Int32
		stubborn := engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			yield(delta("Once upon"), nil)
			<-ctx.Done()
			told.Add(1)
			time.Sleep(time.Hour)
			gone.Add(1)
		})
		c := connect(t, agentBacked(hears("hello"), stubborn))
		for n := range int32(3) {
			began := time.Now()
			c.send(piece, commit)
			c.expect("listening", ". hello", "thinking", "speaking", "> Once upon")
			c.send(cancel)
			c.expect("idle")
			if passed := time.Since(began); passed > 0 || told.Load() != n+1 {
				t.Errorf("the turn and its cancel took %v; %d of %d engines were told", passed, told.Load(), n+1)
			}
		}
		c.session.Leave(c)
		<-c.ended
		if n := gone.Load(); n != 3 {
			t.Errorf("Run has returned before %d engines", 3-n)
		}
	})
}

// A recogniser is told at once, too.
func TestARecogniserIsToldToStop(t *testing.T) {
	for name, send := range map[string][]protocol.Message{
		"cancel":            {piece, piece, cancel},
		"cancel, committed": {piece, commit, cancel},
		"trigger":           {piece, trigger},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told atomic.Int32
				c := connect(t, agentBacked(recogniser(func(ctx context.Context, _ iter.Seq[[]int16], _ yieldTranscript) {
					<-ctx.Done() // it takes no audio at all
					told.Add(1)
				}), says("hi")))
				for n := range int32(3) {
					c.send(send...)
					synctest.Wait()
					if told.Load() != n+1 {
						t.Fatalf("%d of %d recognisers were told", told.Load(), n+1)
					}
				}
			})
		})
	}
}

// Whoever a session lets go of without a cancel is told as well, while the session goes on or before Run returns.
func TestWhoeverIsLetGoOfIsTold(t *testing.T) {
	var told atomic.Int32
	waits := func(ctx context.Context) {
		<-ctx.Done()
		told.Add(1)
	}
	deaf := recogniser(func(ctx context.Context, _ iter.Seq[[]int16], _ yieldTranscript) { waits(ctx) })
	for name, c := range map[string]struct {
		cfg   session.Config
		send  []protocol.Message
		after time.Duration
		over  bool // the session is
	}{
		"a recogniser after its final transcript": {
			agentBacked(recogniser(func(ctx context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
				counts(ctx, audio, yield)
				waits(ctx)
			}), says("hi")), []protocol.Message{piece, commit}, 0, false},
		"a recogniser that is done before the commit": {
			agentBacked(recogniser(func(ctx context.Context, _ iter.Seq[[]int16], yield yieldTranscript) {
				yield(speech.Transcript{Text: "enough", Final: true}, nil)
				waits(ctx)
			}), nil), []protocol.Message{piece}, 0, false},
		"a recogniser that takes too long": {
			agentBacked(deaf, nil), []protocol.Message{piece, commit}, 30 * time.Second, false},
		"an agent that takes too long": {
			agentBacked(hears("hello"), engine(func(ctx context.Context, _ turn.Request, _ yieldSignal) { waits(ctx) })),
			[]protocol.Message{piece, commit}, 2 * time.Minute, false},
		"a recogniser when the session has been idle": {
			agentBacked(deaf, nil), []protocol.Message{piece}, 10 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told.Store(0)
				one := connect(t, c.cfg)
				one.send(c.send...)
				if c.after > 0 {
					time.Sleep(c.after - 1)
					synctest.Wait()
					if told.Load() != 0 {
						t.Error("told too early")
					}
					time.Sleep(1)
				}
				synctest.Wait()
				if told.Load() != 1 {
					t.Error("not told")
				}
				select {
				case <-one.ended:
					if !c.over {
						t.Error("the session is over")
					}
				default:
					if c.over {
						t.Error("the session is not over")
					}
				}
			})
		})
	}
}

// Cancels by the hundred, between the other events, leave the session as it was.
func TestManyCancels(t *testing.T) {
	for _, pace := range []time.Duration{0, time.Microsecond} {
		t.Run(fmt.Sprint(pace), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, session.Config{Mock: deterministic.Engine{Pace: pace}})
				for range 500 {
					c.send(trigger, cancel, cancel, chunk, cancel, commit, cancel)
				}
				time.Sleep(time.Second)
				c.next()
				c.send(trigger)
				time.Sleep(time.Second)
				c.expect(fixedTurn...)
			})
		})
	}
}
