package session

import (
	"context"

	"vela/protocol"
)

// fromClient does what a client asks for. It returns why the session ends, if that is what it asks for.
func (s *Session) fromClient(ctx context.Context, in fromClient) error {
	if in.message.Type() != appendType || !s.handsFree() { // of an open microphone speech counts, and nothing else
		s.lastSeen = s.now
	}
	if s.seatOf(in.peer) == nobody {
		return nil // taken over meanwhile: what was still under way is not the session's any more
	}
	if _, ok := in.message.(protocol.SessionClose); ok && s.cfg.Version >= 2 {
		return errClosed
	}
	if err := s.handle(ctx, in.peer, in.message); err != nil {
		s.refuse(in.peer, in.ref, err)
	}
	return nil
}

// malformed answers what is no event.
func (s *Session) malformed(in malformed) {
	s.lastSeen = s.now
	if s.seatOf(in.peer) != nobody {
		s.refuse(in.peer, in.ref, in.err)
	}
}

// handle returns why it did nothing.
func (s *Session) handle(ctx context.Context, p Peer, m protocol.Message) error {
	switch m := m.(type) {
	case protocol.InputAudioAppend:
		return s.append(ctx, p, m)
	case protocol.InputAudioCommit:
		return s.commit(ctx, p)
	case protocol.ResponseCancel:
		s.cancelled(m)
		return nil
	case protocol.MockedTurnTrigger:
		return s.trigger(ctx)
	case protocol.SessionStart:
		return s.restart(ctx, p, m)
	}
	if s.cfg.Version == 1 {
		return errNotV1
	}
	return s.handle2(ctx, p, m)
}

// handle2 does what only version 2 has.
func (s *Session) handle2(ctx context.Context, p Peer, m protocol.Message) error {
	switch m := m.(type) {
	case Audio:
		s.pays = m.Pays
		defer func() { s.pays = nil }()
		return s.append(ctx, p, m)
	case protocol.InputAudioClear:
		s.clear(p)
		return nil
	case protocol.InputTextSubmit:
		return s.submit(ctx, m.Text)
	case protocol.HistoryGet:
		s.tell(p, s.conversation())
		return nil
	case protocol.HistoryClear:
		return s.clearHistory(p)
	case protocol.PlaybackAck:
		return s.acknowledge(m)
	case protocol.ApprovalAnswer:
		return s.approve(m)
	case protocol.SignalSubscribe, protocol.SignalUnsubscribe, protocol.SignalEmit:
		return s.signal(p, m)
	case protocol.SessionResume:
		return errResume
	}
	return errUnsupported
}

// restart acknowledges the session again; in version 2 it may change what is in force.
func (s *Session) restart(ctx context.Context, p Peer, m protocol.SessionStart) error {
	if s.cfg.Version >= 2 && asks(m) {
		if s.inFlight() || s.machine.state() != protocol.Idle {
			return errSettings
		}
		before := s.settings.terms.Room
		if err := s.Configure(m); err != nil {
			return err
		}
		s.save()
		s.mirror(before)
		s.follow(ctx)
		s.tellTerms(p)
	}
	s.greet(p)
	return nil
}

// inFlight says whether a turn runs: from its commit or trigger until the session is idle again.
func (s *Session) inFlight() bool {
	return s.answer != nil || s.hearing != nil && s.hearing.committed
}

// refuseInFlight says that a turn is still running, and whose kind it is. The turn is not disturbed.
func (s *Session) refuseInFlight() error {
	if s.answer != nil && s.answer.mocked {
		return errMockedTurnInFlight
	}
	return errTurnInFlight
}

// interrupts says whether what the user does now ends the answer, as settings of version 2 have it.
func (s *Session) interrupts() bool {
	return s.cfg.Version >= 2 && s.settings.terms.Interrupt && s.answer != nil
}

// bargeIn ends the answer because the user goes on. It goes straight to listening, with no idle between.
func (s *Session) bargeIn() {
	s.cancelAnswer(protocol.CancelBargeIn)
	s.enter(evBargeIn)
}

// trigger runs the fixed turn. Whatever was appended before is dropped.
func (s *Session) trigger(ctx context.Context) error {
	if s.inFlight() {
		return s.refuseInFlight()
	}
	s.forget()
	s.enter(evTrigger)
	s.emit(protocol.TranscriptFinal{Text: s.cfg.Mock.Question(), ItemID: s.newItem()})
	s.enter(evThink)
	s.ask(ctx, s.mock(), s.cfg.Mock.Question(), true)
	return nil
}

// append takes speech, as an event or as a binary message. What is no audio takes no floor and interrupts nobody.
func (s *Session) append(ctx context.Context, p Peer, m protocol.Message) error {
	if s.handsFree() {
		samples, err := s.samplesOf(p, m)
		if err != nil {
			return err
		}
		return s.overhear(ctx, p, samples)
	}
	switch {
	case s.inFlight() && s.cfg.Version == 1:
		return s.refuseInFlight()
	case s.inFlight() && !s.interrupts():
		return nil // version 2 lets audio go that nobody listens to
	}
	samples, err := s.samplesOf(p, m)
	if err != nil {
		return err
	}
	if !s.takeFloor(p) {
		return nil
	}
	if s.interrupts() {
		s.bargeIn()
	}
	if s.settings.turns == Agent {
		return s.listen(ctx, samples)
	}
	s.count()
	return nil
}

// count is what a deterministic turn does with audio.
func (s *Session) count() {
	s.chunks++
	if s.machine.can(evAppend) {
		s.enter(evAppend)
	}
	if s.chunks == 1 {
		s.newItem()
	}
	s.emit(protocol.TranscriptPartial{Text: s.cfg.Mock.Partial(s.chunks), ItemID: s.item()})
}

func (s *Session) commit(ctx context.Context, p Peer) error {
	if !s.mayEnd(p) {
		return s.refuseInFlight()
	}
	switch {
	case s.overhears():
		s.commitHeard()
		return nil
	case s.settings.turns == Agent:
		s.commitSpeech()
		return nil
	}
	if s.chunks == 0 {
		s.newItem()
	}
	text := s.cfg.Mock.Final(s.chunks)
	s.forget()
	s.emit(protocol.TranscriptFinal{Text: text, ItemID: s.item()})
	s.enter(evThink)
	s.ask(ctx, s.mock(), text, true)
	return nil
}

// mayEnd gives a peer the floor to say that what is being said has ended, or is to be forgotten: not within a turn, unless its
// answer is held for that.
func (s *Session) mayEnd(p Peer) bool {
	if s.inFlight() && !s.overhears() || !s.takeFloor(p) {
		return false
	}
	if s.inFlight() && !s.overhears() { // it was held for somebody who has left, and goes on
		s.floor = nobody
		return false
	}
	return true
}

// clear forgets what a peer has said so far.
func (s *Session) clear(p Peer) {
	if s.handsFree() {
		s.mics[s.seatOf(p)].deafen()
	}
	if !s.mayEnd(p) {
		return
	}
	held := s.held()
	s.forget()
	if !held && s.machine.can(evCancel) {
		s.enter(evCancel)
	}
}

// submit is a typed turn. What was being said is dropped.
func (s *Session) submit(ctx context.Context, text string) error {
	switch {
	case s.interrupts():
		s.bargeIn()
	case s.inFlight():
		return s.refuseInFlight()
	}
	s.forget()
	s.emit(protocol.TranscriptFinal{Text: text, ItemID: s.newItem()})
	s.enter(evThink)
	switch {
	case s.settings.turns == Deterministic:
		s.ask(ctx, s.mock(), text, true)
	case s.agent() == nil:
		s.traceNoAgent(ctx)
		s.emit(s.wireError(errNoAgent, protocol.CodeAgentUnavailable))
		s.enter(evFinish)
	default:
		s.ask(ctx, *s.agent(), text, false)
	}
	return nil
}

// cancelled brings the session back to idle at once. While idle it does nothing, and neither does it when it names an
// answer that is over.
func (s *Session) cancelled(m protocol.ResponseCancel) {
	if m.ResponseID != "" && s.cfg.Version >= 2 && (s.answer == nil || s.answer.id != m.ResponseID) {
		return
	}
	if a := s.answer; a != nil && a.voice != nil && m.PlayedMs > 0 {
		a.voice.ack(played(m.PlayedMs))
		s.spend(a.voice)
	}
	s.cancelAnswer(protocol.CancelClient)
	s.forget()
	if s.machine.can(evCancel) {
		s.enter(evCancel)
	}
}

// stopTurn ends whatever is being heard or answered. Its channels are let go of, so nothing of it can follow.
func (s *Session) stopTurn(cause error) {
	s.forget()
	if s.answer != nil {
		s.answer.stop(cause)
		s.turnOver(s.answer, outcomeCancelled, nil)
		s.answer = nil
	}
}

// forget drops what the user has said so far in this turn, and gives the floor back.
func (s *Session) forget() {
	s.chunks, s.floor = 0, nobody
	if s.hearing != nil {
		s.hearing.stop(errCancelled)
		s.speechTrace().end(s.now, outcomeCancelled)
		s.hearing = nil
	}
	if s.held() {
		s.goOn()
	}
}
