//go:build unix

package tap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// listener takes signals, and what a program prints as it comes.
type listener struct {
	mu      sync.Mutex
	printed bytes.Buffer
	sent    []string
	more    chan struct{} // of size 1
}

func newListener() *listener { return &listener{more: make(chan struct{}, 1)} }

func (l *listener) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printed.Write(b)
	l.wake()
	return len(b), nil
}

func (l *listener) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *listener) send(_ context.Context, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, string(text))
	l.wake()
	return nil
}

// await waits until that is printed, and so many signals are sent: those that wait at the end are lost on a slow machine.
func (l *listener) await(t *testing.T, text string, sent int) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		printed, signals := l.printed.String(), len(l.sent)
		l.mu.Unlock()
		if strings.Contains(printed, text) && signals >= sent {
			return
		}
		select {
		case <-l.more:
		case <-timeout:
			t.Fatalf("it printed %.1000q, want %q, and sent %d signals, want %d", printed, text, signals, sent)
		}
	}
}

// shell is a program that a shell runs.
func shell(t *testing.T, l *listener, script string) Program {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	return Program{Command: []string{"sh", "-c", script}, Lines: lines(true), Send: l.send, Stdin: null, Stdout: l, Stderr: os.Stderr}
}

func TestAProgramRunsAsIfNobodyListened(t *testing.T) {
	l := newListener()
	p := shell(t, l, `printf begun; read x; printf " %s\nError: no\n\nlast" "$x"; exec >&-; read x; exit 3`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	p.Stdin = r
	type result struct {
		Ended
		err error
	}
	done := make(chan result, 1)
	go func() { e, err := p.Run(t.Context()); done <- result{e, err} }()
	l.await(t, "begun", 0) // although the line has not ended
	if _, err := w.WriteString("input\n"); err != nil {
		t.Fatal(err)
	}
	l.await(t, "last", 3)
	_ = w.Close()
	if got := <-done; got.err != nil || got.Ended != (Ended{Code: 3, Sent: 3}) {
		t.Errorf("it ended with %+v", got)
	}
	if got := l.printed.String(); got != "begun input\nError: no\n\nlast" {
		t.Errorf("it printed %q", got)
	}
	for i, want := range []string{`"content":"begun input"`, `"message":"Error: no"`, `"content":"last"`} {
		if i >= len(l.sent) || !strings.Contains(l.sent[i], want) {
			t.Errorf("of %q no %s", l.sent, want)
		}
	}
}

// TestMain also makes this test a program to be wrapped, where a variable says so.
func TestMain(m *testing.M) {
	switch os.Getenv("TAP_TEST_PROGRAM") {
	case "":
		os.Exit(m.Run())
	case "signal": // ends by one
		got := make(chan os.Signal, 1)
		signal.Notify(got, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
		fmt.Println("ready")
		fmt.Println("got", <-got)
		os.Exit(7)
	case "leave": // leaves somebody behind
		signal.Ignore(syscall.SIGUSR1)
		left := exec.Command(os.Args[0])
		left.Env = []string{"TAP_TEST_PROGRAM=left"}
		left.Stdin, left.Stdout = os.Stdin, os.Stdout
		if err := left.Start(); err != nil {
			os.Exit(1)
		}
		os.Exit(5)
	case "left": // until its input ends
		fmt.Println("left")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// itself is this test as a program.
func itself(t *testing.T, l *listener, as string) Program {
	p := shell(t, l, "")
	p.Command = []string{os.Args[0]}
	t.Setenv("TAP_TEST_PROGRAM", as)
	return p
}

func TestAProgramGetsItsSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		l := newListener()
		p := itself(t, l, "signal")
		go func() {
			l.await(t, "ready", 0)
			_ = syscall.Kill(os.Getpid(), s)
		}()
		e, err := p.Run(t.Context())
		if err != nil || e.Code != 7 || !strings.HasSuffix(l.printed.String(), "got "+s.String()+"\n") {
			t.Errorf("%v: %+v, %v, %q", s, e, err, l.printed.String())
		}
	}
}

func TestExitCodes(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143} {
		if e, err := shell(t, newListener(), script).Run(t.Context()); err != nil || e.Code != want {
			t.Errorf("%s: %+v, %v", script, e, err)
		}
	}
	p := shell(t, newListener(), "")
	p.Command = []string{"no-such-program-anywhere"}
	if _, err := p.Run(t.Context()); !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
}

// closed is an output that nobody reads.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestNobodyReadsTheOutput(t *testing.T) {
	p := shell(t, newListener(), "while echo on; do :; done")
	p.Stdout = closed{}
	e, err := p.Run(t.Context())
	if !errors.Is(err, syscall.EPIPE) || e.Code != 128+int(syscall.SIGPIPE) {
		t.Errorf("%+v, %v", e, err)
	}
}

// What the program has started may hold its output when it has ended: it is read on, until a signal says otherwise.
func TestWhatOutlivesTheProgram(t *testing.T) {
	l := newListener()
	p := itself(t, l, "leave")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }() // which ends who is left
	p.Stdin = r
	ended := make(chan Ended, 1)
	go func() { e, _ := p.Run(t.Context()); ended <- e }()
	l.await(t, "left", 1)
	again := time.NewTicker(10 * time.Millisecond) // the program itself may get the first ones
	defer again.Stop()
	for {
		select {
		case e := <-ended:
			if e.Code != 5 || e.Sent != 1 {
				t.Errorf("%+v", e)
			}
			return
		case <-again.C:
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		}
	}
}

func TestAGatewayThatHangsStopsNothing(t *testing.T) {
	l := newListener()
	p := shell(t, l, `i=0; while [ $i -lt 6000 ]; do echo line $i; i=$((i+1)); done`)
	p.Send = func(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() }
	e, err := p.Run(t.Context())
	if err != nil || e.Code != 0 || e.Sent != 0 || e.Lost != 6000 || e.Why == nil {
		t.Errorf("%+v, %v", e, err)
	}
	if got := l.printed.String(); strings.Count(got, "\n") != 6000 || !strings.HasSuffix(got, "line 5999\n") {
		t.Errorf("%d lines came out", strings.Count(got, "\n"))
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{signals: make(chan []byte, queueLong), over: make(chan struct{})}
		hung, fails := make(chan struct{}), atomic.Bool{}
		var done sync.WaitGroup
		begun := time.Now()
		done.Go(func() {
			q.work(t.Context(), func(ctx context.Context, _ []byte) error {
				select {
				case <-hung:
				case <-ctx.Done():
					return ctx.Err()
				}
				if fails.Load() {
					return errors.New("no gateway")
				}
				return nil
			})
		})
		for range queueLong + 11 {
			q.offer([]byte("x"))
			synctest.Wait()
		}
		if lost := q.lost.Load(); lost != 10 { // one is with the worker
			t.Errorf("%d are lost", lost)
		}
		close(hung)
		synctest.Wait()
		if q.bytes.Load() != 0 || len(q.signals) != 0 {
			t.Errorf("%d bytes wait", q.bytes.Load())
		}
		fails.Store(true)
		q.offer([]byte("x"))
		q.offer([]byte("x"))
		synctest.Wait() // until it may try again
		fails.Store(false)
		time.Sleep(sendAgain)
		synctest.Wait()
		if q.lost.Load() != 11 || len(q.signals) != 0 {
			t.Errorf("%d are lost, %d wait", q.lost.Load(), len(q.signals))
		}
		fails.Store(true)
		for range 5 {
			q.offer([]byte("x"))
		}
		close(q.over)
		close(q.signals)
		done.Wait()
		if q.lost.Load() != 16 || q.sent != queueLong+1+1 || q.why == nil {
			t.Errorf("%d are lost, %d sent, %v", q.lost.Load(), q.sent, q.why)
		}
		if took := time.Since(begun); took > sendAgain {
			t.Errorf("the end took %v", took)
		}
	})
}

func TestWhatWaitsIsBoundedInBytes(t *testing.T) {
	q := &queue{signals: make(chan []byte, queueLong), over: make(chan struct{})}
	for range 3 {
		q.offer(make([]byte, queueBytes/2))
	}
	if q.lost.Load() != 1 || q.bytes.Load() != queueBytes {
		t.Errorf("%d are lost, %d bytes wait", q.lost.Load(), q.bytes.Load())
	}
}

func TestTheEndIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{signals: make(chan []byte, queueLong), over: make(chan struct{})}
		for range 5 {
			q.offer([]byte("x"))
		}
		close(q.over)
		close(q.signals)
		begun := time.Now()
		q.work(t.Context(), func(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() })
		if took := time.Since(begun); took != flushTime || q.lost.Load() != 5 {
			t.Errorf("it took %v, and %d are lost", took, q.lost.Load())
		}
	})
}

func TestSplitter(t *testing.T) {
	long := strings.Repeat("l", maxLine)
	text := "one\n\ntwo\r\n" + long + "\n" + long + "!\nthree\nfo" + "ur"
	want := []string{"one", "two\r", long, "-", "three", "four"}
	for _, size := range []int{1, 3, 1000, len(text)} {
		var s splitter
		var got []string
		line := func(b []byte, whole bool) {
			if !whole {
				b = []byte("-")
			}
			got = append(got, string(b))
		}
		for chunk := range slices.Chunk([]byte(text), size) {
			s.add(chunk, line)
		}
		s.end(line)
		s.end(line)
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %d lines, %.30q", size, len(got), got)
		}
	}
}

func TestALineThatIsTooLongComesOutAllTheSame(t *testing.T) {
	l := newListener()
	p := shell(t, l, "")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text := fmt.Sprintf("a\n%s\nb\n", strings.Repeat("l", maxLine+1))
	go func() {
		defer func() { _ = w.Close() }()
		if _, err := io.WriteString(w, text); err != nil {
			t.Error(err)
		}
		l.await(t, text, 2)
	}()
	p.Command, p.Stdin = []string{"cat"}, r
	e, err := p.Run(t.Context())
	if err != nil || e != (Ended{Sent: 2, Lost: 1}) || l.printed.String() != text {
		t.Errorf("%+v, %v, %d bytes", e, err, l.printed.Len())
	}
}
