package protocol

import (
	"bytes"
	"encoding/json"
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
	payload, err := objectOf(e.Payload)
	if err != nil {
		return Signal{}, fmt.Errorf("protocol: payload of a signal %.64q: %w", e.Payload.SignalType(), err)
	}
	s := Signal{
		ID: e.ID, SignalType: e.Payload.SignalType(), Timestamp: e.Timestamp, Source: e.Source,
		CorrelationID: e.CorrelationID, Payload: payload,
	}
	if e.Metadata != nil {
		if s.Metadata, err = objectOf(e.Metadata); err != nil {
			return Signal{}, fmt.Errorf("protocol: metadata of a signal %.64q: %w", s.SignalType, err)
		}
	}
	return s, nil
}

// objectOf writes a value as a JSON object, without HTML escaping.
func objectOf(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	object := objectOr(bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil)
	if object == nil {
		return nil, errors.New("no JSON object, or one that nests too deep")
	}
	return object, nil
}

// Envelope is the signal that the event shows. Its error is that of [signal.DecodePayload].
func (s Signal) Envelope() (signal.Envelope, error) {
	payload, err := signal.DecodePayload(s.SignalType, s.Payload)
	if err != nil {
		return signal.Envelope{}, err
	}
	e := signal.Envelope{ID: s.ID, Timestamp: s.Timestamp, Source: s.Source, CorrelationID: s.CorrelationID, Payload: payload}
	if s.Metadata != nil {
		if err := json.Unmarshal(s.Metadata, &e.Metadata); err != nil {
			return signal.Envelope{}, fmt.Errorf("protocol: metadata of a signal %.64q: %w", s.SignalType, err)
		}
	}
	return e, nil
}
