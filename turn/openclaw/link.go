package openclaw

import (
	"context"
	"errors"
	"time"

	"vela/protocol"
)

// link is one connection, from the dial to its end. Its goroutines hand what comes to the owner of the client, and the
// last of it is that the link is down.
type link struct {
	out    chan []byte    // to be sent; full means that OpenClaw takes nothing any more
	events chan linkEvent // closed when every goroutine of the link has ended
	flush  chan struct{}  // closed: send what waits, then end
	cancel context.CancelFunc
}

// linkEvent is one of three things.
type linkEvent struct {
	hello *hello // OpenClaw has let us in
	frame *frame
	down  error // last
}

// Bounds of a link.
const (
	outQueue = 2*maxTurns + 64 // messages: a question and a stop for every turn
	writeFor = 10 * time.Second
	flushFor = 2 * time.Second
)

// errFlushed ends a link that was asked to end.
var errFlushed = errors.New("openclaw: closed by Vela")

// startLink dials in the background. The context ends with cancel alone: a link that ends well sends what waits first.
func (c *Client) startLink() *link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{
		out:    make(chan []byte, outQueue),
		events: make(chan linkEvent, 16),
		flush:  make(chan struct{}),
		cancel: cancel,
	}
	go func() {
		defer close(l.events)
		defer cancel()
		err := c.serve(ctx, l)
		l.events <- linkEvent{down: err} // the owner reads until the channel is closed
	}()
	return l
}

// serve is the whole life of a link.
func (c *Client) serve(ctx context.Context, l *link) error {
	token, err := c.cfg.Token()
	if err != nil {
		return noToken(err)
	}
	within, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	s, err := c.cfg.dial(within, c.cfg.URL)
	if err != nil {
		return silent(err)
	}
	defer s.Close()
	h, err := handshake(ctx, s, token, toAsk)
	if err != nil {
		return err
	}
	l.events <- linkEvent{hello: &h}
	ctx, stop := context.WithCancelCause(ctx)
	written := make(chan struct{})
	go func() {
		defer close(written)
		stop(l.write(ctx, s))
	}()
	err = l.read(ctx, s)
	stop(err)
	<-written
	return silent(context.Cause(ctx))
}

// noToken keeps the words of an error that are fit for a client.
func noToken(err error) *failure {
	var fit interface {
		error
		Code() protocol.Code
	}
	if errors.As(err, &fit) {
		return &failure{code: fit.Code(), words: fit.Error(), lasts: true, cause: logged(err)}
	}
	return errNoToken.because(err)
}

// read hands every frame to the owner. What is no frame is dropped.
func (l *link) read(ctx context.Context, s socket) error {
	for {
		message, err := s.Read(ctx)
		if err != nil {
			return err
		}
		if f, err := parseFrame(message); err == nil {
			l.events <- linkEvent{frame: &f}
		}
	}
}

// write sends what waits until the link ends or is asked to.
func (l *link) write(ctx context.Context, s socket) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case message := <-l.out:
			if err := l.send(ctx, s, message); err != nil {
				return err
			}
		case <-l.flush:
			for {
				select {
				case message := <-l.out:
					if err := l.send(ctx, s, message); err != nil {
						return err
					}
				default:
					return errFlushed
				}
			}
		}
	}
}

func (l *link) send(ctx context.Context, s socket, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeFor)
	defer cancel()
	return s.Write(ctx, message)
}

// end lets a link send what waits, for a moment, and returns when its goroutines have ended.
func (l *link) end() {
	close(l.flush)
	timer := time.AfterFunc(flushFor, l.cancel)
	defer timer.Stop()
	for range l.events { // it stops by itself once the rest is sent
	}
}
