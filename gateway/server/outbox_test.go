package server

import (
	"context"
	"errors"
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

func (c *client) bye(code protocol.CloseCode, _ string) { c.code = code }

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
