package stream

import (
	"bytes"
	"encoding/json"
)

// Input is what a model wrote as the input of a tool, in UTF-8: {} for nothing, and otherwise the text as it is, which may be
// no JSON at all. Whoever runs the tool refuses it then in words that tell the model so.
func Input(text []byte) json.RawMessage {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return json.RawMessage("{}")
	}
	return bytes.ToValidUTF8(bytes.Clone(text), []byte("\ufffd"))
}

// Object makes such an input into a JSON object, which is what a signal and a vendor can carry: the text itself where it is
// one, {"input": "the text"} for anything else.
func Object(text []byte) json.RawMessage {
	text = Input(text)
	if text[0] == '{' && json.Valid(text) {
		return text
	}
	wrapped, _ := json.Marshal(map[string]string{"input": string(text)}) // a map of strings always has a JSON
	return wrapped
}
