package session

import (
	"context"
	"errors"

	"vela/protocol"
)

// Errors that callers branch on.
var (
	// ErrEnded is returned to a peer that talks to a session which is over.
	ErrEnded = errors.New("session: ended")
	// ErrShutdown is the cause to cancel a session's context with when the gateway stops: peers are told to come back.
	ErrShutdown = errors.New("session: the gateway is stopping")
)

// Causes of the session's own.
var (
	errSessionEnded = errors.New("session: over")
	errIdle         = errors.New("session: idle")
	errClosed       = errors.New("session: closed by the client")
	errAbandoned    = errors.New("session: nobody came back")
	errCancelled    = errors.New("session: cancelled by the client")
	errTurnOver     = errors.New("session: the turn is over")
)

// refusal is an error that knows how a client is told of it. Its words may be shown to anybody.
type refusal struct {
	code  protocol.Code
	words string
}

func (r *refusal) Error() string       { return r.words }
func (r *refusal) Code() protocol.Code { return r.code }

var (
	errMockedTurnInFlight = &refusal{protocol.CodeMockedTurnInFlight, "A mocked turn is still running. Wait until the session is idle, or send response.cancel."}
	errTurnInFlight       = &refusal{protocol.CodeTurnInFlight, "A turn is still running. Wait until the session is idle, or send response.cancel."}
	errChunk              = &refusal{protocol.CodeInvalidMessage, "The chunk of input_audio.append must be base64 of PCM16 little-endian, mono, 16 kHz."}
	errChunk2             = &refusal{protocol.CodeInvalidMessage, "The chunk of input_audio.append must be base64 of PCM16 little-endian, mono, at the rate agreed."}
	errPacket             = &refusal{protocol.CodeInvalidMessage, "The audio must be one Opus packet a message (RFC 6716), without a container: base64 in input_audio.append, or a binary message of at most 64 KiB."}
	errAudioTooLong       = &refusal{protocol.CodeAudioTooLong, "Too much audio in one turn. What came before is kept: commit it, or cancel."}
	errAudioTooFast       = &refusal{protocol.CodeRateLimited, "Audio arrives faster than twice the speed of speech. The chunk was dropped: slow down."}
	errAllowance          = &refusal{protocol.CodeAudioTooLong, "The minutes of audio that your token allows are used up. What came before is kept: commit it, or cancel. Ask for a new token."}
	errNoTranscriber      = &refusal{protocol.CodeSpeechUnavailable, "This gateway has no speech recogniser. Run vela engines to see why."}
	errNoFinal            = &refusal{protocol.CodeSpeechFailed, "The recogniser stopped without a result. Say it again."}
	errNoAgent            = &refusal{protocol.CodeAgentUnavailable, "This gateway has no agent. Run vela engines to see why."}
	errNoCompletion       = &refusal{protocol.CodeAgentFailed, "The agent stopped in the middle of its answer."}
	errAgentSilent        = &refusal{protocol.CodeAgentTimeout, "The agent did not answer in time."}
	errUnsupported        = &refusal{protocol.CodeUnsupported, "This event is not taken on this connection. Nothing changed."}
	errNotV1              = &refusal{protocol.CodeInvalidMessage, "This event is not taken here."}
	errFrame              = &refusal{protocol.CodeInvalidMessage, "A binary message must be PCM16 little-endian, mono: an even number of bytes, at most 64 KiB."}
	errNotAgreed          = &refusal{protocol.CodeInvalidMessage, "Binary audio was not agreed on. Ask for it with audio.input.framing in session.start."}
	errInterrupted        = &refusal{protocol.CodeTurnInterrupted, "A restart of the gateway broke the turn off. Ask again."}
	errNotKept            = &refusal{protocol.CodeInternal, "The gateway cannot keep this conversation on disk any more. It goes on, but would not survive a restart."}
	errGone               = &refusal{protocol.CodeSessionGone, "That session has ended. Send session.start on a new connection."}
	errSettings           = &refusal{protocol.CodeTurnInFlight, "Settings change between turns. Wait until the session is idle, or send response.cancel."}
	errNotAsked           = &refusal{protocol.CodeInvalidMessage, "No such question was asked. Answer with the approvalId of an approval.request."}
	errPlayed             = &refusal{protocol.CodeInvalidMessage, "playedMs counts from the answer's beginning: it is never negative."}
	errVoiceChanged       = &refusal{protocol.CodeSpeechFailed, "The voice failed. Another one goes on."}
	errVoiceLost          = &refusal{protocol.CodeSpeechFailed, "The voice failed. The answer is shown as text."}
	errResume             = &refusal{protocol.CodeInvalidMessage, "session.resume is the first message of a connection."}
)

// coded is what errors of any package look like that know their code. Their words are fit for a client.
type coded interface {
	error
	Code() protocol.Code
}

// neutral is what a client is told of an error that does not know its code.
var neutral = map[protocol.Code]string{
	protocol.CodeAgentFailed:  "The agent stopped with an error.",
	protocol.CodeSpeechFailed: "The recogniser stopped with an error. Say it again.",
	protocol.CodeInternal:     "Something went wrong in the gateway. The session goes on.",
}

// wireError makes an error into the event that tells a client. It is the only place that does. An error without a code
// of its own gets the fallback's code and neutral words, and its cause is logged here.
func (s *Session) wireError(err error, fallback protocol.Code) protocol.Error {
	var known coded
	if errors.As(err, &known) {
		s.cfg.Metrics.failed(known.Code())
		return protocol.Error{Code: known.Code(), Message: known.Error(), Retryable: known.Code().Retryable()}
	}
	words, ok := neutral[fallback]
	if !ok {
		fallback, words = protocol.CodeInternal, neutral[protocol.CodeInternal]
	}
	s.log.Error("error told as "+string(fallback), "error", err)
	s.cfg.Metrics.failed(fallback)
	return protocol.Error{Code: fallback, Message: words, Retryable: fallback.Retryable()}
}

// closing says with which close code a peer is told why the session ends.
func closing(cause error) (protocol.CloseCode, string) {
	switch {
	case errors.Is(cause, errClosed):
		return closeNormal, "the session is closed"
	case errors.Is(cause, errIdle):
		return protocol.CloseIdle, "nothing was said for too long"
	case errors.Is(cause, ErrShutdown), errors.Is(cause, context.Canceled):
		return protocol.CloseGoingAway, "the gateway is stopping, come back"
	}
	return protocol.CloseInternal, "something went wrong in the gateway, come back"
}

// closeNormal is RFC 6455's code for a connection that has done what it was for.
const closeNormal protocol.CloseCode = 1000

// cancelReason says why an answer ends with its session.
func cancelReason(cause error) protocol.CancelReason {
	switch endReason(cause) {
	case protocol.EndClosed:
		return protocol.CancelClient
	case protocol.EndError:
		return protocol.CancelError
	}
	return protocol.CancelShutdown
}

// endReason says why a session ends, in session.ended.
func endReason(cause error) protocol.EndReason {
	switch {
	case errors.Is(cause, errClosed):
		return protocol.EndClosed
	case errors.Is(cause, errIdle), errors.Is(cause, errAbandoned):
		return protocol.EndIdle
	case errors.Is(cause, ErrShutdown), errors.Is(cause, context.Canceled):
		return protocol.EndShutdown
	}
	return protocol.EndError
}
