// Package deterministic is the fixed turn: an obviously mocked answer, and the obviously mocked words of a user whose
// audio nobody listens to. The same input gives the same events, byte for byte, so that a client can be built and
// tested with no agent, no microphone and no account.
//
// The texts are the contract's own, from the protocol's "Deterministic mocked turn sequence" and "Deterministic
// placeholder push-to-talk transcript" (protocol/README.md).
package deterministic

import (
	"context"
	"fmt"
	"iter"
	"time"

	"vela/protocol/signal"
	"vela/turn"
)

// DefaultPace is slow enough for a person to see the answer move.
const DefaultPace = 120 * time.Millisecond

// AgentID is who the signals say they are from.
const AgentID = "deterministic"

// Engine answers every request with the same two pieces of text. The zero value answers at once.
type Engine struct {
	// Pace is the pause before each event of the answer.
	Pace time.Duration
}

var answer = []string{
	"[mocked assistant] ",
	"This is a deterministic mocked response from the gateway vertical slice.",
}

// Run implements [turn.Engine].
func (e Engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		for i, text := range answer {
			if !e.wait(ctx) || !yield(signal.TextDelta{AgentID: AgentID, Content: text, Index: i}, nil) {
				return
			}
		}
		if e.wait(ctx) {
			yield(signal.Completion{TaskID: req.TurnID, AgentID: AgentID, Success: true}, nil)
		}
	}
}

// wait says whether the answer goes on after the pause.
func (e Engine) wait(ctx context.Context) bool {
	if e.Pace <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(e.Pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Question is what the user is said to have asked when a turn is triggered without any audio.
func (Engine) Question() string { return "[mocked user] What is the current mocked vertical slice?" }

// Partial is the transcript so far after the given number of chunks, from 1.
func (Engine) Partial(chunks int) string {
	if chunks <= 1 {
		return "[mocked partial] Placeholder push-to-talk transcript in progress."
	}
	return fmt.Sprintf("[mocked partial] Placeholder push-to-talk transcript in progress (%d chunks).", chunks)
}

// Final is the transcript after the given number of chunks, which may be 0.
func (Engine) Final(chunks int) string {
	if chunks == 0 {
		return "[mocked final] Placeholder push-to-talk transcript completed without appended audio."
	}
	return fmt.Sprintf("[mocked final] Placeholder push-to-talk transcript completed from %d appended chunk(s).", chunks)
}
