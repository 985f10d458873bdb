package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"vela/turn/stream"
)

// Bounds of the tool calls of one answer.
const (
	maxCalls     = 128
	maxArguments = 4 << 20 // bytes, of all of them
)

// callPart is a piece of a tool call. OpenAI sends the id and the name with the first piece and the index with each.
type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// arguments are a string with JSON in it; a few servers write the JSON itself.
type arguments []byte

// UnmarshalJSON implements [json.Unmarshaler].
func (a *arguments) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		if string(b) != "null" {
			*a = bytes.Clone(b)
		}
		return nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	*a = arguments(s)
	return err
}

// calls puts tool calls together from their pieces.
type calls struct {
	all  []*openCall
	size int // of all arguments
}

type openCall struct {
	index     *int
	id, name  string
	arguments []byte
}

func (cs *calls) add(p callPart) error {
	c := cs.find(p)
	if c == nil {
		if len(cs.all) == maxCalls {
			return stream.Failed("The model calls too many tools at once.", errors.New("openai: more than 128 tool calls in one answer"))
		}
		c = &openCall{index: p.Index}
		cs.all = append(cs.all, c)
	}
	if c.id == "" {
		c.id = p.ID
	}
	if p.Function.Name != c.name { // otherwise it is only said again
		c.name += p.Function.Name
	}
	c.arguments = append(c.arguments, p.Function.Arguments...)
	cs.size += len(p.Function.Arguments) + len(p.Function.Name)
	if cs.size > maxArguments {
		return stream.Failed("The model's tool calls are too long.", errors.New("openai: more than 4 MiB of tool calls in one answer"))
	}
	return nil
}

// find returns the call that a piece continues, or nil for a new one. The index decides where there is one, but for
// Ollama, which sends whole calls that all have index 0, and so for the pieces of which no call is left open: another
// id, or another name once there are arguments, begins a call.
func (cs *calls) find(p callPart) *openCall {
	for _, c := range slices.Backward(cs.all) {
		switch {
		case p.Index != nil && (c.index == nil || *c.index != *p.Index):
			continue
		case p.Index == nil && p.ID != "" && c.id != p.ID:
			continue
		}
		if p.ID != "" && c.id != "" && p.ID != c.id || p.ID == "" && c.isOver(p.Function.Name) {
			return nil
		}
		return c
	}
	return nil
}

// isOver says that a piece with this name, and without an id, belongs to another call.
func (c *openCall) isOver(name string) bool {
	if name == "" || len(c.arguments) == 0 {
		return false
	}
	return name != c.name || json.Valid(c.arguments)
}

// whole checks the calls, and gives an id to those that have none, or another one's.
func (cs *calls) whole() error {
	seen := map[string]bool{}
	for _, c := range cs.all {
		if c.name == "" {
			return stream.Failed("The model's answer cannot be read.", errors.New("openai: a tool call without a name"))
		}
		if c.id == "" || seen[c.id] {
			c.id = "call_" + strings.ReplaceAll(uuid.NewString(), "-", "") // OpenAI takes at most 40 characters
		}
		seen[c.id] = true
	}
	return nil
}
