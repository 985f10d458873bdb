package openai

import (
	"encoding/json"

	"vela/protocol/signal"
)

// reasoning is what a model thinks before it answers, under the name that its server has for it. OpenAI keeps it to
// itself.
type reasoning struct {
	ReasoningContent string `json:"reasoning_content,omitempty"` // DeepSeek, LM Studio, vLLM before 0.11
	Reasoning        string `json:"reasoning,omitempty"`         // OpenRouter, Ollama, vLLM
}

// ownReasoning is the name of the [signal.Other] whose body is a reasoning: a model that called tools wants to see what
// led it there. DeepSeek refuses the results without.
const ownReasoning = "openai.reasoning"

// maxThought bounds what is kept of a thought, in bytes; a longer one does not go back to the model.
const maxThought = 1 << 20

// thought is the reasoning of one answer, put together.
type thought struct {
	text      []byte
	isContent bool // it came as reasoning_content
	long      bool
}

// add takes a piece and returns its text. A server in between two names sends both, with the same text.
func (t *thought) add(r reasoning) string {
	text := r.ReasoningContent
	if text == "" {
		text = r.Reasoning
	}
	if text == "" || t.long {
		return text
	}
	t.isContent = r.ReasoningContent != ""
	if t.text = append(t.text, text...); len(t.text) > maxThought {
		t.text, t.long = nil, true
	}
	return text
}

// own is the thought as the model wants it back.
func (t *thought) own() (signal.Other, bool) {
	if len(t.text) == 0 {
		return signal.Other{}, false
	}
	r := reasoning{Reasoning: string(t.text)}
	if t.isContent {
		r = reasoning{ReasoningContent: string(t.text)}
	}
	body, _ := json.Marshal(r) // strings always have a JSON
	return signal.Other{Name: ownReasoning, Body: body}, true
}

// recall finds the reasoning in what a message of the model's has of its own.
func recall(own []signal.Other) reasoning {
	var r reasoning
	for _, o := range own {
		if o.Name == ownReasoning {
			_ = json.Unmarshal(o.Body, &r) // our own writing; what another engine wrote under that name counts as nothing
		}
	}
	return r
}
