package protocol

import (
	"errors"
	"fmt"

	"vela/protocol/signal"
)

// SignalOf is the event that shows a signal to whoever follows the pipeline. Its error says why no event can: the signal
// has no payload or no type, its time lies before 1970, or a part of it that its producer wrote is no JSON object.
func SignalOf(e signal.Envelope) (Signal, error) {
	if e.Payload == nil || e.Payload.SignalType() == "" {
		return Signal{}, errors.New("protocol: a signal without a payload, or without a type")
	}
	if e.Timestamp < 0 {
		return Signal{}, errors.New("protocol: a signal from before 1970")
	}
	r, err := e.Raw()
	if err != nil {
		return Signal{}, fmt.Errorf("protocol: %w", err)
	}
	s := Signal{
		ID: r.ID, SignalType: r.Type, Timestamp: r.Timestamp, Source: r.Source,
		CorrelationID: r.CorrelationID, Metadata: r.Metadata, Payload: r.Payload,
	}
	if objectOr(s.Payload, nil) == nil {
		return Signal{}, fmt.Errorf("protocol: the payload of a signal %.64q is no JSON object, or nests too deep", s.SignalType)
	}
	if s.Metadata != nil && objectOr(s.Metadata, nil) == nil {
		return Signal{}, fmt.Errorf("protocol: the metadata of a signal %.64q are no JSON object, or nest too deep", s.SignalType)
	}
	return s, nil
}

// AppendSignal appends the event of a signal whose JSON is there already, as [signal.Raw.Append] writes it.
func AppendSignal(dst, text []byte) []byte {
	dst = append(appendType(dst, Signal{}), text...)
	return append(dst, '}')
}

// Envelope is the signal that the event shows. Its error is that of [signal.Raw.Envelope].
func (s Signal) Envelope() (signal.Envelope, error) {
	e, err := signal.Raw{
		ID: s.ID, Type: s.SignalType, Timestamp: s.Timestamp, Source: s.Source,
		CorrelationID: s.CorrelationID, Metadata: s.Metadata, Payload: s.Payload,
	}.Envelope()
	if err != nil {
		return signal.Envelope{}, fmt.Errorf("protocol: %w", err)
	}
	return e, nil
}
