package pipeline

import (
	"encoding/json"
	"strconv"
	"strings"

	"vela/protocol/signal"
)

// sample is a signal on its way through the pipeline: its type, and its payload as it stands by now. A payload is never
// changed in place.
type sample struct {
	typ     string
	payload json.RawMessage
}

// path leads to a value of a signal: "type" to its type, anything else to a place in its payload.
type path []string

// parsePath reads a path with dots. It means the same with and without "signal." in front.
func parsePath(text string) path { return strings.Split(strings.TrimPrefix(text, "signal."), ".") }

func (p path) isType() bool { return len(p) == 1 && p[0] == "type" }

// value finds what the path leads to; nil if there is nothing. A number leads into an array.
func (p path) value(s sample) json.RawMessage {
	if p.isType() {
		return quoted(s.typ)
	}
	v := s.payload
	for _, step := range p {
		if len(v) == 0 {
			return nil
		}
		switch v[0] {
		case '{':
			v = member(v, step)
		case '[':
			v = element(v, step)
		default:
			return nil
		}
	}
	return v
}

// set returns a payload with a value put where the path leads. What stands in the way and is no object gives way to one.
func (p path) set(object, value json.RawMessage) json.RawMessage {
	if len(p) > 1 {
		inner := member(object, p[0])
		if len(inner) == 0 || inner[0] != '{' {
			inner = json.RawMessage("{}")
		}
		value = p[1:].set(inner, value)
	}
	return signal.Set(object, p[0], value)
}

// member is the last member of an object with this name, as encoding/json and JavaScript have it.
func member(object json.RawMessage, name string) json.RawMessage {
	var last json.RawMessage
	for n, v := range signal.Members(object) {
		if string(n) == name {
			last = v
		}
	}
	return last
}

func element(array json.RawMessage, step string) json.RawMessage {
	n, err := strconv.Atoi(step)
	if err != nil || n < 0 || strconv.Itoa(n) != step {
		return nil
	}
	var all []json.RawMessage
	if json.Unmarshal(array, &all) != nil || n >= len(all) {
		return nil
	}
	return all[n]
}

// quoted is a text as JSON.
func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always has a JSON
	return b
}

// textOf is the text of a JSON string, without a copy where it has no escapes.
func textOf(v json.RawMessage) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	for _, c := range v {
		if c == '\\' {
			var s string
			err := json.Unmarshal(v, &s)
			return []byte(s), err == nil
		}
	}
	return v[1 : len(v)-1], true
}

// numberOf reads a JSON number.
func numberOf(v json.RawMessage) (float64, bool) {
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}
