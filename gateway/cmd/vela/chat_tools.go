package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
)

// What an agent does beside talking, in a terminal: its tool calls, what came of them, and its questions.

// The bounds of what is shown of one tool call.
const (
	maxShownInput = 120 // runes
	maxShownLines = 60
)

// called shows a tool call with what it is about.
func (c *chat) called(m protocol.ToolCall) {
	what := ganglia.StatusOf(signal.ToolCall{ToolName: m.Name, Input: m.Input}, 0).Detail
	if what == "" && string(m.Input) != "{}" {
		what = string(m.Input)
	}
	if runes := []rune(what); len(runes) > maxShownInput {
		what = string(runes[:maxShownInput]) + "…"
	}
	c.aside(strings.TrimSpace("["+m.Name+" "+what) + "]")
}

// returned takes back the question that the tool had been waiting for, and says if the tool failed.
func (c *chat) returned(m protocol.ToolResult) {
	c.withdraw(func(q protocol.ApprovalRequest) bool { return q.CallID == m.CallID })
	if !m.Success {
		c.aside(fmt.Sprintf("[%s failed]", m.Name))
	}
}

// artifact shows what came of a tool: a change in full, of anything else how much it is.
func (c *chat) artifact(a ganglia.Artifact) {
	switch a.ArtifactType {
	case ganglia.Diff:
		c.diff(a.Diff)
	case ganglia.SearchResults:
		c.aside(fmt.Sprintf("[%s: %d found]", a.Title, len(a.Results)))
	case ganglia.Error:
		c.aside(fmt.Sprintf("[%s: %s]", a.Title, a.Message))
	default:
		c.aside(fmt.Sprintf("[%s: %d lines]", a.Title, len(lines(a.Content))))
	}
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// diff shows a change, its lines coloured by their sign.
func (c *chat) diff(text string) {
	c.endLine()
	all := lines(text)
	for _, l := range all[:min(len(all), maxShownLines)] {
		fmt.Fprintln(c.out, c.coloured(clean(l)))
	}
	if more := len(all) - maxShownLines; more > 0 {
		c.aside(fmt.Sprintf("[%d more lines]", more))
	}
}

func (c *chat) coloured(line string) string {
	if !c.colour || line == "" {
		return line
	}
	switch line[0] {
	case '+':
		return "\x1b[32m" + line + "\x1b[39m"
	case '-':
		return "\x1b[31m" + line + "\x1b[39m"
	case '@':
		return c.dimmed(line)
	}
	return line
}

// clean leaves out what would do something to the terminal instead of standing on it: whoever writes an answer or a
// file is no operator of this terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// The answers to a question of the agent's, by what is typed.
var answers = map[string]protocol.ApprovalAnswer{
	"y": {Allow: true}, "yes": {Allow: true}, "n": {}, "no": {},
	"always": {Allow: true, Remember: true}, "never": {Remember: true},
}

const answersHelp = "yes or no, or for this whole conversation always or never"

// asks puts a question of the agent's to whoever types.
func (c *chat) asks(q protocol.ApprovalRequest) {
	c.questions = append(c.questions, q)
	if len(c.questions) == 1 {
		c.putQuestion()
	}
}

func (c *chat) putQuestion() {
	q := c.questions[0]
	risk := ""
	if q.Risk == "high" {
		risk = ", which may destroy something"
	}
	c.note(fmt.Sprintf("may it? %s (%s%s). Type %s", q.Summary, q.Name, risk, answersHelp))
	c.prompt()
}

// answered sends what was typed as the answer to the first question. Nothing but the words for it is one.
func (c *chat) answered(ctx context.Context, line string) {
	a, ok := answers[strings.ToLower(line)]
	if !ok {
		c.note("type " + answersHelp + "; Ctrl-C stops the answer")
		c.prompt()
		return
	}
	a.ApprovalID = c.questions[0].ApprovalID
	if c.send(ctx, a) {
		c.next(1)
	}
}

// withdraw takes back the questions that nobody waits for any more.
func (c *chat) withdraw(which func(protocol.ApprovalRequest) bool) {
	if len(c.questions) == 0 {
		return
	}
	shown := c.questions[0].ApprovalID
	c.questions = slices.DeleteFunc(c.questions, which)
	if len(c.questions) == 0 || c.questions[0].ApprovalID != shown {
		c.note("that question is over")
		c.next(0)
	}
}

// next goes on after so many questions.
func (c *chat) next(answered int) {
	if c.questions = c.questions[answered:]; len(c.questions) > 0 {
		c.putQuestion()
	}
}

func all(protocol.ApprovalRequest) bool { return true }
