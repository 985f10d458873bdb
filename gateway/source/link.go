package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"vela/turn/openclaw"
)

// Conn is a connection that says something. Next waits for the next message, which is valid until the following call; it
// returns [io.EOF] when the other side has ended the connection well, and any other error when it broke.
type Conn interface {
	Next(ctx context.Context) ([]byte, error)
	Close() error
}

// Refusal is an error whose words are fit for whoever looks at a source: they name no address, no path and no key.
// Refused says that trying again does not mend it, as with a wrong key.
type Refusal interface {
	error
	Refused() bool
}

// fault is the [Refusal] of this package.
type fault struct {
	words string
	final bool
}

func (f fault) Error() string { return f.words }
func (f fault) Refused() bool { return f.final }

// A connection that does not last is taken up again all the same, but a source with several of them in a row says so.
const (
	lasting   = 10 * time.Second
	manyBrief = 3
)

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
	var tries openclaw.Backoff // the same for every source
	brief := 0                 // connections in a row that did not last
	l.Show(Connecting, "")
	for {
		lasted, left, err := l.once(ctx, brief)
		switch {
		case lasted >= lasting:
			tries, brief = 0, 0
		case lasted > 0:
			tries = 0
			brief++
		}
		var refusal Refusal
		said := errors.As(err, &refusal)
		switch {
		case ctx.Err() != nil, err == io.EOF: // what only wraps it is a connection that ended without a word
			l.Show(Disconnected, left)
			return
		case said && refusal.Refused():
			l.Show(Failed, refusal.Error())
			return
		}
		wait, more := tries.Next()
		switch {
		case !more && said:
			l.Show(Failed, refusal.Error())
			return
		case !more:
			l.Show(Failed, "The source cannot be reached. Is it running, and is the address right?")
			return
		case said:
			l.Show(Connecting, refusal.Error()+" It is tried again.")
		case brief >= manyBrief:
			l.Show(Connecting, unsteady(brief))
		case lasted > 0:
			l.Show(Connecting, "The connection broke; it is tried again.")
		default:
			l.Show(Connecting, "The source cannot be reached yet; it is tried again.")
		}
		if !pause(ctx, wait) {
			l.Show(Disconnected, "")
			return
		}
	}
}

func unsteady(brief int) string {
	return fmt.Sprintf("The connection broke %d times in a row within %d seconds of its beginning. Does the program at its other end restart?", brief, lasting/time.Second)
}

// once connects, and hears all there is. It returns how long the connection lasted, which is 0 if there was none, and what
// is left behind, if its end says so.
func (l Link) once(ctx context.Context, brief int) (lasted time.Duration, left string, err error) {
	conn, err := l.Dial(ctx)
	if err != nil {
		return 0, "", err
	}
	defer func() {
		var said Refusal
		if errors.As(conn.Close(), &said) {
			left = said.Error()
		}
	}()
	began, why := time.Now(), ""
	if brief >= manyBrief {
		why = unsteady(brief)
	}
	l.Show(Connected, why)
	for {
		message, err := conn.Next(ctx)
		if why != "" && time.Since(began) >= lasting {
			why = ""
			l.Show(Connected, why)
		}
		if err != nil {
			return max(time.Since(began), 1), "", err
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
