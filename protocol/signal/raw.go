package signal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Raw is an envelope whose payload is not decoded: as a signal is logged, filtered and handed on.
type Raw struct {
	ID            string          `json:"id"`
	Type          string          `json:"type"`
	Timestamp     int64           `json:"timestamp"` // Unix ms
	Source        string          `json:"source"`
	CorrelationID string          `json:"correlationId,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty"` // a JSON object, or nil
	Payload       json.RawMessage `json:"payload"`            // a JSON object
}

// Raw encodes the payload, and what says on which channel it was, into one object.
func (e Envelope) Raw() (Raw, error) {
	if e.Payload == nil {
		return Raw{}, fmt.Errorf("signal: envelope %q has no payload", e.ID)
	}
	r := Raw{ID: e.ID, Type: e.Payload.SignalType(), Timestamp: e.Timestamp, Source: e.Source, CorrelationID: e.CorrelationID}
	body, err := encode(e.Payload)
	if err == nil && e.Channel != nil {
		body, err = e.Channel.join(body)
	}
	if err != nil {
		return Raw{}, fmt.Errorf("signal: encode payload of %s: %w", r.Type, err)
	}
	r.Payload = body
	if e.Metadata != nil {
		if r.Metadata, err = encode(e.Metadata); err != nil {
			return Raw{}, fmt.Errorf("signal: encode metadata of %s: %w", r.Type, err)
		}
	}
	return r, nil
}

// encode writes a JSON text without HTML escaping, which would make a text of brackets six times as long.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Append writes the signal's JSON behind b. The payload and the metadata are written as they stand.
func (r Raw) Append(b []byte) []byte {
	const names = len(`{"id":"","type":"","timestamp":1764000000000,"source":"","correlationId":"","metadata":,"payload":}`)
	b = slices.Grow(b, names+len(r.ID)+len(r.Type)+len(r.Source)+len(r.CorrelationID)+len(r.Metadata)+len(r.Payload))
	b = appendString(append(b, `{"id":`...), r.ID)
	b = appendString(append(b, `,"type":`...), r.Type)
	b = strconv.AppendInt(append(b, `,"timestamp":`...), r.Timestamp, 10)
	b = appendString(append(b, `,"source":`...), r.Source)
	if r.CorrelationID != "" {
		b = appendString(append(b, `,"correlationId":`...), r.CorrelationID)
	}
	if len(r.Metadata) > 0 {
		b = append(append(b, `,"metadata":`...), r.Metadata...)
	}
	b = append(append(b, `,"payload":`...), r.Payload...)
	return append(b, '}')
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always has a JSON
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Envelope decodes the payload; a well-known type gets its Go type, any other an [Other]. A well-known payload of the
// wrong shape is an error.
func (r Raw) Envelope() (Envelope, error) {
	if r.Type == "" {
		return Envelope{}, fmt.Errorf("signal: decode envelope: no type")
	}
	e := Envelope{ID: r.ID, Timestamp: r.Timestamp, Source: r.Source, CorrelationID: r.CorrelationID}
	var err error
	if e.Payload, err = DecodePayload(r.Type, r.Payload); err != nil {
		return Envelope{}, err
	}
	if _, other := e.Payload.(Other); !other {
		e.Channel = channelOf(r.Payload)
	}
	if len(r.Metadata) > 0 {
		if err := json.Unmarshal(r.Metadata, &e.Metadata); err != nil {
			return Envelope{}, fmt.Errorf("signal: decode metadata of %s: %w", r.Type, err)
		}
	}
	return e, nil
}

// Channel says where an agent was spoken to, for signals of agents that serve several places. On the wire these are
// fields of the payload, beside its own. What is empty is left out.
type Channel struct {
	Name       string          `json:"channel,omitempty"` // such as "telegram"
	Label      string          `json:"channelLabel,omitempty"`
	SessionKey string          `json:"sessionKey,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"` // a JSON object; marks what a list of signals may hide
}

// join writes the channel's fields behind those of an object.
func (c Channel) join(object []byte) ([]byte, error) {
	fields, err := encode(c)
	if err != nil || len(fields) == len("{}") {
		return object, err
	}
	if len(object) == len("{}") {
		return fields, nil
	}
	joined := append(object[:len(object)-1:len(object)-1], ',')
	return append(joined, fields[1:]...), nil
}

// channelOf finds the channel's fields in a payload; nil if there are none.
func channelOf(object []byte) *Channel {
	found := false
	for name := range Members(object) {
		switch string(name) {
		case "channel", "channelLabel", "sessionKey", "_meta":
			found = true
		}
	}
	var c Channel
	if !found || json.Unmarshal(object, &c) != nil {
		return nil
	}
	return &c
}
