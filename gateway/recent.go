package gateway

import (
	"context"
	"time"
)

// reportKept is how long what somebody found out is shown to everybody who wants to know.
const reportKept = 5 * time.Second

// recent is what was found out in the last seconds, so that no number of callers makes more requests to anybody's server than
// one. Its method may be called from several goroutines; its zero value is not ready: see [newRecent].
type recent[T any] struct {
	asking chan struct{} // of size 1, full while somebody finds out
	found  T             // guarded by asking, as the next
	until  time.Time     // found is good so long
}

func newRecent[T any]() recent[T] { return recent[T]{asking: make(chan struct{}, 1)} }

// lately is what find returns, or has a moment ago. Callers wait for the one that finds out; whoever does not wait to the end,
// which ctx says, gets nothing.
func (r *recent[T]) lately(ctx context.Context, find func(context.Context) T) (nothing T) {
	select {
	case r.asking <- struct{}{}:
	case <-ctx.Done():
		return nothing
	}
	defer func() { <-r.asking }()
	if time.Now().Before(r.until) {
		return r.found
	}
	found := find(ctx)
	if ctx.Err() == nil { // else it says no more than that the caller has gone
		r.found, r.until = found, time.Now().Add(reportKept)
	}
	return found
}
