// Package echo is the built-in agent: it says back what it heard, word by word, so that the whole path from the
// microphone to the answer runs with nothing configured. It is labelled as what it is, and knows nothing.
package echo

import (
	"context"
	"iter"
	"strings"

	"vela/protocol/signal"
	"vela/turn"
)

// AgentID is who the signals say they are from; Label is what a person sees.
const (
	AgentID = "echo"
	Label   = "Echo, the built-in agent (it only repeats what it heard)"
)

// Engine repeats the request's text.
type Engine struct{}

// Run implements [turn.Engine].
func (Engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		index := 0
		for piece := range pieces(req.Text) {
			if ctx.Err() != nil || !yield(signal.TextDelta{AgentID: AgentID, Content: piece, Index: index}, nil) {
				return
			}
			index++
		}
		if ctx.Err() == nil {
			yield(signal.Completion{TaskID: req.TurnID, AgentID: AgentID, Success: true}, nil)
		}
	}
}

// pieces are the answer's words, each with the space before it, after a label that nobody can mistake for an answer.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield("You said:") {
			return
		}
		for _, word := range strings.Fields(text) {
			if !yield(" " + word) {
				return
			}
		}
	}
}
