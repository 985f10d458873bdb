package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"vela/protocol"
)

// Error is why there is no answer, or no whole one. Its words may be shown to anybody: they name no host, no address and
// no key, and are none of the other side's. What the other side said is in the wrapped error, for the operator's log;
// no key is in there either.
type Error struct {
	code   protocol.Code
	words  string
	status int
	cause  error
}

// Failed is an answer that went wrong: code agent_failed.
func Failed(words string, cause error) *Error {
	return &Error{code: protocol.CodeAgentFailed, words: words, cause: cause}
}

func (e *Error) Error() string       { return e.words }
func (e *Error) Code() protocol.Code { return e.code }
func (e *Error) Unwrap() error       { return e.cause }

// Status is the HTTP status that the other side refused with, or 0.
func (e *Error) Status() int { return e.status }

// Operator is the error in the operator's words: what is shown to anybody, and what the other side said.
func Operator(err error) string {
	var e *Error
	if errors.As(err, &e) && e.cause != nil {
		return e.words + " " + e.cause.Error()
	}
	return err.Error()
}

// Advice is what an operator is told to do about a server, by how it fails.
type Advice struct {
	Unreachable string // it does not answer, or with something else
	NotFound    string // there is nothing at this address (404)
}

// Probed is why a server is not there, in the operator's words, with what is to be done: where says which vendor's it is
// and the address that was asked. What may be shown to anybody stays in its chain.
func Probed(err error, where string, do Advice) error {
	advice := do.Unreachable
	var refused *Error
	if errors.As(err, &refused) {
		switch refused.Status() {
		case http.StatusUnauthorized, http.StatusForbidden:
			advice = "set the right key"
		case http.StatusNotFound:
			advice = do.NotFound
		}
	}
	return &probed{fmt.Sprintf("%s: %s (%s)", where, Operator(err), advice), err}
}

type probed struct {
	words string
	err   error
}

func (p *probed) Error() string { return p.words }
func (p *probed) Unwrap() error { return p.err }

// refusal is the error for an answer that is no stream. body is the beginning of what it says.
func (c *Client) refusal(status int, body []byte, cut bool) *Error {
	text := c.hide(string(body), cut)
	e := &Error{
		code:   protocol.CodeAgentFailed,
		status: status,
		cause:  fmt.Errorf("stream: %d %s: %s", status, http.StatusText(status), text),
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.code, e.words = protocol.CodeAgentUnavailable, "The model does not accept the gateway's key."
	case http.StatusNotFound:
		e.code, e.words = protocol.CodeAgentUnavailable, "There is no such model, or its address is wrong."
	case http.StatusTooManyRequests:
		e.code, e.words = protocol.CodeAgentUnavailable, "The model has too many requests. Try again later."
	case http.StatusServiceUnavailable, overloaded:
		e.code, e.words = protocol.CodeAgentUnavailable, "The model is too busy, or not there for now. Try again later."
	case http.StatusOK:
		e.words = "The model does not answer with a stream."
	default:
		reason := Reason(body, ", ")
		if c.Hide(reason) != reason {
			reason = ""
		}
		e.words = fmt.Sprintf("The model answered with an error (%d%s).", status, reason)
	}
	return e
}

// Reason finds the short code of a vendor's error object and returns it after the lead; nothing when there is none that
// is fit to be shown. The object is {"error": {"code": …, "type": …}}, as OpenAI and Anthropic write it, or what is
// within.
func Reason(object []byte, lead string) string {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(object, &body) == nil && len(body.Error) > 0 {
		object = body.Error
	}
	var e struct {
		Code any `json:"code"`
		Type any `json:"type"`
	}
	if json.Unmarshal(object, &e) != nil {
		return ""
	}
	for _, v := range []any{e.Code, e.Type} {
		if s, ok := v.(string); ok && isReason(s) {
			return lead + s
		}
	}
	return ""
}

// isReason says whether a word is a name such as context_length_exceeded: nothing else of the other side's is shown.
func isReason(s string) bool {
	return len(s) > 0 && len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// Bounds of what is kept of an answer that is no stream.
const (
	maxRefusal = 64 << 10 // is read
	maxWords   = 1 << 10  // is kept for the operator
)

// Hide takes the secrets out of a text of the other side's, and what is beyond 1 KiB.
func (c *Client) Hide(text string) string { return c.hide(text, false) }

// Clean takes the secrets out of what an error tells the operator. Other errors than [*Error] stay as they are.
func (c *Client) Clean(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.cause == nil {
		return err
	}
	clean := *e
	clean.cause = errors.New(c.Hide(e.cause.Error()))
	return &clean
}

// hide is Hide for a text that may be cut off in the middle of a secret.
func (c *Client) hide(text string, cut bool) string {
	text = c.secrets.Hide(text, cut)
	if len(text) > maxWords {
		text = text[:maxWords] + "…"
	}
	return string(bytes.ToValidUTF8([]byte(text), []byte("\ufffd")))
}
