package source

import (
	"context"
	"errors"
	"io"
	"time"
)

// Conn is a connection that says something. Next waits for the next message, which is valid until the following call; it
// returns [io.EOF] when the other side has ended the connection well, and any other error when it broke.
type Conn interface {
	Next(ctx context.Context) ([]byte, error)
	Close() error
}

// Refusal is an error that trying again does not mend, such as a wrong key.
type Refusal interface {
	error
	Refused() bool
}

// How a connection that broke is tried again: after 1 s, then twice as long each time up to 30 s, ten times in a row.
const (
	firstWait = time.Second
	longWait  = 30 * time.Second
	mostTries = 10
)

// backoff counts tries in a row that did not connect.
type backoff int

// next is how long to wait before the next try; false when there is to be none.
func (b *backoff) next() (time.Duration, bool) {
	if *b >= mostTries {
		return 0, false
	}
	wait := min(firstWait<<*b, longWait)
	*b++
	return wait, true
}

// Link keeps one connection, and takes it up again when it breaks. All three functions are called from the goroutine of
// [Link.Run]; Hear and Show must not wait.
type Link struct {
	Dial func(ctx context.Context) (Conn, error)
	Hear func(message []byte)
	// Show is told how the source is, and why, in words that name no address and no key.
	Show func(state State, why string)
}

// Run works until ctx is done, the other side ends the connection, or it is of no use to try again: then it returns, and
// has shown why.
func (l Link) Run(ctx context.Context) {
	var tries backoff
	for {
		l.Show(Connecting, "")
		connected, err := l.once(ctx)
		if connected {
			tries = 0
		}
		var refusal Refusal
		switch {
		case ctx.Err() != nil, errors.Is(err, io.EOF):
			l.Show(Disconnected, "")
			return
		case errors.As(err, &refusal) && refusal.Refused():
			l.Show(Failed, refusal.Error())
			return
		}
		wait, more := tries.next()
		if !more {
			l.Show(Failed, "The source cannot be reached. Is it running, and is the address right?")
			return
		}
		if connected {
			l.Show(Connecting, "The connection broke; it is tried again.")
		} else {
			l.Show(Connecting, "The source cannot be reached yet; it is tried again.")
		}
		if !pause(ctx, wait) {
			l.Show(Disconnected, "")
			return
		}
	}
}

// once connects, and hears all there is.
func (l Link) once(ctx context.Context) (connected bool, err error) {
	conn, err := l.Dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }() // what matters was heard
	l.Show(Connected, "")
	for {
		message, err := conn.Next(ctx)
		if err != nil {
			return true, err
		}
		l.Hear(message)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
