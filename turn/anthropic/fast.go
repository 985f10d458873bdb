package anthropic

import (
	"encoding/json"
	"reflect"

	"vela/turn/stream"
)

// fast reads the pieces of text of a stream without decoding each: it learns what a piece looks like from one that was
// decoded. What it does not know is decoded as ever.
type fast struct {
	template stream.Template
	shape    event // of the piece it was learnt from
	key      string
	vain     int // lessons since the last match
}

// lessons is how many pieces in a row are learnt from in vain before a stream is one that never repeats itself.
const lessons = 8

func (f *fast) take(data []byte, e *event) bool {
	text, ok := f.template.Match(data)
	if !ok {
		return false
	}
	f.vain = 0
	*e = f.shape
	*piece(e, f.key) = text
	return true
}

// piece is where an event has the value of a key.
func piece(e *event, key string) *string {
	switch key {
	case "text":
		return &e.Delta.Text
	case "thinking":
		return &e.Delta.Thinking
	}
	return &e.Delta.PartialJSON
}

// learn looks at an event that was decoded.
func (f *fast) learn(data []byte, e event) {
	if f.vain == lessons || e.Type != "content_block_delta" {
		return
	}
	var key string
	switch e.Delta.Type {
	case "text_delta":
		key = "text"
	case "thinking_delta":
		key = "thinking"
	case "input_json_delta":
		key = "partial_json"
	default:
		return
	}
	template, ok := stream.Learn(data, key)
	if !ok {
		return
	}
	f.vain++
	word := "probe"
	if *piece(&e, key) == word {
		word = "another"
	}
	var probed event
	if json.Unmarshal(template.Probe(word), &probed) != nil {
		return
	}
	*piece(&e, key) = word
	if reflect.DeepEqual(probed, e) {
		f.template, f.shape, f.key = template, e, key
	}
}
