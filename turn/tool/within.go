package tool

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long a call that was stopped may take to notice.
const grace = time.Second

type outcome struct {
	result Result
	err    error
}

// within runs f, with one of the places, until its time is over or ctx is done. f notices that by its context, and is
// waited for. Only when the operating system holds it for longer than grace is its goroutine left behind; it keeps its
// place until it ends. What f does at last it does only while its context is not done, so that nothing comes of a call
// that was given up.
func within(ctx context.Context, places chan struct{}, limit time.Duration, name string, f func(context.Context) (Result, error)) (Result, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	select {
	case places <- struct{}{}:
	case <-timed.Done():
		return Result{}, stopped(ctx, name, limit)
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-places }()
		r, err := f(timed)
		done <- outcome{r, err}
	}()
	o, ok := await(timed, done)
	if !ok || timed.Err() != nil && errors.Is(o.err, timed.Err()) {
		return Result{}, stopped(ctx, name, limit)
	}
	return o.result, o.err
}

// await says whether there is an outcome, at latest when the grace after the context's end is over.
func await(ctx context.Context, done <-chan outcome) (outcome, bool) {
	select {
	case o := <-done:
		return o, true
	case <-ctx.Done():
	}
	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case o := <-done:
		return o, true
	case <-last.C:
		return outcome{}, false
	}
}

// stopped is the caller's own error, or that the call took too long.
func stopped(ctx context.Context, name string, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s was stopped: it was not done after %v.", name, limit)
}
