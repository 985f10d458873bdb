// Package signal is the vocabulary for what agents do: the envelope that every signal travels in and the fourteen
// well-known payloads, nine from agents and five from people.
//
// A turn engine yields payloads; a signal source yields whole envelopes. Start at [Payload]. The set of types is open:
// any string is a signal type, and one that is not well known carries an [Other].
//
// The package is pure: no IO, no goroutine, no clock. All of it may be called from anywhere.
package signal

import (
	"encoding/json"
	"fmt"
)

// Payload is what one signal says. Its JSON encoding is the envelope's payload.
type Payload interface {
	// SignalType is the envelope's type, such as "text_delta".
	SignalType() string
}

// Envelope is one signal on its way, the same for every type of payload.
type Envelope struct {
	ID            string         // UUID, or given by the producer
	Timestamp     int64          // Unix ms
	Source        string         // who produced it, such as "adapter:openclaw"
	CorrelationID string         // groups the signals of one episode; may be empty
	Metadata      map[string]any // for the producer's own use; may be nil
	Payload       Payload        // decides the type
}

// wire is the envelope's JSON shape.
type wire struct {
	ID            string          `json:"id"`
	Type          string          `json:"type"`
	Timestamp     int64           `json:"timestamp"`
	Source        string          `json:"source"`
	CorrelationID string          `json:"correlationId,omitempty"`
	Metadata      map[string]any  `json:"metadata,omitempty"`
	Payload       json.RawMessage `json:"payload"`
}

// MarshalJSON writes the envelope with its type beside its payload.
func (e Envelope) MarshalJSON() ([]byte, error) {
	if e.Payload == nil {
		return nil, fmt.Errorf("signal: envelope %q has no payload", e.ID)
	}
	body, err := json.Marshal(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("signal: encode payload of %s: %w", e.Payload.SignalType(), err)
	}
	return json.Marshal(wire{e.ID, e.Payload.SignalType(), e.Timestamp, e.Source, e.CorrelationID, e.Metadata, body})
}

// UnmarshalJSON reads an envelope; a well-known type gets its Go type, any other an [Other]. A well-known payload of
// the wrong shape is an error.
func (e *Envelope) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("signal: decode envelope: %w", err)
	}
	if w.Type == "" {
		return fmt.Errorf("signal: decode envelope: no type")
	}
	p, err := DecodePayload(w.Type, w.Payload)
	if err != nil {
		return err
	}
	*e = Envelope{w.ID, w.Timestamp, w.Source, w.CorrelationID, w.Metadata, p}
	return nil
}

// DecodePayload reads the JSON object body as the payload of a signal of the given type.
func DecodePayload(typ string, body []byte) (Payload, error) {
	decode, known := wellKnown[typ]
	if !known {
		return Other{Name: typ, Body: append(json.RawMessage(nil), body...)}, nil
	}
	p, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("signal: decode payload of %s: %w", typ, err)
	}
	return p, nil
}

// WellKnown lists the fourteen well-known types, agents' first, in the contract's order.
func WellKnown() []Payload { return append([]Payload(nil), catalogue...) }

var wellKnown = map[string]func([]byte) (Payload, error){
	TaskDispatch{}.SignalType():     as[TaskDispatch],
	ToolCall{}.SignalType():         as[ToolCall],
	ToolResult{}.SignalType():       as[ToolResult],
	TokenUsage{}.SignalType():       as[TokenUsage],
	AgentStateChange{}.SignalType(): as[AgentStateChange],
	Error{}.SignalType():            as[Error],
	Completion{}.SignalType():       as[Completion],
	TextDelta{}.SignalType():        as[TextDelta],
	Thinking{}.SignalType():         as[Thinking],
	UserClick{}.SignalType():        as[UserClick],
	UserMove{}.SignalType():         as[UserMove],
	UserZone{}.SignalType():         as[UserZone],
	UserCommand{}.SignalType():      as[UserCommand],
	UserPoint{}.SignalType():        as[UserPoint],
}

func as[P Payload](body []byte) (Payload, error) {
	var p P
	err := json.Unmarshal(body, &p)
	return p, err
}

var catalogue = []Payload{
	TaskDispatch{}, ToolCall{}, ToolResult{}, TokenUsage{}, AgentStateChange{}, Error{}, Completion{}, TextDelta{}, Thinking{},
	UserClick{}, UserMove{}, UserZone{}, UserCommand{}, UserPoint{},
}
