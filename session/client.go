package session

import (
	"context"

	"vela/protocol"
)

// handle does what a client asks for.
func (s *Session) handle(ctx context.Context, p Peer, m protocol.Message) {
	switch m := m.(type) {
	case protocol.InputAudioAppend:
		s.append(ctx, p, m.Chunk)
	case protocol.InputAudioCommit:
		s.commit(ctx, p)
	case protocol.ResponseCancel:
		s.cancel()
	case protocol.MockedTurnTrigger:
		s.trigger(ctx, p)
	case protocol.SessionStart:
		s.greet(p)
	default:
		s.tell(p, s.wireError(errUnsupported, protocol.CodeInvalidMessage))
	}
}

// inFlight says whether a turn runs: from its commit or trigger until the session is idle again.
func (s *Session) inFlight() bool {
	return s.answer != nil || s.hearing != nil && s.hearing.committed
}

// refuseInFlight tells p that a turn is still running, and whose kind it is. The turn is not disturbed.
func (s *Session) refuseInFlight(p Peer) {
	err := errTurnInFlight
	if s.answer != nil && s.answer.mocked {
		err = errMockedTurnInFlight
	}
	s.tell(p, s.wireError(err, protocol.CodeTurnInFlight))
}

// trigger runs the fixed turn. Whatever was appended before is dropped.
func (s *Session) trigger(ctx context.Context, p Peer) {
	if s.inFlight() {
		s.refuseInFlight(p)
		return
	}
	s.forget()
	s.enter(evTrigger)
	s.emit(protocol.TranscriptFinal{Text: s.cfg.Mock.Question()})
	s.enter(evThink)
	s.ask(ctx, s.cfg.Mock, s.cfg.Mock.Question(), true)
}

func (s *Session) append(ctx context.Context, p Peer, chunk string) {
	switch {
	case s.inFlight():
		s.refuseInFlight(p)
	case s.cfg.Turns == Agent:
		s.listen(ctx, p, chunk)
	default:
		s.chunks++
		if s.chunks == 1 {
			s.enter(evAppend)
		}
		s.emit(protocol.TranscriptPartial{Text: s.cfg.Mock.Partial(s.chunks)})
	}
}

func (s *Session) commit(ctx context.Context, p Peer) {
	switch {
	case s.inFlight():
		s.refuseInFlight(p)
	case s.cfg.Turns == Agent:
		s.commitSpeech()
	default:
		text := s.cfg.Mock.Final(s.chunks)
		s.chunks = 0
		s.emit(protocol.TranscriptFinal{Text: text})
		s.enter(evThink)
		s.ask(ctx, s.cfg.Mock, text, true)
	}
}

// cancel brings the session back to idle at once. While idle it does nothing.
func (s *Session) cancel() {
	s.stopTurn(errCancelled)
	if s.machine.can(evCancel) {
		s.enter(evCancel)
	}
}

// stopTurn ends whatever is being heard or answered. Its channels are let go of, so nothing of it can follow.
func (s *Session) stopTurn(cause error) {
	s.forget()
	if s.answer != nil {
		s.answer.stop(cause)
		s.answer = nil
		s.cfg.Metrics.turnEnded("cancelled")
	}
}

// forget drops what the user has said so far in this turn.
func (s *Session) forget() {
	s.chunks = 0
	if s.hearing != nil {
		s.hearing.stop(errCancelled)
		s.hearing = nil
	}
}
