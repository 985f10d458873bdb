package pipeline

import (
	"encoding/json"
	"strings"

	"vela/protocol/signal"
)

// numberFor looks a number up for a property: in the field that the binding names, the one that is called like the
// property's last part, the one called value, and then in any, in the order of the payload.
func numberFor(payload json.RawMessage, field, property string) (float64, bool) {
	last := property[strings.LastIndexByte(property, '.')+1:]
	for _, name := range []string{field, last, "value"} {
		if name == "" {
			continue
		}
		if n, ok := numberOf(member(payload, name)); ok {
			return n, true
		}
	}
	for _, v := range signal.Members(payload) {
		if n, ok := numberOf(v); ok {
			return n, true
		}
	}
	return 0, false
}

// textFor looks up what is said: in the field that the binding names, in content, text and message, and then in the first
// string that is not empty.
func textFor(payload json.RawMessage, field string) (string, bool) {
	for _, name := range []string{field, "content", "text", "message"} {
		if name == "" {
			continue
		}
		if text, ok := textOf(member(payload, name)); ok {
			return string(text), true
		}
	}
	for _, v := range signal.Members(payload) {
		if text, ok := textOf(v); ok && len(text) > 0 {
			return string(text), true
		}
	}
	return "", false
}
