// Package signal is the vocabulary for what agents do: the envelope that every signal travels in and the fourteen
// well-known payloads, nine from agents and five from people.
//
// A turn engine yields payloads; a signal source yields whole envelopes. Start at [Payload]. The set of types is open:
// any string is a signal type, and one that is not well known carries an [Other]. schema.json says what a signal looks
// like on the wire; [Raw] is one whose payload is not decoded, [Check] holds it to the schema, and [Intake] makes one of
// whatever comes from outside.
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
	Channel       *Channel       // of a well-known payload: where its agent was spoken to; may be nil
}

// MarshalJSON writes the envelope with its type beside its payload.
func (e Envelope) MarshalJSON() ([]byte, error) {
	r, err := e.Raw()
	if err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// UnmarshalJSON reads an envelope, as [Raw.Envelope] does.
func (e *Envelope) UnmarshalJSON(b []byte) error {
	var r Raw
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("signal: decode envelope: %w", err)
	}
	read, err := r.Envelope()
	if err != nil {
		return err
	}
	*e = read
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
