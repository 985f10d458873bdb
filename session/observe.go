package session

import (
	"vela/protocol"
	"vela/protocol/signal"
)

// Observed is one signal of a turn: the question as a [signal.TaskDispatch], what the engine yields, and one end, which
// is the engine's [signal.Completion], one without success for a turn that was cancelled, or a [signal.Error] in the words
// that clients are told.
type Observed struct {
	TurnID  string
	Payload signal.Payload
}

func (s *Session) observe(a *answer, p signal.Payload) {
	if s.cfg.Observe != nil {
		s.cfg.Observe(Observed{a.turn, p})
	}
}

// observeStart shows the question.
func (s *Session) observeStart(a *answer, agent string) {
	if agent == "" {
		agent = "vela" // the fixed turn has no name
	}
	s.observe(a, signal.TaskDispatch{TaskID: a.turn, From: "user", To: agent, Description: a.question})
}

// observeEnd shows an end that the engine has not told of itself.
func (s *Session) observeEnd(a *answer, failed *protocol.Error, reason protocol.CancelReason) {
	switch {
	case a.completed:
	case failed != nil:
		s.observe(a, signal.Error{Code: string(failed.Code), Message: failed.Message, Severity: signal.SeverityError})
	default:
		s.observe(a, signal.Completion{TaskID: a.turn, Result: string(reason)})
	}
}
