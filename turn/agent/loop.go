package agent

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/tool"
)

// loop is one turn. It belongs to the goroutine that ranges over Run.
type loop struct {
	cfg    Config
	req    turn.Request
	yield  func(signal.Payload, error) bool
	tools  tool.Caller
	ids    ids
	past   [][]Message // the exchanges before this one, oldest first
	turn   []Message   // this one: the question, then calls and results
	state  signal.AgentState
	index  int  // of the next piece of text
	gap    bool // text was said, and it does not end with white space
	retold bool // the model was told once that it had said nothing
}

func (a *Agent) begin(req turn.Request, yield func(signal.Payload, error) bool) *loop {
	t := &loop{cfg: a.cfg, req: req, yield: yield, tools: a.guard(req), ids: ids{}, state: signal.AgentIdle}
	t.past = exchanges(req.History, t.ids, a.cfg.MaxResult)
	t.turn = []Message{{Role: turn.User, Text: req.Text}}
	return t
}

// answer is the rounds of the turn. Every call is answered before the next prompt, and so is every goroutine waited for.
func (t *loop) answer(ctx context.Context) error {
	for round := 0; ; round++ {
		last := round == t.cfg.MaxRounds
		if err := t.enter(ctx, signal.AgentThinking, ""); err != nil {
			return err
		}
		said, err := t.ask(ctx, last)
		if err != nil || len(said.Calls) == 0 || last {
			return err
		}
		if err := t.enter(ctx, signal.AgentActing, ""); err != nil {
			return err
		}
		results, err := t.act(ctx, said.Calls)
		if err != nil {
			return err
		}
		for i, c := range said.Calls {
			said.Calls[i].Input = object(c.Input)
		}
		t.turn = append(t.turn, said, Message{Role: turn.User, Results: results})
	}
}

// end tells how the turn ended, unless there is nobody to tell. Its context is that of the request: the time that a turn
// may take can be over.
func (t *loop) end(ctx context.Context, err error) {
	switch {
	case errors.Is(err, errLeft):
	case err == nil:
		if t.enter(ctx, signal.AgentDone, "") == nil {
			_ = t.emit(ctx, signal.Completion{TaskID: t.req.TurnID, AgentID: t.cfg.ID, Success: true})
		}
	case t.enter(ctx, signal.AgentError, reason(err)) == nil && ctx.Err() == nil:
		t.log(err)
		t.yield(nil, err)
	}
}

// log tells the operator what a client is not told. An error that has no words for a client is logged where it gets some.
func (t *loop) log(err error) {
	if words := reason(err); words != "" {
		t.cfg.Log.Warn("turn not answered", "session", t.req.SessionID, "turn", t.req.TurnID, "told", words, "cause", errors.Unwrap(err))
	}
}

// reason is an error in words that may be shown; empty when it has none that may.
func reason(err error) string {
	var known interface {
		error
		Code() protocol.Code
	}
	if errors.As(err, &known) {
		return known.Error()
	}
	return ""
}

// ask lets the model answer the conversation so far. A model that says nothing is asked once more in a turn; if it then
// says nothing again, what was said in earlier rounds is the answer, and without any there is none.
func (t *loop) ask(ctx context.Context, last bool) (Message, error) {
	p := Prompt{System: t.cfg.System, Messages: fit(t.past, t.turn, t.cfg.Budget)}
	if last {
		p.System += "\n\n" + noteAnswerNow
	} else {
		p.Tools = t.tools.Definitions()
	}
	said, err := t.stream(ctx, p)
	if err != nil || !empty(said, last) {
		return said, err
	}
	if !t.retold {
		t.retold = true
		p.System += "\n\n" + noteEmpty
		said, err = t.stream(ctx, p)
	}
	if err == nil && empty(said, last) && t.index == 0 {
		err = errNoAnswer
	}
	return said, err
}

// empty says whether there is nothing in an answer. The calls of one that had to do without tools do not count.
func empty(said Message, last bool) bool {
	return said.Text == "" && (last || len(said.Calls) == 0)
}

// maxCalls bounds what a model calls in one answer. What is beyond it is not run, and the model is not told that it
// called it, so that it may call it again.
const maxCalls = 64

// stream yields an answer of the model while it comes, and returns it whole.
func (t *loop) stream(ctx context.Context, p Prompt) (Message, error) {
	said := Message{Role: turn.Assistant}
	var text strings.Builder
	for payload, err := range t.cfg.Model.Stream(ctx, p) {
		if err != nil {
			return said, cmp.Or(context.Cause(ctx), err)
		}
		switch p := payload.(type) {
		case signal.TextDelta:
			err = t.say(ctx, p, &text)
		case signal.Thinking:
			p.AgentID = t.cfg.ID
			err = t.emit(ctx, p)
		case signal.TokenUsage:
			p.AgentID = t.cfg.ID
			err = t.emit(ctx, p)
		case signal.ToolCall:
			if len(said.Calls) < maxCalls {
				said.Calls = append(said.Calls, tool.Call{ID: t.ids.claim(p.CallID), Name: p.ToolName, Input: p.Input})
			}
		case signal.Other:
			said.Own = append(said.Own, p)
		}
		if err != nil {
			return said, err
		}
	}
	said.Text = strings.TrimRightFunc(text.String(), unicode.IsSpace)
	return said, context.Cause(ctx)
}

// say yields the next piece of an answer. An answer begins without white space, and one that follows another in the
// turn on a line of its own: whoever speaks them would run them together.
func (t *loop) say(ctx context.Context, d signal.TextDelta, text *strings.Builder) error {
	if text.Len() == 0 {
		d.Content = strings.TrimLeftFunc(d.Content, unicode.IsSpace)
	}
	if d.Content == "" {
		return nil
	}
	first := text.Len() == 0
	text.WriteString(d.Content)
	if first && t.gap {
		d.Content = "\n" + d.Content
	}
	end, _ := utf8.DecodeLastRuneInString(d.Content)
	t.gap = !unicode.IsSpace(end)
	d.AgentID, d.Index = t.cfg.ID, t.index
	t.index++
	return t.emit(ctx, d)
}

// enter tells that the agent goes into another state.
func (t *loop) enter(ctx context.Context, to signal.AgentState, reason string) error {
	from := t.state
	t.state = to
	return t.emit(ctx, signal.AgentStateChange{AgentID: t.cfg.ID, From: from, To: to, Reason: reason})
}

// emit yields one payload, unless ctx is done: then it returns why. After errLeft there is nothing more to yield.
func (t *loop) emit(ctx context.Context, p signal.Payload) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !t.yield(p, nil) {
		return errLeft
	}
	return nil
}
