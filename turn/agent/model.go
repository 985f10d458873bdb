package agent

import (
	"context"
	"iter"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/tool"
)

// Model is a language model behind some vendor's interface. Stream may be called from several goroutines.
type Model interface {
	// Stream answers a prompt once. It yields, in order, any number of [signal.TextDelta], [signal.Thinking],
	// [signal.ToolCall] (each whole, with a CallID that is unique within the answer, and its Input as the model wrote it,
	// which may be no JSON), [signal.TokenUsage] and [signal.Other]. An Other is the vendor's own, such as the signature of a thought: it is shown to nobody, and
	// goes back to the model with the message (Message.Own) in later rounds of the turn. The stream just ends when the
	// answer is whole; an error is the last thing yielded, and an answer that was cut off is an error.
	//
	// The stream ends promptly, and its request upstream with it, once ctx is done or its reader leaves the loop.
	// Errors have a method Code() protocol.Code where it is known, as for [turn.Engine].
	Stream(ctx context.Context, p Prompt) iter.Seq2[signal.Payload, error]
}

// Prompt is what a model answers. It is the model's to read, not to change.
type Prompt struct {
	System   string
	Messages []Message // oldest first; the user's and the assistant's take turns, and the user's are first and last

	// Tools is empty when the model is to answer in words, even where Messages have calls. A vendor that wants a
	// definition for each of them is given what it wants by its Model.
	Tools []tool.Definition
}

// Message is one message of a prompt. A user's one has Text or Results, an assistant's Text, Calls or both.
type Message struct {
	Role    turn.Role
	Text    string
	Calls   []tool.Call    // of the assistant; each Input is a JSON object, and each ID is the only one of the prompt
	Own     []signal.Other // of the assistant: what its model wants back
	Results []Result       // of the user: one for each of the Calls of the message before, in their order
}

// Result is what became of a tool call.
type Result struct {
	CallID  string
	Name    string
	Content string // never empty
	Failed  bool
}
