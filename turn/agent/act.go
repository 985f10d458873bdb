package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/tool"
)

// guard is the tools as one turn may use them.
func (a *Agent) guard(req turn.Request) tool.Caller {
	return steady{tool.Approve(a.cfg.Tools, a.cfg.Rules, req.Ask), a.cfg.Log}
}

// act runs the calls of one round, at most MaxParallel at a time, and yields what they report while they run. It
// returns the results in the order of the calls, and no tool runs any more when it does: a tool ends with its context.
func (t *loop) act(ctx context.Context, calls []tool.Call) ([]Result, error) {
	ctx, stop := context.WithCancel(ctx)
	reports := make(chan report)
	defer func() {
		stop()
		for r := range reports { // until the last tool has ended, whatever ended the loop below: none waits for ever
			close(r.shown)
		}
	}()
	door := tool.Observe(t.tools, t.cfg.ID, func(p signal.Payload) {
		r := report{p, make(chan struct{})}
		reports <- r
		<-r.shown
	})
	results := make([]Result, len(calls))
	go func() {
		defer close(reports)
		inParallel(t.cfg.MaxParallel, len(calls), func(i int) {
			if ctx.Err() == nil {
				results[i] = call(ctx, door, calls[i], t.cfg.MaxResult)
			}
		})
	}()
	for r := range reports {
		if err := t.show(ctx, r); err != nil {
			return nil, err
		}
	}
	return results, context.Cause(ctx)
}

// report is what a tool tells. It goes on once that is shown, so that nobody is asked about a call they have not seen.
type report struct {
	payload signal.Payload
	shown   chan struct{}
}

// show yields a report, and lets its tool go on whatever becomes of it.
func (t *loop) show(ctx context.Context, r report) error {
	defer close(r.shown)
	return t.emit(ctx, r.payload)
}

// inParallel does n things, at most limit at a time, beginning with the first, and waits for all of them.
func inParallel(limit, n int, do func(i int)) {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range min(limit, n) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	workers.Wait()
}

// call runs one tool and returns what its model is shown.
func call(ctx context.Context, door tool.Caller, c tool.Call, limit int) Result {
	r := Result{CallID: c.ID, Name: c.Name}
	got, err := door.Call(ctx, c)
	if err != nil {
		got.Content, r.Failed = err.Error(), true
	}
	r.Content = shorten(orNote(got.Content, noteNoOutput), limit)
	return r
}

// steady are tools of which none takes the process with it: one that panics has failed.
type steady struct {
	tool.Caller
	log *slog.Logger
}

var errBroken = errors.New("The tool broke down.")

// Call implements [tool.Caller].
func (s steady) Call(ctx context.Context, c tool.Call) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("tool panicked", "tool", c.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = tool.Result{}, errBroken
		}
	}()
	return s.Caller.Call(ctx, c)
}
