package stream

import (
	"bytes"
	"encoding/json"
)

// Object makes what a model wrote as the input of a tool into a JSON object, which is what a signal can carry: {} for
// nothing, the text itself where it is an object, {"input": "the text"} for anything else. The tool then says what it
// misses, and the model can try again.
func Object(text []byte) json.RawMessage {
	text = bytes.ToValidUTF8(bytes.TrimSpace(text), []byte("\ufffd"))
	switch {
	case len(text) == 0:
		return json.RawMessage("{}")
	case text[0] == '{' && json.Valid(text):
		return bytes.Clone(text)
	}
	wrapped, _ := json.Marshal(map[string]string{"input": string(text)}) // a map of strings always has a JSON
	return wrapped
}
