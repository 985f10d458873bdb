package openai

import (
	"encoding/json"
	"reflect"
	"slices"

	"vela/turn/stream"
)

// fast reads the pieces of text of a stream without decoding each: it learns what a piece looks like from one that was
// decoded. What it does not know is decoded as ever.
type fast struct {
	template stream.Template
	shape    chunk   // of the piece it was learnt from
	text     *string // in shape
	vain     int     // lessons since the last match
}

// lessons is how many pieces in a row are learnt from in vain before a stream is one that never repeats itself.
const lessons = 8

func (f *fast) take(data []byte, c *chunk) bool {
	text, ok := f.template.Match(data)
	if !ok {
		return false
	}
	f.vain = 0
	*f.text = text
	*c = f.shape
	return true
}

// learn looks at a piece that was decoded. Only one that holds nothing but text will do: for what it does not decode,
// take keeps nothing.
func (f *fast) learn(data []byte, c chunk) {
	if f.vain == lessons || len(c.Choices) != 1 || c.Usage != nil {
		return
	}
	c.Choices = slices.Clone(c.Choices)
	choice := &c.Choices[0]
	d := &choice.Delta
	if choice.Index != 0 || choice.FinishReason != "" || d.ToolCalls != nil {
		return
	}
	key, text := "", (*string)(nil)
	switch {
	case d.Content != "":
		key, text = "content", &d.Content
	case d.ReasoningContent != "":
		key, text = "reasoning_content", &d.ReasoningContent
	case d.Reasoning != "":
		key, text = "reasoning", &d.Reasoning
	default:
		return
	}
	template, ok := stream.Learn(data, key, "obfuscation")
	if !ok {
		return
	}
	f.vain++
	word := "probe"
	if *text == word {
		word = "another"
	}
	var probed chunk
	if json.Unmarshal(template.Probe(word), &probed) != nil {
		return
	}
	*text = word
	if reflect.DeepEqual(probed, c) {
		f.template, f.shape, f.text = template, c, text
	}
}
