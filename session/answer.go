package session

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
)

// answer is the engine's half of a turn, while it runs. Its channel belongs to it: once the session lets go of the
// answer, nothing more can come of it.
type answer struct {
	mocked    bool
	question  string
	text      strings.Builder // what has been said so far
	said      chan said       // never closed: a question may come too late
	over      <-chan struct{} // closed once nobody listens to the engine any more
	stop      context.CancelCauseFunc
	heardFrom time.Time // when the engine last yielded something
	completed bool
}

// said is one thing that an engine yields or asks, or that it has ended.
type said struct {
	payload signal.Payload
	err     error
	asks    *question
	ended   bool
}

// question is an engine waiting for a yes or a no.
type question struct {
	turn.Question
	reply chan turn.Answer // of size 1: the session never waits for the engine
}

// signals is nil while there is no answer, so that a select sleeps on it.
func (a *answer) signals() <-chan said {
	if a == nil {
		return nil
	}
	return a.said
}

// ask lets an engine answer the text, in a child goroutine.
func (s *Session) ask(ctx context.Context, e turn.Engine, text string, mocked bool) {
	ctx, stop := context.WithCancelCause(ctx)
	a := &answer{mocked: mocked, question: text, said: make(chan said, 8), over: ctx.Done(), stop: stop, heardFrom: s.now}
	s.answer = a
	req := turn.Request{SessionID: s.cfg.ID, TurnID: s.cfg.NewID(), Text: text, Ask: a.put}
	if !mocked {
		req.History = slices.Clip(s.history) // an engine that appends to it gets a copy
	}
	s.timer.Reset(s.nextTick())
	s.children.Go(func() {
		defer stop(nil)
		a.run(ctx, e, req)
	})
}

// run hands over what the engine yields until it ends or ctx does. An engine that panics has failed, and no other
// session notices.
func (a *answer) run(ctx context.Context, e turn.Engine, req turn.Request) {
	defer a.hand(ctx, said{ended: true})
	defer func() {
		if p := recover(); p != nil {
			a.hand(ctx, said{err: fmt.Errorf("session: engine panicked: %v\n%s", p, debug.Stack())})
		}
	}()
	for payload, err := range e.Run(ctx, req) {
		if !a.hand(ctx, said{payload: payload, err: err}) || err != nil {
			return
		}
	}
}

// hand waits until the session takes it; false when nobody will.
func (a *answer) hand(ctx context.Context, o said) bool {
	select {
	case a.said <- o:
		return true
	case <-ctx.Done():
		return false
	}
}

// put is the Ask of a [turn.Request]. It returns when the turn ends, whatever context it is given.
func (a *answer) put(ctx context.Context, q turn.Question) (turn.Answer, error) {
	reply := make(chan turn.Answer, 1)
	select {
	case a.said <- said{asks: &question{q, reply}}:
	case <-ctx.Done():
		return turn.Answer{}, context.Cause(ctx)
	case <-a.over:
		return turn.Answer{}, errTurnOver
	}
	select {
	case yes := <-reply:
		return yes, nil
	case <-ctx.Done():
		return turn.Answer{}, context.Cause(ctx)
	case <-a.over:
		return turn.Answer{}, errTurnOver
	}
}

// say does what one signal of the engine means for the session.
func (s *Session) say(o said) {
	s.answer.heardFrom = s.now
	switch {
	case o.asks != nil:
		o.asks.reply <- turn.Answer{} // no peer of version 1 can be asked, and no answer is a no
	case o.err != nil:
		s.failAnswer(o.err)
	case o.ended:
		s.endAnswer()
	default:
		s.show(o.payload)
	}
}

// show tells the peers what they can see of a signal.
func (s *Session) show(p signal.Payload) {
	switch p := p.(type) {
	case signal.TextDelta:
		if s.machine.can(evSay) {
			s.enter(evSay)
		}
		s.answer.text.WriteString(p.Content)
		s.emit(protocol.ResponseTextDelta{Text: p.Content})
	case signal.Completion:
		s.answer.completed = true
	}
}

// endAnswer follows the engine's last signal.
func (s *Session) endAnswer() {
	a := s.answer
	if !a.completed {
		s.failAnswer(errNoCompletion)
		return
	}
	s.answer = nil
	if !a.mocked {
		s.remember(a.question, a.text.String())
	}
	s.cfg.Metrics.turnEnded("completed")
	s.emit(protocol.ResponseCompleted{})
	s.enter(evFinish)
}

// failAnswer ends a turn whose engine could not: an error, then idle, and no response.completed.
func (s *Session) failAnswer(err error) {
	s.answer.stop(err)
	s.answer = nil
	s.cfg.Metrics.turnEnded("failed")
	s.emit(s.wireError(err, protocol.CodeAgentFailed))
	s.enter(evFinish)
}

// maxHistory bounds what a session remembers, in messages: fifty exchanges. An engine cuts further, to what its model takes.
const maxHistory = 100

// remember makes a finished exchange part of the conversation. Requests hold the old slice: it is never written to.
func (s *Session) remember(user, assistant string) {
	h := append(s.history[:len(s.history):len(s.history)],
		turn.Message{Role: turn.User, Text: user, At: s.now},
		turn.Message{Role: turn.Assistant, Text: assistant, At: s.now})
	s.history = h[max(0, len(h)-maxHistory):]
}
