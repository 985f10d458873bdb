package tool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A call that hangs in the system is given up, keeps its place, and its goroutine ends when the system lets go.
func TestWithinGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, hangs := make(chan struct{}, 1), make(chan struct{})
		began := time.Now()
		_, err := within(t.Context(), places, time.Minute, "x", func(context.Context) (Result, error) {
			<-hangs
			return Result{Content: "late"}, nil
		})
		if err == nil || err.Error() != "x was stopped: it was not done after 1m0s." || time.Since(began) != time.Minute+grace {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		_, err = within(t.Context(), places, time.Minute, "x", func(context.Context) (Result, error) {
			t.Error("it ran without a place")
			return Result{}, nil
		})
		if err == nil || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(hangs)
		r, err := within(t.Context(), places, time.Minute, "x", func(context.Context) (Result, error) { return Result{Content: "again"}, nil })
		if err != nil || r.Content != "again" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A call that notices is waited for, and one that was done all the same is not called stopped.
func TestWithinWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := make(chan struct{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := false
		_, err := within(ctx, places, time.Minute, "x", func(ctx context.Context) (Result, error) {
			<-ctx.Done()
			time.Sleep(grace / 2)
			ended = true
			return Result{}, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || !ended {
			t.Errorf("ended: %v, %v", ended, err)
		}
		r, err := within(t.Context(), places, time.Second, "x", func(ctx context.Context) (Result, error) {
			<-ctx.Done()
			return Result{Content: "done"}, nil
		})
		if err != nil || r.Content != "done" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// The memory of an excerpt is what it may hold, not what it reads.
func TestExcerptStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := excerpt{first: 1 << 40}
	err := e.read(ctx, endless(func(n int) {
		if n == 100 {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// endless is a text without an end, and tells how often it was read from.
func endless(read func(n int)) *endlessText { return &endlessText{read: read} }

type endlessText struct {
	n    int
	read func(int)
}

func (e *endlessText) Read(p []byte) (int, error) {
	e.n++
	e.read(e.n)
	return copy(p, strings.Repeat("text\n", len(p)/5+1)), nil
}

func TestEnds(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for _, size := range []int{1, 7, 1000, maxEnd, maxEnd + 1, len(text)} {
		var e ends
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := e.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		if want := text[:maxEnd] + "\n[34464 bytes are left out here]\n" + text[len(text)-maxEnd:]; e.String() != want {
			t.Errorf("in writes of %d: %d bytes, want %d", size, len(e.String()), len(want))
		}
	}
}
