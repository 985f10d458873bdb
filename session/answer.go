package session

import (
	"context"
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
	agent     string // its name
	mocked    bool
	question  string
	text      strings.Builder // what has been said so far
	said      chan said       // never closed: a question may come too late
	over      <-chan struct{} // closed once nobody listens to the engine any more
	stop      context.CancelCauseFunc
	heardFrom time.Time // when the engine last yielded something
	completed bool
	stopped   bool // before its end
	usage     *protocol.Usage
	times     times
	tools     []turn.ToolUse // in the order of their calls
	rounds    int            // how often the agent has turned to tools
	open      []open         // questions that nobody has answered
	questions int            // so far
	working   working
	voice     *voice // nil where the answer is text alone
	hold      *hold  // nil unless the user may be speaking over it
	ended     bool   // the engine has; what it said may still be spoken
}

// said is one thing that an engine yields or asks, or that it has ended.
type said struct {
	payload signal.Payload
	err     error
	asks    *question
	ended   bool
	at      time.Time // when it was yielded; the session may come to it later
}

// signals is nil while there is no answer, so that a select sleeps on it.
func (a *answer) signals() <-chan said {
	if a == nil {
		return nil
	}
	return a.said
}

// ask lets an engine answer the text, in a child goroutine.
func (s *Session) ask(ctx context.Context, who NamedEngine, text string, mocked bool) {
	ctx, stop := context.WithCancelCause(ctx) // of all that the answer needs
	asking, ended := context.WithCancel(ctx)  // of its engine
	s.turns++
	n := strconv.Itoa(s.turns)
	a := &answer{
		id: "r" + n, turn: "t" + n, agent: who.Name, mocked: mocked, question: text,
		said: make(chan said, 8), over: asking.Done(), stop: stop,
		heardFrom: s.now, times: times{asked: s.now, recognised: s.spoken},
	}
	s.spoken = recognised{}
	s.answer = a
	s.startVoice(ctx, a)
	s.startFiller(ctx, a, who)
	asking = s.traceAnswer(asking, a)
	a.working.phrases = who.Ponder
	s.observeStart(a, who.Name)
	s.emit2(protocol.ResponseCreated{ResponseID: a.id, TurnID: a.turn})
	s.silence(0)
	s.ponder()
	req := turn.Request{SessionID: s.cfg.ID, TurnID: a.turn, Text: text, Ask: a.put}
	if !mocked {
		req.History = slices.Clip(s.history) // an engine that appends to it gets a copy
	}
	s.wake()
	s.spawn(func() {
		defer ended()
		a.run(asking, who.Engine, req)
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

// nextTick is when the answer may have waited for too long: for its engine, or for a person.
func (a *answer) nextTick(now time.Time, silent time.Duration, alone bool) time.Duration {
	next := silent - now.Sub(a.heardFrom)
	switch {
	case a.ended:
		next = time.Hour
	case len(a.open) > 0:
		next = a.open[0].until.Sub(now) // the oldest question
	}
	if a.voice != nil && a.hold == nil {
		next = min(next, a.voice.nextTick(now, alone), a.nextFiller(now, alone))
	}
	if due := a.working.due; !due.IsZero() {
		next = min(next, due.Sub(now))
	}
	return next
}

// say does what one signal of the engine means for the session.
func (s *Session) say(o said) {
	s.answer.heardFrom = s.now
	switch {
	case o.asks != nil:
		s.question(o.asks)
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
	s.observe(a, p)
	switch p := p.(type) {
	case signal.TextDelta:
		a.times.firstText(s.now, at)
		s.trace.firstText(s.now)
		if a.text.Len() == 0 && s.machine.can(evSay) { // the table is looked at once an answer, not once a piece
			s.enter(evSay)
		}
		a.working.due = time.Time{}
		a.text.WriteString(p.Content)
		s.emit(protocol.ResponseTextDelta{Text: p.Content, ResponseID: a.id})
		s.speak(p.Content, false)
	case signal.Thinking:
		s.emit2(protocol.ThinkingDelta{Text: p.Content})
	case signal.ToolCall:
		s.call(p)
	case signal.ToolResult:
		s.result(p)
	case signal.AgentStateChange:
		if p.To == signal.AgentActing {
			a.rounds++
		}
	case signal.TokenUsage:
		a.use(p)
	case signal.Completion:
		a.completed = true
	}
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
	a.ended, a.working.due = true, time.Time{}
	s.trace.endHalf(s.now)
	if a.voice == nil {
		s.completeAnswer()
		return
	}
	s.speak("", true)
}

// completeAnswer follows the last of its text, or of its sound.
func (s *Session) completeAnswer() {
	a := s.answer
	a.stop(nil)
	heard := a.heardText()
	if a.voice != nil && !a.voice.acked {
		heard = a.text.String() // nobody says how much was played: it was
	}
	s.answer, s.lastSeen = nil, s.now
	s.remember(a, heard)
	if a.voice != nil && a.voice.acked && a.voice.played < a.voice.sent {
		s.keepCut(a)
	}
	s.turnOver(a, outcomeCompleted, nil)
	s.emit(protocol.ResponseCompleted{ResponseID: a.id, Usage: a.usage, HeardText: heard})
	s.emit2(a.metrics(s.now))
	s.enter(evFinish)
}

// failAnswer ends a turn whose engine could not: an error, then idle, and no response.completed.
func (s *Session) failAnswer(err error) {
	told := s.wireError(err, protocol.CodeAgentFailed)
	s.emit(told)
	s.stopAnswer(err, &told, protocol.CancelError, outcomeFailed)
	s.enter(evFinish)
}

// cancelAnswer ends the answer, if there is one, before its end.
func (s *Session) cancelAnswer(reason protocol.CancelReason) {
	if s.answer != nil {
		s.stopAnswer(errCancelled, nil, reason, outcomeCancelled)
	}
}

// stopAnswer lets go of the answer. told is what clients were told of a failure; nil for any other reason.
func (s *Session) stopAnswer(cause error, told *protocol.Error, reason protocol.CancelReason, outcome string) {
	a := s.answer
	s.observeEnd(a, told, reason)
	a.stop(cause)
	a.stopped = true
	s.answer, s.lastSeen = nil, s.now
	heard := a.heardText()
	s.remember(a, heard)
	s.turnOver(a, outcomeOf(outcome, reason), cause)
	s.emit2(protocol.ResponseCancelled{ResponseID: a.id, Reason: reason, HeardText: heard, PlayedMs: a.played()})
	if a.voice != nil {
		s.keepCut(a)
	}
	s.emit2(a.metrics(s.now))
}

// newItem begins another utterance or typed turn, and returns its id.
func (s *Session) newItem() string {
	s.items++
	return s.item()
}

// item is the id of the present one.
func (s *Session) item() string { return "i" + strconv.Itoa(s.items) }
