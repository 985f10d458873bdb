package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
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

// Decode reads one text message of version 1, sent by the given side. Fields that the contract does not name are
// ignored; of a repeated field the last one counts. The frame is not kept. Its error is always a [*DecodeError].
//
// The frame is scanned once (scan.go), which checks all of it and finds type and payload; what the payload holds is
// then picked out by the shape of the event's struct (shape.go), or by a decoder of its own.
func Decode(frame []byte, from Side) (Message, error) {
	env, err := scanEnvelope(frame)
	if err != nil {
		return nil, err
	}
	row, err := rowOf(env.typ, from, 1)
	if err != nil {
		return nil, err
	}
	return row.read(env.payload, 1)
}

// read decodes the event's payload, a valid JSON object.
func (e *Event) read(payload []byte, version int) (Message, error) {
	if e.decode != nil {
		return e.decode(payload)
	}
	return reader{e.Type, version, e.From == Client}.message(e, payload)
}

// rowOf finds the event, which must be one that the side sends in the version.
func rowOf(typ []byte, from Side, version int) (*Event, error) {
	row, ok := byType[string(typ)] // no allocation: the compiler looks up the bytes in place
	if !ok || row.Since > version {
		return nil, invalid("Unknown event type %.64q. Send one that the contract lists.", typ)
	}
	if row.From != from {
		return nil, invalid("%q is sent by the %s, never to it.", row.Type, row.From)
	}
	return row, nil
}

// Envelope is a message of version 2 with what stands beside its type and payload.
type Envelope struct {
	Seq     uint64 // of an event of the session, from 1 without gaps; 0 for what concerns only one connection
	TS      int64  // Unix ms, beside Seq
	ID      string // of a client's event, if it gave one; the error that it causes names it
	Message Message
}

// maxID bounds the id of a client's event, in bytes.
const maxID = 128

// DecodeEnvelope is [Decode] for version 2. The id is returned even with an error, where the frame has one, so that the
// answer can name it.
func DecodeEnvelope(frame []byte, from Side) (out Envelope, err error) {
	env, bad := scanEnvelope(frame)
	if err := out.beside(env, from); err != nil {
		return out, err
	}
	if bad != nil {
		return out, bad
	}
	row, err := rowOf(env.typ, from, 2)
	if err != nil {
		return out, err
	}
	out.Message, err = row.read(env.payload, 2)
	return out, err
}

// beside reads what stands beside type and payload: of a client's event its id, of the gateway's seq and ts. A null is
// as good as nothing.
func (e *Envelope) beside(env envelope, from Side) error {
	if from == Client {
		return e.readID(env.id)
	}
	var err error
	if given(env.seq) {
		if e.Seq, err = strconv.ParseUint(string(env.seq), 10, 64); err != nil {
			return invalid("The seq of a message must be a whole number.")
		}
	}
	if given(env.ts) {
		if e.TS, err = strconv.ParseInt(string(env.ts), 10, 64); err != nil {
			return invalid("The ts of a message must be Unix milliseconds.")
		}
	}
	return nil
}

func (e *Envelope) readID(raw []byte) error {
	if !given(raw) {
		return nil
	}
	if raw[0] == '"' {
		id, err := unquoted(raw)
		if err == nil && len(id) <= maxID {
			e.ID = string(id)
			return nil
		}
	}
	return invalid("The id of a message must be a string of at most %d bytes.", maxID)
}

// given says whether a value is there and is no null.
func given(raw []byte) bool { return len(raw) > 0 && raw[0] != 'n' }

// decodeAppend is the hot path: fifty a second from everybody who speaks.
func decodeAppend(payload []byte) (Message, error) {
	raw := memberOf(payload, "chunk")
	if len(raw) == 0 || raw[0] != '"' {
		return nil, invalid("The payload of input_audio.append needs a string \"chunk\".")
	}
	chunk, err := unquoted(raw)
	return InputAudioAppend{Chunk: string(chunk)}, err
}

// MaxText bounds a typed turn, in bytes.
const MaxText = 64 << 10

func decodeText(payload []byte) (Message, error) {
	raw := memberOf(payload, "text")
	if len(raw) == 0 || raw[0] != '"' {
		return nil, invalid("The payload of input_text.submit needs a string \"text\".")
	}
	text, err := unquoted(raw)
	switch {
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(text)) == 0:
		return nil, invalid("The text of input_text.submit is empty. Send at least one word.")
	case len(text) > MaxText:
		return nil, invalid("The text of input_text.submit is over %d KiB. Send it in parts.", MaxText>>10)
	}
	return InputTextSubmit{Text: string(text)}, nil
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
