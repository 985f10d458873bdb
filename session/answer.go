package session

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
)

// answer is the engine's half of a turn, while it runs. Its channel belongs to it: once the session lets go of the
// answer, nothing more can come of it.
type answer struct {
	id, turn  string
	mocked    bool
	question  string
	text      strings.Builder // what has been said so far
	said      chan said       // never closed: a question may come too late
	over      <-chan struct{} // closed once nobody listens to the engine any more
	stop      context.CancelCauseFunc
	heardFrom time.Time // when the engine last yielded something
	completed bool
	usage     *protocol.Usage
	times     times
}

// said is one thing that an engine yields or asks, or that it has ended.
type said struct {
	payload signal.Payload
	err     error
	asks    *question
	ended   bool
	at      time.Time // when it was yielded; the session may come to it later
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
	s.turns++
	n := strconv.Itoa(s.turns)
	a := &answer{
		id: "r" + n, turn: "t" + n, mocked: mocked, question: text,
		said: make(chan said, 8), over: ctx.Done(), stop: stop,
		heardFrom: s.now, times: times{asked: s.now, stt: s.sttTook},
	}
	s.sttTook = 0
	s.answer = a
	ctx = s.traceAnswer(ctx, a)
	s.emit2(protocol.ResponseCreated{ResponseID: a.id, TurnID: a.turn})
	req := turn.Request{SessionID: s.cfg.ID, TurnID: a.turn, Text: text, Ask: a.put}
	if !mocked {
		req.History = slices.Clip(s.history) // an engine that appends to it gets a copy
	}
	s.wake()
	s.spawn(func() {
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
		if !a.hand(ctx, said{payload: payload, err: err, at: time.Now()}) || err != nil {
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
		s.show(o.payload, o.at)
	}
}

// show tells the peers what they can see of a signal.
func (s *Session) show(p signal.Payload, at time.Time) {
	a := s.answer
	switch p := p.(type) {
	case signal.TextDelta:
		a.times.firstText(s.now, at)
		s.trace.firstText(s.now)
		if s.machine.can(evSay) {
			s.enter(evSay)
		}
		a.text.WriteString(p.Content)
		s.emit(protocol.ResponseTextDelta{Text: p.Content, ResponseID: a.id})
	case signal.Thinking:
		s.emit2(protocol.ThinkingDelta{Text: p.Content})
	case signal.ToolCall:
		s.emit2(protocol.ToolCall{CallID: p.CallID, Name: p.ToolName, Input: object(p.Input)})
	case signal.ToolResult:
		s.emit2(protocol.ToolResult{CallID: p.CallID, Name: p.ToolName, Success: p.Success, Output: p.Output})
	case signal.TokenUsage:
		a.use(p)
	case signal.Completion:
		a.completed = true
	}
}

// object is a tool's input as the contract wants it: always there.
func object(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}

// use adds up what several requests to a model took.
func (a *answer) use(u signal.TokenUsage) {
	if a.usage == nil {
		a.usage = new(protocol.Usage)
	}
	a.usage.PromptTokens += u.PromptTokens
	a.usage.CompletionTokens += u.CompletionTokens
}

// endAnswer follows the engine's last signal.
func (s *Session) endAnswer() {
	a := s.answer
	if !a.completed {
		s.failAnswer(errNoCompletion)
		return
	}
	s.answer, s.lastSeen = nil, s.now
	s.remember(a)
	s.turnOver(a, outcomeCompleted, nil)
	s.emit(protocol.ResponseCompleted{ResponseID: a.id, Usage: a.usage, HeardText: a.text.String()})
	s.emit2(a.metrics(s.now))
	s.enter(evFinish)
}

// failAnswer ends a turn whose engine could not: an error, then idle, and no response.completed.
func (s *Session) failAnswer(err error) {
	s.emit(s.wireError(err, protocol.CodeAgentFailed))
	s.stopAnswer(err, protocol.CancelError, outcomeFailed)
	s.enter(evFinish)
}

// cancelAnswer ends the answer, if there is one, before its end.
func (s *Session) cancelAnswer(reason protocol.CancelReason) {
	if s.answer != nil {
		s.stopAnswer(errCancelled, reason, outcomeCancelled)
	}
}

// stopAnswer lets go of the answer. What was shown of it counts as heard: without sound there is nothing to wait for.
func (s *Session) stopAnswer(cause error, reason protocol.CancelReason, outcome string) {
	a := s.answer
	a.stop(cause)
	s.answer, s.lastSeen = nil, s.now
	s.remember(a)
	s.turnOver(a, outcomeOf(outcome, reason), cause)
	s.emit2(protocol.ResponseCancelled{ResponseID: a.id, Reason: reason, HeardText: a.text.String()})
	s.emit2(a.metrics(s.now))
}

// maxHistory bounds what a session remembers, in messages: fifty exchanges. An engine cuts further, to what its model takes.
const maxHistory = 100

// remember makes an exchange part of the conversation, as far as it was heard. Requests hold the old slice: it is never
// written to. A mocked one is no part of it.
func (s *Session) remember(a *answer) {
	if a.mocked {
		return
	}
	s.rememberText(a.times.asked, a.question, a.text.String())
	s.save()
}

func (s *Session) rememberText(asked time.Time, question, text string) {
	h := append(s.history[:len(s.history):len(s.history)], turn.Message{Role: turn.User, Text: question, At: asked})
	if text != "" {
		h = append(h, turn.Message{Role: turn.Assistant, Text: text, At: s.now})
	}
	h = h[max(0, len(h)-maxHistory):]
	if h[0].Role == turn.Assistant {
		h = h[1:] // what it answered has been cut off
	}
	s.history = h
}

// conversation is the history as a client sees it.
func (s *Session) conversation() protocol.History {
	items := make([]protocol.HistoryItem, 0, len(s.history))
	for _, m := range s.history {
		items = append(items, protocol.HistoryItem{Role: string(m.Role), Text: m.Text, At: m.At.UnixMilli()})
	}
	return protocol.History{Items: items}
}

// clearHistory begins a new conversation.
func (s *Session) clearHistory(p Peer) error {
	if s.inFlight() {
		return s.refuseInFlight()
	}
	s.history = nil
	s.save()
	s.tell(p, s.conversation())
	return nil
}

// newItem begins another utterance or typed turn, and returns its id.
func (s *Session) newItem() string {
	s.items++
	return s.item()
}

// item is the id of the present one.
func (s *Session) item() string { return "i" + strconv.Itoa(s.items) }
