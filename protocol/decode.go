package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// DecodeError says why a frame is no event: its code is [CodeInvalidJSON] or [CodeInvalidMessage].
type DecodeError struct {
	code   Code
	detail string
}

func (e *DecodeError) Error() string { return e.detail }

// Code is the code of the error event that answers the frame.
func (e *DecodeError) Code() Code { return e.code }

func invalid(format string, args ...any) *DecodeError {
	return &DecodeError{CodeInvalidMessage, fmt.Sprintf(format, args...)}
}

var (
	errNotJSON = &DecodeError{CodeInvalidJSON, "The message is not JSON. Send one JSON object per text message."}
	errTooDeep = invalid("The message nests deeper than %d levels. Send a flatter one.", maxDepth)
)

// Decode reads one text message sent by the given side. Fields that the contract does not name are ignored; of a
// repeated field the last one counts. The frame is not kept. Its error is always a [*DecodeError].
//
// The frame is scanned once (scan.go), which checks all of it and finds type and payload; what the payload holds is
// then picked out by the event's own decoder.
func Decode(frame []byte, from Side) (Message, error) {
	env, err := scanEnvelope(frame)
	if err != nil {
		return nil, err
	}
	row, ok := byType[string(env.typ)] // no allocation: the compiler looks up the bytes in place
	if !ok {
		return nil, invalid("Unknown event type %.64q. Send one that the contract lists.", env.typ)
	}
	if row.From != from {
		return nil, invalid("%q is sent by the %s, never to it.", row.Type, row.From)
	}
	return row.decode(env.payload)
}

// empty decodes an event whose payload has no fields.
func empty[M Message]([]byte) (Message, error) {
	var m M
	return m, nil
}

// viaJSON decodes an event of which speed does not matter.
func viaJSON[M Message](payload []byte) (Message, error) {
	var m M
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, wrongShape(m.Type(), err)
	}
	return m, nil
}

func wrongShape(typ string, err error) error {
	var field *json.UnmarshalTypeError
	if errors.As(err, &field) {
		return invalid("The payload of %s is wrong: %q cannot be a JSON %.32s.", typ, field.Field, field.Value)
	}
	return invalid("The payload of %s is not what the contract says.", typ)
}

// decodeAppend is the hot path: fifty a second from everybody who speaks.
func decodeAppend(payload []byte) (Message, error) {
	raw := memberOf(payload, "chunk")
	if len(raw) == 0 || raw[0] != '"' {
		return nil, invalid("The payload of input_audio.append needs a string \"chunk\".")
	}
	chunk, err := unquoted(raw)
	return InputAudioAppend{Chunk: string(chunk)}, err
}

// unquoted resolves a JSON string that the scanner has checked. Base64 and event names have no escapes: no copy then.
func unquoted(raw []byte) ([]byte, error) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errNotJSON
	}
	return []byte(s), nil
}
