package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
)

// client is the far end of an outbox: it reads only while open.
type client struct {
	open   chan struct{}
	frames []string
	code   protocol.CloseCode
}

func (c *client) write(ctx context.Context, frame []byte, _ bool) error {
	select {
	case <-c.open:
		c.frames = append(c.frames, string(frame))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *client) bye(_ context.Context, code protocol.CloseCode, _ string) { c.code = code }

func newClient(t *testing.T, reads bool) (*client, *outbox, context.Context) {
	c := &client{open: make(chan struct{})}
	if reads {
		close(c.open)
	}
	ctx, cut := context.WithCancel(t.Context())
	o := new(outbox)
	o.open(ctx, cut, 1, c.write, c.bye)
	return c, o, ctx
}

func TestOutboxKeepsOrderAndLeavesNoWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, _ := newClient(t, true)
		for i := range 1000 {
			o.put(session.Event{Message: protocol.TranscriptPartial{Text: strings.Repeat("x", i%7)}})
			if i%100 == 0 {
				synctest.Wait() // the writer is gone now; the next put starts another
			}
		}
		o.close(protocol.CloseIdle, "")
		o.wait()
		if len(c.frames) != 1000 || c.code != protocol.CloseIdle {
			t.Fatalf("%d frames, closed with %d", len(c.frames), c.code)
		}
		for i, f := range c.frames {
			if want := string(protocol.Encode(protocol.TranscriptPartial{Text: strings.Repeat("x", i%7)})); f != want {
				t.Fatalf("frame %d is %s, want %s", i, f, want)
			}
		}
	})
}

func TestASlowConsumerIsClosedWith4003(t *testing.T) {
	for name, event := range map[string]protocol.Message{
		"many events": protocol.ResponseCompleted{},
		"many bytes":  protocol.ResponseTextDelta{Text: strings.Repeat("x", 100<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o, ctx := newClient(t, false)
				o.put(session.Event{Message: event})
				synctest.Wait() // the writer has it, and is stuck with it
				for range maxWaiting + 1 {
					o.put(session.Event{Message: event})
				}
				if o.closedWith() != protocol.CloseSlowConsumer {
					t.Fatalf("closed with %d", o.closedWith())
				}
				close(c.open) // it reads again, in time to see why
				o.wait()
				if c.code != protocol.CloseSlowConsumer || ctx.Err() != nil {
					t.Errorf("told %d, %v", c.code, ctx.Err())
				}
				if len(c.frames) > maxWaiting {
					t.Errorf("%d frames were written after the end", len(c.frames))
				}
			})
		})
	}
}

func TestAClientThatNeverReadsIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, o, ctx := newClient(t, false)
		o.put(session.Event{Message: protocol.ResponseCompleted{}})
		synctest.Wait()
		for range maxWaiting + 1 {
			o.put(session.Event{Message: protocol.ResponseCompleted{}})
		}
		began := time.Now()
		<-ctx.Done()
		o.wait()
		if time.Since(began) != goodbye {
			t.Errorf("cut after %s", time.Since(began))
		}
	})
}

func TestTheFirstReasonToCloseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, _ := newClient(t, true)
		o.close(protocol.CloseIdle, "")
		o.close(protocol.CloseInternal, "")
		o.put(session.Event{Message: protocol.ResponseCompleted{}})
		o.wait()
		if c.code != protocol.CloseIdle || len(c.frames) != 0 {
			t.Errorf("told %d, %q", c.code, c.frames)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keepAlive
		var pings atomic.Int32
		var mute atomic.Bool
		cut := make(chan struct{})
		k.start(t.Context(), 20*time.Second, func(ctx context.Context) error {
			pings.Add(1)
			if !mute.Load() {
				return nil
			}
			<-ctx.Done()
			return errors.New("no pong")
		}, func() { close(cut) })
		time.Sleep(5*20*time.Second + time.Second)
		synctest.Wait()
		if pings.Load() != 5 {
			t.Errorf("%d pings in 101 s, want 5", pings.Load())
		}
		mute.Store(true)
		began := time.Now()
		<-cut
		if waited := time.Since(began); waited != 39*time.Second {
			t.Errorf("cut after %s: the next ping was due in 19 s, its pong 20 s later", waited)
		}
		k.stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if pings.Load() != 6 {
			t.Errorf("%d pings, the last ones after the end", pings.Load())
		}
	})
}

// ring is a [Subscription] that keeps the last three.
type ring struct {
	waits  []string
	missed uint64
}

func (r *ring) offer(o *outbox, text string) {
	if len(r.waits) == 3 {
		r.waits, r.missed = r.waits[1:], r.missed+1
	}
	r.waits = append(r.waits, text)
	o.signalled()
}

func (r *ring) Next() (LoggedSignal, bool) {
	if len(r.waits) == 0 {
		return LoggedSignal{}, false
	}
	s := LoggedSignal{Text: []byte(r.waits[0]), Missed: r.missed}
	r.waits, r.missed = r.waits[1:], 0
	return s, true
}

func (*ring) Add(protocol.SignalSubscribe) error      { return nil }
func (*ring) Remove(protocol.SignalUnsubscribe) error { return nil }
func (*ring) Close()                                  {}

// A client that does not read loses signals, and not its connection; when it reads again it gets the events of its session
// first, all of them, and then how many signals it missed, and those that are left.
func TestASlowClientLosesSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, ctx := newClient(t, false)
		o.version = 2
		var r ring
		o.follow(&r)
		r.offer(o, `{"n":0}`)
		synctest.Wait() // the writer has it, and is stuck with it
		for i := range 10 * maxWaiting {
			r.offer(o, fmt.Sprintf(`{"n":%d}`, i+1))
		}
		for seq := range uint64(3) {
			o.put(session.Event{Seq: seq + 1, At: 1, Message: protocol.ResponseCompleted{}})
		}
		if o.closedWith() != 0 || ctx.Err() != nil {
			t.Fatalf("closed with %d", o.closedWith())
		}
		close(c.open)
		synctest.Wait()
		want := []string{
			`{"type":"signal","payload":{"n":0}}`,
			`{"type":"response.completed","payload":{},"seq":1,"ts":1}`, `{"type":"response.completed","payload":{},"seq":2,"ts":1}`,
			`{"type":"response.completed","payload":{},"seq":3,"ts":1}`, fmt.Sprintf(`{"type":"signal.missed","payload":{"count":%d}}`, 10*maxWaiting-3),
			fmt.Sprintf(`{"type":"signal","payload":{"n":%d}}`, 10*maxWaiting-2), fmt.Sprintf(`{"type":"signal","payload":{"n":%d}}`, 10*maxWaiting-1),
			fmt.Sprintf(`{"type":"signal","payload":{"n":%d}}`, 10*maxWaiting),
		}
		if got := strings.Join(c.frames, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("written:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
		}
		o.close(protocol.CloseIdle, "")
		r.offer(o, `{"n":"too late"}`)
		o.wait()
		if len(c.frames) != len(want) || c.code != protocol.CloseIdle {
			t.Errorf("after the end: %q, closed with %d", c.frames[len(want):], c.code)
		}
	})
}

// What a client may emit comes back at fifty a second, up to a hundred, however long it was away.
func TestTheRateOfSignals(t *testing.T) {
	var g signaller
	now := time.Unix(1e9, 0)
	may := func() (n int) {
		for g.mayEmit(now) {
			n++
		}
		return n
	}
	for _, x := range []struct {
		after time.Duration
		want  int
	}{{0, 100}, {0, 0}, {19 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Second, 50}, {30 * time.Millisecond, 1}, {10 * time.Millisecond, 1}, {time.Hour, 100}} {
		now = now.Add(x.after)
		if n := may(); n != x.want {
			t.Errorf("after %v: %d, want %d", x.after, n, x.want)
		}
	}
}
