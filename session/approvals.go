package session

import (
	"strconv"
	"strings"
	"time"

	"vela/protocol"
	"vela/turn"
)

// An engine that asks waits for a person's yes or no. The question goes to the peers as approval.request; what they
// answer, or that nobody does in time, comes back as a value. Without a yes it is a no.

// question is an engine waiting for a yes or a no.
type question struct {
	turn.Question
	reply chan turn.Answer // of size 1: the session never waits for the engine
}

// open is a question that the peers have been asked.
type open struct {
	question
	id    string
	until time.Time
}

// agentTool is one agent's tool. Another agent's of the same name may work in another folder.
type agentTool struct{ agent, tool string }

// maxOpen bounds how many questions a person is asked at once; what an engine asks beyond that is answered no.
const maxOpen = 16

// question asks the peers, unless the answer is known.
func (s *Session) question(q *question) {
	a := s.answer
	if allow, known := s.standing[agentTool{a.agent, q.Name}]; known {
		q.reply <- turn.Answer{Allow: allow, Remember: true}
		return
	}
	if s.cfg.Version < 2 || !s.settings.terms.Approvals || len(a.open) == maxOpen {
		q.reply <- turn.Answer{}
		return
	}
	a.questions++
	asked := open{*q, "a" + strconv.Itoa(s.turns) + "." + strconv.Itoa(a.questions), s.now.Add(s.cfg.Approve)}
	a.open = append(a.open, asked)
	risk := "low"
	if q.Risky {
		risk = "high"
	}
	s.emit(protocol.ApprovalRequest{
		ApprovalID: asked.id, CallID: q.CallID, Name: q.Name, Summary: q.Summary, Risk: risk, ExpiresMs: s.cfg.Approve.Milliseconds(),
	})
	s.wake()
}

// approve hands a person's answer to the engine that waits for it. One to be remembered settles every other question
// about that tool as well.
func (s *Session) approve(m protocol.ApprovalAnswer) error {
	asked := s.asking(m.ApprovalID)
	switch {
	case asked == nil && s.wasAsked(m.ApprovalID):
		return nil // it was settled meanwhile: by another peer, by the clock, or with its turn
	case asked == nil:
		return errNotAsked
	}
	name := asked.Name
	if m.Remember {
		if s.standing == nil {
			s.standing = map[agentTool]bool{}
		}
		s.standing[agentTool{s.answer.agent, name}] = m.Allow
	}
	s.settle(turn.Answer{Allow: m.Allow, Remember: m.Remember}, func(o open) bool {
		return o.id == m.ApprovalID || m.Remember && o.Name == name
	})
	return nil
}

// wasAsked says whether an id can be that of a question of a turn there has been.
func (s *Session) wasAsked(id string) bool {
	turn, _, ok := strings.Cut(strings.TrimPrefix(id, "a"), ".")
	n, err := strconv.Atoi(turn)
	return ok && err == nil && strings.HasPrefix(id, "a") && n >= 1 && n <= s.turns
}

func (s *Session) asking(id string) *open {
	if s.answer == nil {
		return nil
	}
	for i := range s.answer.open {
		if s.answer.open[i].id == id {
			return &s.answer.open[i]
		}
	}
	return nil
}

// settle answers the questions that which names. The engine goes on, and its silence begins anew.
func (s *Session) settle(with turn.Answer, which func(open) bool) {
	a := s.answer
	var rest []open
	for _, o := range a.open {
		if which(o) {
			o.reply <- with
			a.heardFrom = s.now
			if a.voice != nil {
				a.voice.filler.quiet = s.now
			}
		} else {
			rest = append(rest, o)
		}
	}
	a.open = rest
	s.wake()
}

// expire answers no where nobody did.
func (s *Session) expire() {
	if s.answer != nil && len(s.answer.open) > 0 {
		s.settle(turn.Answer{}, func(o open) bool { return !o.until.After(s.now) })
	}
}
