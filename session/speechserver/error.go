package speechserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"vela/protocol"
)

// Error is why there is no speech or no transcript, or no whole one. Its words may be shown to anybody: they name no host, no address and no key, and
// are none of the server's. What the server said is in the wrapped error, for the operator's log; the key is not in there either.
type Error struct {
	code   protocol.Code
	words  string
	status int
	cause  error
}

func (e *Error) Error() string       { return e.words }
func (e *Error) Code() protocol.Code { return e.code }
func (e *Error) Unwrap() error       { return e.cause }

// Status is the HTTP status that the server refused with, or 0.
func (e *Error) Status() int { return e.status }

func failed(words string, cause error) error {
	return &Error{code: protocol.CodeSpeechFailed, words: words, cause: cause}
}

func unavailable(words string, cause error) error {
	return &Error{code: protocol.CodeSpeechUnavailable, words: words, cause: cause}
}

// refusal is the error for an answer without success.
func (c *client) refusal(status int, body []byte) error {
	e := &Error{
		code:   protocol.CodeSpeechUnavailable,
		status: status,
		cause:  fmt.Errorf("speechserver: %d %s: %s", status, http.StatusText(status), c.hide(string(body))),
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.words = "The speech server does not accept the gateway's key."
	case http.StatusNotFound:
		e.words = "The speech server has no such model or voice, or its address is wrong."
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		e.words = "The speech server has too much to do. Try again later."
	default:
		e.code, e.words = protocol.CodeSpeechFailed, fmt.Sprintf("The speech server answered with an error (%d).", status)
	}
	return e
}

// hide takes the key out of a text of the server's, also where the text was cut off within it.
func (c *client) hide(text string) string {
	text = c.secrets.Hide(text, len(text) >= mostRefusal)
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

// ended makes an error within a request into the one to return: the caller's own reason to stop counts before all.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
