package session

import (
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// Allowance is how much audio a client may still send. It may be shared by several sessions.
type Allowance interface {
	// Take takes d of it. It is false, and nothing is taken, when less is left. It does not block: the session calls it
	// from its own goroutine.
	Take(d time.Duration) bool
}

// allowed takes the samples from the client's allowance. The client is told once a turn that there is nothing left.
func (s *Session) allowed(p Peer, samples []int16) bool {
	if s.cfg.Allowance == nil || s.cfg.Allowance.Take(speech.Duration(len(samples), speech.Rate)) {
		return true
	}
	if !s.hearing.spent {
		s.hearing.spent = true
		s.tell(p, s.wireError(errAllowance, protocol.CodeInvalidMessage))
	}
	return false
}
