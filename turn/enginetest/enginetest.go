// Package enginetest is the suite that every [turn.Engine] passes: what an engine yields and in which order, that it
// falls silent when it is told to, and that it leaves nothing behind.
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) turn.Engine { return openai.New(...) }, turn.Request{Text: "one two"})
//	}
//
// Each check is a subtest with an engine of its own, so that newEngine may set up a server and have it end with its t.
// [Suite] holds what else may be chosen: an engine without IO is held to the clock of a synctest bubble, and one that
// is set up to fail is held to how it fails. Run the tests with -race.
//
// An engine over HTTP passes with kept connections too: the goroutines of net/http's connection pool are not counted.
package enginetest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"vela/turn"
)

// Suite is what an engine is held to. New and Request are required.
type Suite struct {
	// New returns an engine that answers Request, with at least one signal before the end.
	New func(t *testing.T) turn.Engine

	// Request is asked again and again. Its Ask is replaced.
	Request turn.Request

	// Fails says that the engine is set up to fail: an error takes the completion's place.
	Fails bool

	// Bubble runs each check in a synctest bubble: time costs nothing, and a cancelled engine has to end before any
	// passes. For engines that wait for nothing but time and their own goroutines.
	Bubble bool

	// Patience is how long an engine may take to end once it is told to; 2 s by default, 1 ms in a bubble.
	Patience time.Duration
}

// Run holds an engine to the contract of [turn.Engine].
func Run(t *testing.T, newEngine func(t *testing.T) turn.Engine, req turn.Request) {
	t.Helper()
	Suite{New: newEngine, Request: req}.Run(t)
}

// Run runs every check of the suite.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if s.Bubble {
				synctest.Test(t, func(t *testing.T) { c.run(s.trial(t, s.New(t))) })
			} else {
				c.run(s.trial(t, s.New(t)))
			}
		})
	}
}

// reporter is the part of [testing.TB] that the checks need, so that a test of the suite can see them fail.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// trial is one engine under one check.
type trial struct {
	reporter
	engine   turn.Engine
	req      turn.Request
	fails    bool
	bubble   bool
	patience time.Duration // until a cancelled engine has to have ended
	longest  time.Duration // until any engine has to have ended
}

func (s Suite) trial(r reporter, e turn.Engine) *trial {
	x := &trial{reporter: r, engine: e, req: s.Request, fails: s.Fails, bubble: s.Bubble, patience: s.Patience}
	x.req.Ask = nil
	if x.patience == 0 && s.Bubble {
		x.patience = time.Millisecond
	}
	if x.patience == 0 {
		x.patience = 2 * time.Second
	}
	x.longest = max(30*time.Second, 10*x.patience)
	if s.Bubble {
		x.longest = 24 * time.Hour
	}
	return x
}

// failed reports what is wrong with one run.
func (x *trial) failed(when, format string, args ...any) {
	x.Helper()
	x.Errorf("%s: %s", when, fmt.Sprintf(format, args...))
}
