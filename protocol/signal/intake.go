package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// SourceRaw is the source of signals that stand for what is no signal.
const SourceRaw = "raw"

// What is wrong with something that is no signal: the codes of its error.
const (
	CodeNotJSON        = "not_json"
	CodeNoType         = "no_type"
	CodeTooLarge       = "too_large"
	CodeInvalidPayload = "invalid_payload"
)

// Intake makes signals of whatever comes from outside, and fills in what a producer left out. Source is for signals that
// name none; NewID makes an id.
type Intake struct {
	Source string
	NewID  func() string
}

// Accept reads one signal of at most [MaxSize] bytes. All it insists on is an object with a string as its type, and an
// object, or nothing, as its payload. Id, timestamp and source are filled in where they are missing or of no use; now is
// the time in Unix ms. Fields that an envelope does not have are left out.
//
// The signal that it returns is always valid. For what is none it is an error signal of severity warning, which has the
// text, or in its metadata the type and the payload that do not fit each other; the error then says what was wrong.
func (in Intake) Accept(body []byte, now int64) (Raw, error) {
	if len(body) > MaxSize {
		return in.refuse(CodeTooLarge, fmt.Sprintf("a signal of %d bytes, which is too long", len(body)), now), fmt.Errorf("signal: more than %d bytes", MaxSize)
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\ufffd"))
	}
	body = bytes.TrimSpace(body)
	if !json.Valid(body) || depth(body) > maxDepth {
		return in.refuse(CodeNotJSON, string(body), now), errors.New("signal: not JSON")
	}
	r := Raw{Timestamp: now}
	for name, value := range Members(body) {
		switch string(name) {
		case "id":
			r.ID = word(value, maxName)
		case "type":
			r.Type = word(value, maxName)
		case "timestamp":
			r.Timestamp = timeOf(value, now)
		case "source":
			r.Source = word(value, maxLabel)
		case "correlationId":
			r.CorrelationID = word(value, maxLabel)
		case "metadata":
			r.Metadata = nil
			if isObject(value) {
				r.Metadata = ownLine(value)
			}
		case "payload":
			r.Payload = value
		}
	}
	if r.Type == "" {
		return in.refuse(CodeNoType, string(body), now), errors.New("signal: no type of 1 to 128 characters")
	}
	if r.ID == "" {
		r.ID = in.NewID()
	}
	if r.Source == "" {
		r.Source = in.Source
	}
	if len(r.Payload) == 0 || string(r.Payload) == "null" {
		r.Payload = json.RawMessage("{}")
	}
	r.Payload = ownLine(r.Payload)
	if err := CheckPayload(r.Type, r.Payload); err != nil {
		return invalid(r, err), err
	}
	return r, nil
}

// ownLine copies a JSON text onto one line, as event streams and logs want it.
func ownLine(v json.RawMessage) json.RawMessage {
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return bytes.Clone(v)
	}
	var b bytes.Buffer
	b.Grow(len(v))
	_ = json.Compact(&b, v) // it is valid
	return b.Bytes()
}

// refuse is the signal that stands for what is none.
func (in Intake) refuse(code, text string, now int64) Raw {
	return Raw{ID: in.NewID(), Type: Error{}.SignalType(), Timestamp: now, Source: SourceRaw, Payload: warning(code, text)}
}

// invalid is the signal that stands for one whose payload does not fit its type.
func invalid(r Raw, why error) Raw {
	original := appendString([]byte(`{"type":`), r.Type)
	original = append(append(original, `,"original":`...), r.Payload...)
	r.Metadata = append(original, '}')
	r.Type, r.Payload = Error{}.SignalType(), warning(CodeInvalidPayload, why.Error())
	return r
}

func warning(code, text string) json.RawMessage {
	// Two strings always have a JSON.
	body, _ := json.Marshal(Error{Code: code, Message: shorten(text), Severity: SeverityWarning})
	return body
}

// maxQuoted bounds what is repeated of a text that is no signal, in bytes.
const maxQuoted = 1 << 10

func shorten(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:maxQuoted]), nil)) + "…"
}

// word is a string of 1 to most characters, or nothing.
func word(v json.RawMessage, most int) string {
	if v[0] != '"' {
		return ""
	}
	if s := string(unquote(v)); fits(s, most) {
		return s
	}
	return ""
}

func timeOf(v json.RawMessage, now int64) int64 {
	if ms, ok := numberOf(v); ok && ms > 0 && ms <= maxCount {
		return int64(math.Trunc(ms))
	}
	return now
}
