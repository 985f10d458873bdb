package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"vela/protocol/signal"
)

// queued is how many signals may wait for a [Runner].
const queued = 4096

// Runner gives a [Pipeline] its goroutine and its clock. Its methods may be called from any goroutine.
type Runner struct {
	emit    func([]Command)
	in      chan arrival
	calls   chan func(*Pipeline)
	over    chan struct{} // closed when Run has returned
	dropped atomic.Uint64

	pipeline *Pipeline // owned by Run
}

type arrival struct {
	source string
	signal signal.Raw
}

// NewRunner returns a runner that hands commands to emit, as they come from [Pipeline]: in order, by the goroutine of
// Run, and good until emit returns, which must not wait for anything.
func NewRunner(w *Wiring, emit func([]Command)) *Runner {
	return &Runner{
		emit: emit, pipeline: New(w),
		in: make(chan arrival, queued), calls: make(chan func(*Pipeline)), over: make(chan struct{}),
	}
}

// Run works until ctx is done, then stops what runs and returns the context's cause. It is called once.
func (r *Runner) Run(ctx context.Context) error {
	defer close(r.over)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := r.pipeline.Next(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			r.tell(r.pipeline.Stop())
			return context.Cause(ctx)
		case a := <-r.in:
			r.tell(r.pipeline.Take(time.Now(), a.source, a.signal))
		case call := <-r.calls:
			call(r.pipeline)
		case now := <-timer.C:
			r.tell(r.pipeline.Advance(now))
		}
	}
}

func (r *Runner) tell(commands []Command) {
	if len(commands) > 0 {
		r.emit(commands)
	}
}

// Offer hands a signal over, as [Pipeline.Take] wants it. It never waits: when 4,096 signals wait already, it drops this
// one, counts it, and says false.
func (r *Runner) Offer(source string, s signal.Raw) bool {
	select {
	case r.in <- arrival{source, s}:
		return true
	default:
		r.dropped.Add(1)
		return false
	}
}

// ErrOver comes from a runner that runs no more.
var ErrOver = errors.New("pipeline: it is over")

// do has the goroutine of Run call a function, and waits for it. The error is [ErrOver], or the context's cause.
func (r *Runner) do(ctx context.Context, call func(*Pipeline)) error {
	done := make(chan struct{})
	select {
	case r.calls <- func(p *Pipeline) { defer close(done); call(p) }:
	case <-r.over:
		return ErrOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-done
	return nil
}

// Start begins a run, unless one lasts.
func (r *Runner) Start(ctx context.Context) error {
	return r.do(ctx, func(p *Pipeline) { r.tell(p.Start()) })
}

// Stop ends the run, and restores what was before.
func (r *Runner) Stop(ctx context.Context) error {
	return r.do(ctx, func(p *Pipeline) { r.tell(p.Stop()) })
}

// Load puts another wiring in force, as [Pipeline.Load] does.
func (r *Runner) Load(ctx context.Context, w *Wiring) error {
	return r.do(ctx, func(p *Pipeline) { p.Load(w) })
}

// Finished says that the stage is done with a performance.
func (r *Runner) Finished(ctx context.Context, performance uint64) error {
	return r.do(ctx, func(p *Pipeline) { p.Finished(performance) })
}

// Status says how the run goes.
func (r *Runner) Status(ctx context.Context) (Status, error) {
	var s Status
	err := r.do(ctx, func(p *Pipeline) { s = p.Status() })
	s.Dropped = r.dropped.Load()
	return s, err
}
