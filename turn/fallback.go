package turn

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"vela/protocol/signal"
)

// Fallback is the engines as one: the next is asked when one fails before a person could notice that it had begun, that
// is before it yields text or a tool call, or asks a question; ending with neither an answer nor an error is failing, too.
// What else it yields is passed on as it comes: its states, which tell an observer who is at work, its tokens, which were
// spent, and its thoughts, which are no part of the answer.
//
// skipped is told the error of each engine that another takes over from, so that somebody learns of it, from the
// goroutine of Run; it may be nil. The last error is yielded as it is. When the turn is over, nobody else is asked.
func Fallback(skipped func(error), engines ...Engine) Engine {
	if skipped == nil {
		skipped = func(error) {}
	}
	return fallback{skipped, engines}
}

type fallback struct {
	skipped func(error)
	engines []Engine
}

var errNoEngine = errors.New("turn: no engine to ask")

// ErrNoAnswer is what [Fallback] makes of an engine that ends with neither an answer nor an error.
var ErrNoAnswer = errors.New("turn: the engine ended without an answer")

// Run implements [Engine].
func (f fallback) Run(ctx context.Context, req Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		err := errNoEngine
		for i, e := range f.engines {
			if i > 0 {
				f.skipped(err)
			}
			var over bool
			if err, over = attempt(ctx, e, req, yield); over {
				return
			}
		}
		if ctx.Err() == nil {
			yield(nil, err)
		}
	}
}

// attempt lets one engine answer. It holds back an error that nobody has noticed yet, and says whether the turn is over.
func attempt(ctx context.Context, e Engine, req Request, yield func(signal.Payload, error) bool) (failed error, over bool) {
	var noticed atomic.Bool // a question may come from another goroutine
	if ask := req.Ask; ask != nil {
		req.Ask = func(ctx context.Context, q Question) (Answer, error) {
			noticed.Store(true)
			return ask(ctx, q)
		}
	}
	completed := false
	for p, err := range e.Run(ctx, req) {
		if err != nil && !noticed.Load() && ctx.Err() == nil {
			return err, false
		}
		if notable(p) {
			noticed.Store(true)
		}
		if _, ok := p.(signal.Completion); ok {
			completed = true
		}
		if !yield(p, err) || err != nil {
			return nil, true
		}
	}
	if !completed && !noticed.Load() && ctx.Err() == nil {
		return ErrNoAnswer, false
	}
	return nil, true
}

// notable says whether a person notices it: what follows then has to follow from it.
func notable(p signal.Payload) bool {
	switch p := p.(type) {
	case signal.TextDelta:
		return p.Content != ""
	case signal.ToolCall:
		return true
	}
	return false
}
