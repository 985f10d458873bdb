package openclaw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// frame is one message of OpenClaw's, a response or an event.
type frame struct {
	Type    string          `json:"type"` // res or event
	ID      string          `json:"id"`   // of the request that a response is to
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
	Error   *reason         `json:"error"`
	Seq     int64           `json:"seq"` // of an event, from 1 and without a gap on one connection; 0 when it has none
}

// reason is why OpenClaw refused a request. Programs branch on the codes; the message is for people, and may change.
type reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details struct {
		Code             string `json:"code"`
		ExpectedProtocol int    `json:"expectedProtocol"`
	} `json:"details"`
}

func (r *reason) Error() string {
	if r == nil {
		return "openclaw: refused without a reason"
	}
	return fmt.Sprintf("openclaw: %s %s: %s", r.Code, r.Details.Code, shorten(r.Message))
}

// is says whether the reason has one of the codes, at either place where OpenClaw puts them.
func (r *reason) is(codes ...string) bool {
	for _, code := range codes {
		if r != nil && (r.Details.Code == code || r.Code == code) {
			return true
		}
	}
	return false
}

// request is one message to OpenClaw.
type request struct {
	Type   string `json:"type"` // req
	ID     string `json:"id"`
	Method string `json:"method"`
	Params any    `json:"params"`
}

// parseFrame reads one message. Fields of another type than expected count as absent. What is not UTF-8 is replaced here,
// since parts of a frame go on to clients as they are.
func parseFrame(message []byte) (frame, error) {
	if !utf8.Valid(message) {
		message = bytes.ToValidUTF8(message, []byte("\uFFFD"))
	}
	var f frame
	if err := lenient(message, &f); err != nil {
		return frame{}, fmt.Errorf("openclaw: read frame: %w", err)
	}
	return f, nil
}

// lenient decodes what fits. OpenClaw adds fields that its own schema does not have, so a value of a type that is not
// expected must not cost the rest; encoding/json goes on after such a value, and says so at the end.
func lenient(b []byte, into any) error {
	err := json.Unmarshal(b, into)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) && mistyped.Field != "" {
		return nil
	}
	return err
}

// shorten bounds foreign words that go to a log.
func shorten(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
