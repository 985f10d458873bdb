package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"vela/protocol/signal"
	"vela/turn/stream"
)

// Parse reads the events of a message and yields what [agent.Model] asks for: texts and thoughts as they come; at the
// end of each thought, what the model wants back of it; tool calls and usage at the end of the message.
//
// The signals are from agentID; if that is empty, from the model that the stream names. The prompt's tokens in the usage
// include those that were written to a cache or read from it.
//
// An answer is whole once the stream says message_stop. Without it there is an error at its end. An answer that a limit
// of tokens cut off, or that the model declined to give, ends with an error too, after its usage; its tool calls are not
// yielded. These errors are of type [stream.Error]; those of events are passed on as they are.
func Parse(agentID string, events iter.Seq2[stream.Event, error]) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		a := answer{agentID: agentID}
		a.read(events, yield)
	}
}

// lastEvent is the type of the event that ends a message.
const lastEvent = "message_stop"

// isLast takes the event's name for the type of its data, which it always is with Anthropic; a server that leaves the
// names out ends its stream itself.
func isLast(e stream.Event) bool { return e.Name == lastEvent }

// answer is what has come of an answer so far.
type answer struct {
	agentID string
	event   event
	fast    fast

	model  string
	blocks []*block
	size   int // of all that is kept of the blocks, in bytes
	texts  int // yielded so far
	usage  usage
	reason string // stop_reason
	done   bool
}

// event is one event's data, as far as we read it. What a type does not have stays empty.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"` // message_start
	Index        int          `json:"index"`         // content_block_*
	ContentBlock contentBlock `json:"content_block"` // content_block_start
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"` // message_delta
	} `json:"delta"`
	Usage usage           `json:"usage"` // message_delta
	Error json.RawMessage `json:"error"`
}

// usage has totals of the whole message; a later one replaces those it names.
type usage struct {
	Input         *int `json:"input_tokens"`
	CacheCreation *int `json:"cache_creation_input_tokens"`
	CacheRead     *int `json:"cache_read_input_tokens"`
	Output        *int `json:"output_tokens"`
}

func (u *usage) update(by usage) {
	for _, n := range []struct{ to, from **int }{
		{&u.Input, &by.Input}, {&u.CacheCreation, &by.CacheCreation}, {&u.CacheRead, &by.CacheRead}, {&u.Output, &by.Output},
	} {
		if *n.from != nil {
			*n.to = *n.from
		}
	}
}

func sum(numbers ...*int) int {
	total := 0
	for _, n := range numbers {
		if n != nil {
			total += *n
		}
	}
	return total
}

func (a *answer) read(events iter.Seq2[stream.Event, error], yield func(signal.Payload, error) bool) {
	for e, err := range events {
		if err != nil {
			yield(nil, err)
			return
		}
		payload, err := a.take(e)
		if err != nil {
			yield(nil, err)
			return
		}
		if payload != nil && !yield(payload, nil) {
			return
		}
		if a.done {
			break
		}
	}
	a.end(yield)
}

// take reads one event and returns what is to be yielded at once.
func (a *answer) take(e stream.Event) (signal.Payload, error) {
	if !a.fast.take(e.Data, &a.event) {
		a.event = event{}
		if err := json.Unmarshal(e.Data, &a.event); err != nil {
			return nil, broken(fmt.Errorf("anthropic: read event: %w", err))
		}
		a.fast.learn(e.Data, a.event)
	}
	typ := a.event.Type
	if e.Name == "error" { // whatever the data says that it is
		typ = e.Name
	}
	switch typ {
	case "message_start":
		a.model = a.event.Message.Model
		a.usage.update(a.event.Message.Usage)
	case "content_block_start":
		return a.start()
	case "content_block_delta":
		return a.delta()
	case "content_block_stop":
		return a.stop()
	case "message_delta":
		a.reason = a.event.Delta.StopReason
		a.usage.update(a.event.Usage)
	case lastEvent:
		a.done = true
	case "error":
		if len(a.event.Error) == 0 {
			return nil, failed(e.Data)
		}
		return nil, failed(a.event.Error)
	}
	return nil, nil // a ping, or a type that is newer than this program: the API's rules say to pass over it
}

// agent is who the signals are from.
func (a *answer) agent() string {
	if a.agentID != "" {
		return a.agentID
	}
	return a.model
}

func (a *answer) text(s string) signal.Payload {
	if s == "" {
		return nil
	}
	a.texts++
	return signal.TextDelta{AgentID: a.agent(), Content: s, Index: a.texts - 1}
}

func (a *answer) thought(s string) signal.Payload {
	if s == "" {
		return nil
	}
	return signal.Thinking{AgentID: a.agent(), Content: s}
}

func broken(cause error) error { return stream.Failed("The model's answer cannot be read.", cause) }

func failed(object []byte) error {
	words := "The model stopped with an error."
	if reason := stream.Reason(object, ""); reason != "" {
		words = "The model stopped with an error (" + reason + ")."
	}
	return stream.Failed(words, fmt.Errorf("anthropic: the server says in its stream: %.1024s", object))
}

// end yields what comes when the stream is at its end.
func (a *answer) end(yield func(signal.Payload, error) bool) {
	err := a.whole()
	if err == nil {
		for _, b := range a.blocks {
			if b.kind == "tool_use" && !yield(b.call(a.agent()), nil) {
				return
			}
		}
	}
	if a.usage != (usage{}) {
		u := signal.TokenUsage{
			AgentID: a.agent(), Model: a.model,
			PromptTokens:     sum(a.usage.Input, a.usage.CacheCreation, a.usage.CacheRead),
			CompletionTokens: sum(a.usage.Output),
		}
		if !yield(u, nil) {
			return
		}
	}
	if err != nil {
		yield(nil, err)
	}
}

// whole says why an answer is not whole, if it is not.
func (a *answer) whole() error {
	if !a.done {
		return stream.Failed("The model's answer broke off.", errors.New("anthropic: the stream ended without message_stop"))
	}
	switch a.reason {
	case "end_turn", "stop_sequence", "tool_use", "": // a few servers that are not Anthropic's give no reason
		return a.callable()
	case "max_tokens":
		return stream.Failed("The model's answer was cut off: it has reached the limit of its length.", errors.New("anthropic: stop_reason max_tokens: raise the limit of tokens"))
	case "model_context_window_exceeded":
		return stream.Failed("The conversation is too long for the model.", errors.New("anthropic: stop_reason model_context_window_exceeded"))
	case "refusal":
		return stream.Failed("The model declined to answer.", errors.New("anthropic: stop_reason refusal"))
	}
	// pause_turn is among these: it comes only with tools that the server runs, and none is asked for.
	return stream.Failed("The model's answer broke off.", fmt.Errorf("anthropic: stop_reason %.100q", a.reason))
}
