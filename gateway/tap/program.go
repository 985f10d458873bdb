package tap

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"
)

// Program runs a program as if nobody listened: its standard input and its standard error are ours, what it prints comes
// out as it is, and at once, it gets the signals that this process gets, and its exit code is handed on. What it prints is
// also read line by line, and made signals. That never makes it wait: signals that cannot be sent as fast as they come
// are dropped and counted.
type Program struct {
	Command []string // and its arguments
	Lines   Lines
	// Send sends the JSON of one signal, until ctx is done.
	Send func(ctx context.Context, signal []byte) error

	Stdin  *os.File
	Stdout io.Writer
	Stderr *os.File
}

// Ended is how a program came to its end, and what of it was heard.
type Ended struct {
	Code int // as a shell has it: 128 and the signal's number for one that a signal has ended
	Sent int // signals
	Lost int // signals that were dropped, or could not be sent, and lines too long for one
	Why  error
}

// Bounds of what waits to be sent, and how long is waited for it.
const (
	maxLine    = 128 << 10              // bytes; its text may stand in its signal twice, and escaped
	queueLong  = 4096                   // signals
	queueBytes = 16 << 20               // of all of them
	sendTime   = 2 * time.Second        // for one
	sendAgain  = 500 * time.Millisecond // before the next try, after one that failed
	flushTime  = time.Second            // for all that waits when the program has ended
)

// Run runs the program to its end. The error says that it could not be started, as [exec.Cmd.Start] does, or that what
// it printed could not be written; it has its exit code all the same, then. ctx does not end the program: whoever wants
// that sends it a signal.
func (p Program) Run(ctx context.Context) (Ended, error) {
	ctx = context.WithoutCancel(ctx)
	got := make(chan os.Signal, 16)
	signal.Notify(got, noticed...)
	defer signal.Stop(got)
	r, w, err := os.Pipe()
	if err != nil {
		return Ended{}, err
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, w, p.Stderr
	err = cmd.Start()
	_ = w.Close() // the program has its own
	if err != nil {
		return Ended{}, err
	}
	var ended Ended
	over := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() { pass(got, cmd.Process, r, over) })
	q := &queue{signals: make(chan []byte, queueLong), over: make(chan struct{})}
	var sending sync.WaitGroup
	sending.Go(func() { q.work(ctx, p.Send) })

	copied := make(chan error, 1)
	go func() { copied <- p.copy(r, q) }()
	_ = cmd.Wait()   // how it ended stands in its state
	err = <-copied   // who else has its standard output may still print
	close(over)      // nobody is left to get signals
	close(q.over)    // nor is there time to try again
	close(q.signals) // after the last one
	passing.Wait()
	sending.Wait()
	ended.Code = exitCode(cmd.ProcessState)
	ended.Sent, ended.Lost, ended.Why = q.sent, int(q.lost.Load()), q.why
	return ended, err
}

// pass hands signals on to the program. When it has ended, and somebody that it started still holds its standard output, a
// signal is for us: we read no further.
func pass(got <-chan os.Signal, to *os.Process, output io.Closer, over <-chan struct{}) {
	for {
		select {
		case s := <-got:
			if isOurs(s) || fromTerminal(s) {
				continue
			}
			if err := to.Signal(s); errors.Is(err, os.ErrProcessDone) {
				_ = output.Close()
			}
		case <-over:
			return
		}
	}
}

// copy writes what the program prints, and reads along. When it cannot be written any more the program learns that, as it
// would have without us: by writing to a pipe that nobody reads.
func (p Program) copy(from io.ReadCloser, q *queue) error {
	var line splitter
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := p.Stdout.Write(buf[:n]); err != nil {
				_ = from.Close()
				return err
			}
			line.add(buf[:n], p.line(q))
		}
		if err != nil { // the end, or a pipe that was closed
			line.end(p.line(q))
			return nil
		}
	}
}

func (p Program) line(q *queue) func([]byte, bool) {
	return func(line []byte, whole bool) {
		if !whole {
			q.lost.Add(1)
		} else if s, ok := p.Lines.Signal(line); ok {
			q.offer(s.Append(nil))
		}
	}
}

// splitter cuts bytes into lines. Of one that is too long it says no more than that there was one.
type splitter struct {
	begun []byte
	long  bool
}

func (s *splitter) add(b []byte, line func(text []byte, whole bool)) {
	for {
		rest, after, ended := bytes.Cut(b, []byte("\n"))
		if s.long = s.long || len(s.begun)+len(rest) > maxLine; s.long {
			s.begun = s.begun[:0]
		} else {
			s.begun = append(s.begun, rest...)
		}
		if !ended {
			return
		}
		s.end(line)
		b = after
	}
}

// end ends the line that has begun, if one has.
func (s *splitter) end(line func(text []byte, whole bool)) {
	if s.long || len(s.begun) > 0 {
		line(s.begun, !s.long)
	}
	s.begun, s.long = s.begun[:0], false
}

// queue is what waits to be sent. One goroutine offers, another works.
type queue struct {
	signals chan []byte
	over    chan struct{} // closed when the program has ended
	bytes   atomic.Int64
	lost    atomic.Int64

	sent int   // of the worker's
	why  error // the last that went wrong
}

// offer never waits: what does not fit is lost.
func (q *queue) offer(text []byte) {
	if q.bytes.Load()+int64(len(text)) > queueBytes {
		q.lost.Add(1)
		return
	}
	q.bytes.Add(int64(len(text)))
	select {
	case q.signals <- text:
	default:
		q.bytes.Add(-int64(len(text)))
		q.lost.Add(1)
	}
}

// work sends until the queue is closed, and what is left then as far as it can be sent in a moment.
func (q *queue) work(ctx context.Context, send func(context.Context, []byte) error) {
	ctx, stop := context.WithCancel(ctx)
	var flush sync.WaitGroup
	flush.Go(func() {
		select {
		case <-q.over:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(flushTime):
			stop()
		case <-ctx.Done():
		}
	})
	defer flush.Wait()
	defer stop()
	for text := range q.signals {
		q.bytes.Add(-int64(len(text)))
		if ctx.Err() != nil {
			q.lost.Add(1)
			continue
		}
		one, done := context.WithTimeout(ctx, sendTime)
		err := send(one, text)
		done()
		if err == nil {
			q.sent++
			continue
		}
		q.why = err
		q.lost.Add(1)
		select {
		case <-q.over:
			stop() // there is no time to try again
		case <-time.After(sendAgain):
		}
	}
}
