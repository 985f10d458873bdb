package session

import "time"

// Allowance is how much audio a client may still send. It may be shared by several sessions.
type Allowance interface {
	// Take takes d of it. It is false, and nothing is taken, when less is left. It does not block: the session calls it
	// from its own goroutine.
	Take(d time.Duration) bool
}

// allowed takes so much audio from the client's allowance. What that answers depends on other sessions too, so the
// journal has it.
func (s *Session) allowed(d time.Duration) bool {
	from := s.pays
	if from == nil {
		from = s.cfg.Allowance
	}
	if from == nil || from.Take(d) {
		return true
	}
	s.journal.write(entry{Spent: true})
	return false
}
