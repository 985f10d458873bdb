package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"vela/protocol/signal"
	"vela/turn/stream"
)

// Bounds of what is kept of one answer.
const (
	maxBlocks = 1024
	maxKept   = 4 << 20 // bytes: inputs of tools, thoughts and their signatures
)

// ownThinking is the name of the [signal.Other] whose body is a block of thought, with the signature by which the API
// knows it as its own. Before the results of tools it wants to see the thoughts that led to the calls.
const ownThinking = "anthropic.thinking"

// contentBlock is how a block begins. Of most, all but the type is empty.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"` // of redacted_thinking
	ID        string          `json:"id"`   // of tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// block is a block of a message in the making.
type block struct {
	index    int
	kind     string
	id, name string          // of tool_use
	given    json.RawMessage // the input it began with, which counts where no piece comes
	data     string          // of redacted_thinking
	closed   bool

	pieces    []byte // of the input, or of the thought
	signature []byte
}

// start begins a block. A block that has ended may have had the same index: not all servers count.
func (a *answer) start() (signal.Payload, error) {
	c := &a.event.ContentBlock
	if open := a.find(a.event.Index); open != nil && !open.closed {
		return nil, broken(errors.New("anthropic: a block begins in the place of one that has not ended"))
	}
	if len(a.blocks) == maxBlocks {
		return nil, broken(errors.New("anthropic: more than 1,024 blocks in one message"))
	}
	b := &block{index: a.event.Index, kind: c.Type, id: c.ID, name: c.Name, given: c.Input, data: c.Data}
	a.blocks = append(a.blocks, b)
	b.signature = append(b.signature, c.Signature...)
	switch c.Type {
	case "text":
		return a.text(c.Text), nil
	case "thinking":
		b.pieces = append(b.pieces, c.Thinking...)
		return a.thought(c.Thinking), a.keep(len(c.Thinking) + len(c.Signature))
	case "tool_use":
		if c.ID == "" || c.Name == "" {
			return nil, broken(errors.New("anthropic: a tool call without an id or a name"))
		}
		if slices.ContainsFunc(a.blocks[:len(a.blocks)-1], func(other *block) bool { return other.id == c.ID }) {
			return nil, broken(errors.New("anthropic: two tool calls have one id"))
		}
	}
	return nil, a.keep(len(c.Data) + len(c.Input))
}

// delta takes a piece of a block.
func (a *answer) delta() (signal.Payload, error) {
	b, d := a.find(a.event.Index), &a.event.Delta
	if b == nil || b.closed {
		return nil, broken(fmt.Errorf("anthropic: a piece of block %d, which is not open", a.event.Index))
	}
	switch d.Type {
	case "text_delta":
		return a.text(d.Text), nil
	case "thinking_delta":
		b.pieces = append(b.pieces, d.Thinking...)
		return a.thought(d.Thinking), a.keep(len(d.Thinking))
	case "signature_delta":
		b.signature = append(b.signature, d.Signature...)
		return nil, a.keep(len(d.Signature))
	case "input_json_delta":
		b.pieces = append(b.pieces, d.PartialJSON...)
		return nil, a.keep(len(d.PartialJSON))
	}
	return nil, nil
}

// stop ends a block. Of a thought, what the model wants back is known now.
func (a *answer) stop() (signal.Payload, error) {
	b := a.find(a.event.Index)
	if b == nil || b.closed {
		return nil, broken(fmt.Errorf("anthropic: the end of block %d, which is not open", a.event.Index))
	}
	b.closed = true
	var own any
	switch b.kind {
	case "thinking":
		own = struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
		}{b.kind, string(b.pieces), string(b.signature)}
	case "redacted_thinking":
		own = struct {
			Type string `json:"type"`
			Data string `json:"data"`
		}{b.kind, b.data}
	default:
		return nil, nil
	}
	body, _ := json.Marshal(own) // strings always have a JSON
	return signal.Other{Name: ownThinking, Body: body}, nil
}

// find returns the last block of an index, or nil.
func (a *answer) find(index int) *block {
	for _, b := range slices.Backward(a.blocks) {
		if b.index == index {
			return b
		}
	}
	return nil
}

// keep counts what is kept.
func (a *answer) keep(bytes int) error {
	if a.size += bytes; a.size > maxKept {
		return stream.Failed("The model's tool calls are too long.", errors.New("anthropic: more than 4 MiB of tool calls and thoughts in one message"))
	}
	return nil
}

// callable says whether all tool calls of a message that has ended have.
func (a *answer) callable() error {
	for _, b := range a.blocks {
		if b.kind == "tool_use" && !b.closed {
			return broken(errors.New("anthropic: a tool call has no end"))
		}
	}
	return nil
}

func (b *block) call(agentID string) signal.ToolCall {
	input := b.pieces
	if len(input) == 0 && string(b.given) != "null" {
		input = b.given
	}
	return signal.ToolCall{AgentID: agentID, ToolName: b.name, CallID: b.id, Input: stream.Input(input)}
}
