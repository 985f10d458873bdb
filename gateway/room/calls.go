package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"vela/protocol"
)

// methods are what participants may call by RPC: events of the Vela protocol, by their names; the payload is theirs. A
// call returns {} once the session has taken it, or the words and the code of its error.
var methods = []string{"session.start", "response.cancel", "approval.answer", "input_text.submit", "history.clear"}

// call is one of them, on its way.
type call struct {
	identity string
	message  protocol.Message
	done     chan error // of size 1
	id       string
	err      error // what the session said of it
}

func (c *call) reply(err error) {
	select {
	case c.done <- err:
	default: // it has its answer
	}
}

// callError is an error of the session's as a caller is told.
type callError struct {
	code  protocol.Code
	words string
}

func (e *callError) Error() string { return e.words }

var errSettings = errors.New("of session.start, a room takes agent, approvals and interrupt")

// readCall makes a message of a method and its payload.
func readCall(method string, payload []byte) (protocol.Message, error) {
	if !slices.Contains(methods, method) {
		return nil, errors.New("there is no such method")
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if !json.Valid(payload) {
		return nil, errors.New("the payload is no JSON")
	}
	e, err := protocol.DecodeEnvelope(fmt.Appendf(nil, `{"type":%q,"payload":%s}`, method, payload), protocol.Client)
	if err != nil {
		return nil, err
	}
	if s, ok := e.Message.(protocol.SessionStart); ok {
		if s.Audio != nil || s.Turns != "" || s.TurnDetection != "" || s.Room != "" || s.Language != "" || s.Metadata != nil {
			return nil, errSettings
		}
	}
	return e.Message, nil
}
