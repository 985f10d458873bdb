package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"vela/protocol/signal"
)

// Observe reports each call before it runs, as a [signal.ToolCall], and what became of it, as a [signal.ToolResult].
//
// report is called from the goroutine of Call: from several at once when tools run at once. It must not block for
// longer than the call may take; a call does not go on before it returns.
//
// What observers see is at most 192 KiB of JSON, for the input as for the output: strings beyond that are cut and say
// so, "content" first. The tool and the model have all of it.
func Observe(c Caller, agentID string, report func(signal.Payload)) Caller {
	return &observed{c, agentID, report}
}

type observed struct {
	Caller
	agentID string
	report  func(signal.Payload)
}

func (o *observed) Call(ctx context.Context, c Call) (Result, error) {
	o.report(signal.ToolCall{AgentID: o.agentID, ToolName: c.Name, CallID: c.ID, Input: shownInput(c.Input)})
	r, err := o.Caller.Call(ctx, c)
	o.report(signal.ToolResult{
		AgentID: o.agentID, ToolName: c.Name, CallID: c.ID, Success: err == nil, Output: shownOutput(r, err),
	})
	return r, err
}

// shownInput makes a JSON object of whatever a model wrote.
func shownInput(input json.RawMessage) json.RawMessage {
	switch {
	case blank(input):
		return json.RawMessage("{}")
	case isObject(input):
		return bounded(input)
	default:
		return bounded(encode(map[string]string{"input": string(input)}))
	}
}

func shownOutput(r Result, err error) json.RawMessage {
	switch {
	case err != nil:
		return bounded(encode(map[string]string{"error": words(err)}))
	case isObject(r.Output):
		return bounded(r.Output)
	default:
		return bounded(encode(map[string]string{"content": r.Content}))
	}
}

// words tells a person of an error; a context's own words are a programmer's.
func words(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "It was stopped."
	case errors.Is(err, context.DeadlineExceeded):
		return "It was stopped, since it took too long."
	}
	return err.Error()
}

// Bytes of JSON that observers see.
const (
	maxShown = 192 << 10
	noteRoom = 64 // for the note at the end of a string that was cut
)

// bounded makes a JSON object fit.
func bounded(obj json.RawMessage) json.RawMessage {
	obj = encode(obj) // as it will be on the wire, where some characters take more room
	if len(obj) <= maxShown {
		return obj
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(obj, &fields) == nil {
		for _, name := range cutOrder(fields) {
			var text string
			if json.Unmarshal(fields[name], &text) != nil {
				continue
			}
			kept := encodable(text, len(fields[name])-(len(obj)-maxShown)-noteRoom)
			fields[name] = encode(fmt.Sprintf("%s\n… cut: %d of %d bytes", kept, len(kept), len(text)))
			if obj = encode(fields); len(obj) <= maxShown {
				return obj
			}
		}
	}
	return encode(map[string]string{"content": "… too long to be shown"})
}

// cutOrder is which fields have to give: "content", then the longest. They are few, since each is followed by encoding
// all of them again.
func cutOrder(fields map[string]json.RawMessage) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(first(a, "content")-first(b, "content"), cmp.Compare(len(fields[b]), len(fields[a])), cmp.Compare(a, b))
	})
	return names[:min(len(names), 8)]
}

func first(name, wanted string) int {
	if name == wanted {
		return -1
	}
	return 0
}

// encodable returns as much of s as takes n bytes in JSON, cut between two runes.
func encodable(s string, n int) string {
	for i, r := range s {
		if n -= encodedSize(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// encodedSize is how many bytes encoding/json writes for a rune in a string.
func encodedSize(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	default:
		return utf8.RuneLen(r)
	}
}

// encode is for values that always encode.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("tool: " + err.Error())
	}
	return b
}
