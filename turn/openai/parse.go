package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"vela/protocol/signal"
	"vela/turn/stream"
)

// Parse reads the events of a chat completion and yields what [agent.Model] asks for: texts and thoughts as they come,
// then tool calls, usage, and what the model wants back. Only the first choice counts.
//
// The signals are from agentID; if that is empty, from the model that the stream names.
//
// An answer is whole once it has a finish_reason or the stream says [DONE]. Without either there is an error at its end.
// An answer that the limit of tokens cut off, or the server's filter stopped, ends with an error too, after its usage;
// its tool calls are not yielded. These errors are of type [stream.Error]; those of events are passed on as they are.
func Parse(agentID string, events iter.Seq2[stream.Event, error]) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		a := answer{agentID: agentID}
		a.read(events, yield)
	}
}

func (a *answer) read(events iter.Seq2[stream.Event, error], yield func(signal.Payload, error) bool) {
	for event, err := range events {
		if err != nil && a.reason != "" && isCut(err) {
			break // only the usage is lost
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if isLast(event) {
			a.done = true
			break
		}
		if err := a.take(event); err != nil {
			yield(nil, err)
			return
		}
		if !a.say(yield) {
			return
		}
	}
	a.end(yield)
}

func isLast(e stream.Event) bool { return bytes.HasPrefix(e.Data, done) }

var done = []byte("[DONE]")

// isCut says that an error is the server's doing, and not that of a context which is done.
func isCut(err error) bool {
	var e *stream.Error
	return errors.As(err, &e)
}

// answer is what has come of an answer so far.
type answer struct {
	agentID string
	chunk   chunk
	fast    fast

	texts   int // yielded so far
	calls   calls
	thought thought
	usage   *signal.TokenUsage
	model   string
	reason  string // finish_reason
	done    bool
}

// chunk is one event's data, as far as we read it. What a server leaves out, or sends as null, stays empty.
type chunk struct {
	Object  string `json:"object"`
	Model   string `json:"model"`
	Choices []struct {
		Index        int    `json:"index"`
		Delta        delta  `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int     `json:"prompt_tokens"`
		CompletionTokens int     `json:"completion_tokens"`
		Cost             float64 `json:"cost"` // OpenRouter, US dollars
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type delta struct {
	Content   string     `json:"content"`
	Refusal   string     `json:"refusal"` // what the model says instead of an answer in a wanted format
	ToolCalls []callPart `json:"tool_calls"`
	reasoning
}

// agent is who the signals are from.
func (a *answer) agent() string {
	if a.agentID != "" {
		return a.agentID
	}
	return a.model
}

// take reads one event into a.chunk, and keeps what is not yielded at once.
func (a *answer) take(e stream.Event) error {
	quick := e.Name != "error" && a.fast.take(e.Data, &a.chunk)
	if !quick {
		if err := a.decode(e); err != nil {
			return err
		}
	}
	if a.chunk.Model != "" {
		a.model = a.chunk.Model
	}
	if quick { // there is nothing but text in it
		return nil
	}
	return a.note(e.Data)
}

func (a *answer) decode(e stream.Event) error {
	a.chunk = chunk{}
	if err := json.Unmarshal(e.Data, &a.chunk); err != nil {
		return stream.Failed("The model's answer cannot be read.", fmt.Errorf("openai: read event: %w", err))
	}
	return a.told(e)
}

// note keeps of the chunk what is not yielded at once.
func (a *answer) note(data []byte) error {
	if u := a.chunk.Usage; u != nil {
		a.usage = &signal.TokenUsage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, Cost: u.Cost}
	}
	for _, c := range a.chunk.Choices {
		if c.Index != 0 {
			continue
		}
		if c.FinishReason != "" {
			a.reason = c.FinishReason
		}
		for _, part := range c.Delta.ToolCalls {
			if err := a.calls.add(part); err != nil {
				return err
			}
		}
	}
	a.fast.learn(data, a.chunk)
	return nil
}

// told finds an error that the server tells of in the middle of a stream: an error object, as all but a few do, an event
// of that name (SGLang), or an object that is an error itself (vLLM).
func (a *answer) told(e stream.Event) error {
	object := a.chunk.Error
	if len(object) == 0 || string(object) == "null" {
		if e.Name != "error" && a.chunk.Object != "error" {
			return nil
		}
		object = e.Data
	}
	return failed(object)
}

func failed(object []byte) error {
	words := "The model stopped with an error."
	if reason := stream.Reason(object, ""); reason != "" {
		words = "The model stopped with an error (" + reason + ")."
	}
	return stream.Failed(words, fmt.Errorf("openai: the server says in its stream: %.1024s", object))
}

// say yields the text and the thought of the chunk.
func (a *answer) say(yield func(signal.Payload, error) bool) bool {
	for i := range a.chunk.Choices {
		c := &a.chunk.Choices[i]
		if c.Index != 0 {
			continue
		}
		if thought := a.thought.add(c.Delta.reasoning); thought != "" && !yield(signal.Thinking{AgentID: a.agent(), Content: thought}, nil) {
			return false
		}
		for _, text := range [...]string{c.Delta.Content, c.Delta.Refusal} {
			if text == "" {
				continue
			}
			a.texts++
			if !yield(signal.TextDelta{AgentID: a.agent(), Content: text, Index: a.texts - 1}, nil) {
				return false
			}
		}
	}
	return true
}

// end yields what comes when the stream is at its end.
func (a *answer) end(yield func(signal.Payload, error) bool) {
	err := a.whole()
	if err == nil && !a.finish(yield) {
		return
	}
	if a.usage != nil {
		a.usage.AgentID, a.usage.Model = a.agent(), a.model
		if !yield(*a.usage, nil) {
			return
		}
	}
	if err != nil {
		yield(nil, err)
	}
}

// whole says why an answer is not whole, if it is not. Servers have reasons of their own for an end that is none of
// these; they count as good ones.
func (a *answer) whole() error {
	switch a.reason {
	case "":
		if !a.done {
			return stream.Failed("The model's answer broke off.", errors.New("openai: the stream ended without finish_reason and [DONE]"))
		}
	case "length":
		return stream.Failed("The model's answer was cut off: it has reached the limit of its length.",
			errors.New("openai: finish_reason length: raise the limit of tokens, or shorten the prompt"))
	case "content_filter":
		return stream.Failed("The model's filter stopped the answer.", errors.New("openai: finish_reason content_filter"))
	case "error", "abort": // OpenRouter, vLLM
		return stream.Failed("The model stopped with an error.", fmt.Errorf("openai: finish_reason %s", a.reason))
	}
	return a.calls.whole()
}

// finish yields the calls, and the thoughts that led to them: only with calls does the model see its message again.
func (a *answer) finish(yield func(signal.Payload, error) bool) bool {
	for _, c := range a.calls.all {
		if !yield(signal.ToolCall{AgentID: a.agent(), ToolName: c.name, CallID: c.id, Input: stream.Input(c.arguments)}, nil) {
			return false
		}
	}
	if own, ok := a.thought.own(); ok && len(a.calls.all) > 0 {
		return yield(own, nil)
	}
	return true
}
