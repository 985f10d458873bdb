package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A runner does by itself what is due, ends with its context, and stops what runs.
func TestRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		r := NewRunner(parse(t, bound(`"property":"scale","sourceType":"event","transition":{"targetValue":3,"durationMs":100,"revert":true,"revertDelayMs":1000}`, "")), func(commands []Command) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, shorts(commands)...)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		var ended error
		var wait sync.WaitGroup
		wait.Go(func() { ended = r.Run(ctx) })
		said := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			got = nil
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		r.Offer("s", raw("x", `{}`))
		said()
		must(r.Start(ctx))
		r.Offer("s", raw("x", `{}`))
		said("started", "a x {}", "e.scale=3 from 1 in 100ms linear")
		must(r.Finished(ctx, 1))
		time.Sleep(100 * time.Millisecond)
		said("e.scale=3")
		time.Sleep(time.Second)
		said("e.scale=1 from 3 in 100ms linear")
		time.Sleep(time.Hour)
		said("e.scale=1")
		if s, err := r.Status(ctx); err != nil || !s.Running || s.Count != 1 || s.Dropped != 0 || len(s.Wires) != 3 {
			t.Errorf("%+v, %v", s, err)
		}
		must(r.Load(ctx, parse(t, `{"choreographies":[{"id":"other","on":"x"}]}`)))
		r.Offer("s", raw("x", `{}`))
		said("other x {}")
		must(r.Stop(ctx))
		said("stopped")
		must(r.Start(ctx))
		cancel(over)
		said("started", "stopped")
		wait.Wait()
		if !errors.Is(ended, over) {
			t.Errorf("Run returned %v", ended)
		}
		if err := r.Start(t.Context()); !errors.Is(err, ErrOver) {
			t.Errorf("a start after the end: %v", err)
		}
	})
}

// A runner that is not fast enough drops what comes, and says how much; whoever brings it never waits.
func TestARunnerThatIsBehindDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, seen := make(chan struct{}), 0
		r := NewRunner(parse(t, `{"choreographies":[{"id":"a","on":"x"}]}`), func(commands []Command) {
			if seen++; seen == 2 {
				<-stuck
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _ = r.Run(ctx) })
		if err := r.Start(ctx); err != nil {
			t.Fatal(err)
		}
		r.Offer("s", raw("x", `{}`))
		synctest.Wait()
		dropped := 0
		for range queued + 7 {
			if !r.Offer("s", raw("x", `{}`)) {
				dropped++
			}
		}
		waits, leave := context.WithTimeout(ctx, time.Second)
		if err := r.Start(waits); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call to a runner that is stuck: %v", err)
		}
		leave()
		close(stuck)
		synctest.Wait()
		if s, err := r.Status(ctx); err != nil || dropped != 7 || s.Dropped != 7 || s.Count != 1+queued {
			t.Errorf("%d were refused, %+v, %v", dropped, s, err)
		}
		cancel()
		wait.Wait()
	})
}
