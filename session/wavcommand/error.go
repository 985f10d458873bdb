package wavcommand

import "vela/protocol"

// Error is why there is no speech, or no whole sentence of it. Its words may be shown to anybody; what went wrong in particular is in the wrapped
// error, for the operator's log.
type Error struct {
	code  protocol.Code
	words string
	cause error
}

func (e *Error) Error() string       { return e.words }
func (e *Error) Code() protocol.Code { return e.code }
func (e *Error) Unwrap() error       { return e.cause }

func unavailable(cause error) error {
	return &Error{protocol.CodeSpeechUnavailable, "The voice cannot be started.", cause}
}

func failed(cause error) error {
	return &Error{protocol.CodeSpeechFailed, "The voice stopped with an error.", cause}
}
