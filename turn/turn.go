// Package turn is the vocabulary of one exchange: a [Request] that a person made goes to an [Engine], which answers
// with a stream of signals. Every kind of agent is an Engine in a package below this one; package enginetest is the
// suite that each of them passes. Start at [Engine].
//
// The package does no IO and starts no goroutine.
package turn

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"vela/protocol/signal"
)

// Engine answers requests. One Engine serves many sessions at a time, so Run may be called from several goroutines.
type Engine interface {
	// Run answers one request. What it yields, in order: any number of [signal.TextDelta], [signal.Thinking],
	// [signal.ToolCall], [signal.ToolResult], [signal.TokenUsage] and [signal.AgentStateChange], then exactly one
	// [signal.Completion]. An error takes the completion's place and is the last thing yielded.
	//
	// The stream ends promptly once ctx is done or its reader leaves the loop; neither needs an error. Run yields from
	// the goroutine that ranges over it, and no goroutine of its own outlives the loop.
	//
	// An error that has a method Code() protocol.Code is told to the client under that code and in its own words, so
	// these name no path, key or host; any other is told as agent_failed, and logged.
	Run(ctx context.Context, req Request) iter.Seq2[signal.Payload, error]
}

// Request is what a person asks for, in one turn.
type Request struct {
	SessionID string
	TurnID    string
	Text      string    // what was said or typed; never empty in an agent-backed turn
	History   []Message // the conversation before this turn, oldest first; not to be changed

	// Ask puts a question to the person and waits for the answer. The engine calls it from the goroutine of Run, or
	// from one that Run waits for. It returns the context's error when the turn ends first. It is nil where nobody can
	// be asked: that is a no.
	Ask func(context.Context, Question) (Answer, error)
}

// Role says whose words a [Message] holds.
type Role string

// The two sides of a conversation.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one part of a conversation as the agent knows it.
type Message struct {
	Role        Role
	Text        string
	Written     string    // of the assistant: the whole text, where Text is only what was heard of it
	Tools       []ToolUse // of the assistant: what it did on the way to Text, in order
	Interrupted bool      // of the assistant: it was stopped, or failed, and Text is what the person heard of it
	At          time.Time
}

// ToolUse is a tool call and its result, which no cut of a conversation can part.
type ToolUse struct {
	CallID  string
	Name    string
	Input   json.RawMessage // a JSON object
	Output  json.RawMessage // a JSON object; empty when there was no result any more, or it was too long to keep
	Success bool

	// Where in its answer the call stands. A model asks for several things at once, is shown what came of them, and goes
	// on: calls of one such round have the same Round, a later one a higher, and where an engine tells of none it is 0.
	// After is how many bytes of the whole answer had been said before the call.
	Round int
	After int
}

// Question is what an engine wants to know before it goes on, such as whether a tool may run.
type Question struct {
	CallID  string // the tool call in question
	Name    string // the tool
	Summary string // one line for a person
	Risky   bool   // it may destroy something
}

// Answer is what the person said. The zero value is a no.
type Answer struct {
	Allow    bool
	Remember bool // for the rest of the session
}
