package session

import (
	"time"
)

// A sound over an answer may be the first word that interrupts it, or a cough. So the answer is held: its sound stops, here
// and at the client, while its engine and its text go on. Words end it; without any it goes on where it stopped. No clock of
// its sound runs meanwhile, and it does not complete.

// longestHold is how much sound may be heard over an answer before it has to be words: then it is taken for whole, and the
// recogniser says what it was.
const longestHold = 10 * time.Second

// hold is what is kept of an answer that is held.
type hold struct {
	since time.Time
	trace turnTrace // of the turn that may come of the sound
}

// held says whether an answer is.
func (s *Session) held() bool { return s.answer != nil && s.answer.hold != nil }

// hold stops the answer's sound.
func (s *Session) hold() {
	s.answer.hold = &hold{since: s.now}
	s.enter(evHold)
}

// goOn follows a sound that was no words.
func (s *Session) goOn() {
	a := s.answer
	since := a.hold.since
	a.hold = nil
	if a.voice != nil {
		here := s.now
		if s.isAlone() { // what follows is counted when somebody comes back
			here = s.alone
		}
		a.voice.goOn(max(0, here.Sub(since)), s.since(since))
	}
	if a.text.Len() > 0 {
		s.enter(evSpeakOn)
	} else {
		s.enter(evThinkOn)
	}
	s.play()
	s.wake()
}

// speechTrace is the trace of what the user says.
func (s *Session) speechTrace() *turnTrace {
	if s.held() {
		return &s.answer.hold.trace
	}
	return &s.trace
}
