package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"vela/protocol"
)

// methods are what participants may call by RPC: events of the Vela protocol, by their names, and sources.get; the payload
// is theirs. A call returns {} once the session has taken it, history.get the payload of the history behind it, sources.get
// what its caller may have followed (follow.go); or the words and the code of its error.
var methods = []string{
	"session.start", "response.cancel", "approval.answer", "input_text.submit", "input_audio.clear", "history.get", "history.clear",
	sourcesGet{}.Type(),
}

// maxAnswer bounds what a call returns, in bytes: LiveKit carries 15 KiB.
const maxAnswer = 15 << 10

// call is one of them, on its way.
type call struct {
	identity string
	message  protocol.Message
	done     chan error // of size 1
	id       string
	err      error  // what the session said of it
	answer   []byte // what is returned; {} where there is nothing to say

	// finish makes the answer where that may take a moment: it is called by who waits for the call, and not by the room.
	finish func(context.Context) ([]byte, error)
}

// tell is what the session answers beside taking it. Of a long conversation the newest is told that LiveKit carries.
func (c *call) tell(h protocol.History) {
	for items := h.Items; ; items = items[1:] {
		b, err := json.Marshal(protocol.History{Items: items})
		if err != nil {
			return // what the session makes can be written
		}
		if c.answer = b; len(b) <= maxAnswer || len(items) == 0 {
			return
		}
	}
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

var (
	errSettings = errors.New("of session.start, a room takes agent, voice, approvals, interrupt, turnDetection, vad and follow")
	errNoPlace  = &callError{protocol.CodeSessionLimit, "Your token has as many sessions as it may have: you are not heard here. End one of them, and join again."}
	errNotYours = &callError{protocol.CodeTurnInFlight, "Somebody else is speaking."}
)

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
	if method == (sourcesGet{}).Type() {
		return sourcesGet{}, nil
	}
	e, err := protocol.DecodeEnvelope(fmt.Appendf(nil, `{"type":%q,"payload":%s}`, method, payload), protocol.Client)
	if err != nil {
		return nil, err
	}
	if s, ok := e.Message.(protocol.SessionStart); ok {
		if s.Audio != nil || s.Turns != "" || s.Room != "" || s.Language != "" || s.Metadata != nil {
			return nil, errSettings
		}
	}
	return e.Message, nil
}
