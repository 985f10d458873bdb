package main

import (
	"fmt"

	"vela/gateway/client"
	"vela/protocol"
	"vela/protocol/ganglia"
)

// mode is what the last thing written to the output was.
type mode int

const (
	fresh    mode = iota // nothing: a new line
	prompted             // the prompt
	thinking
	answering
)

// connection says what became of the connection.
func (c *chat) connection(s client.Status) {
	switch s.Phase {
	case client.Away:
		c.note(fmt.Sprintf("%v; trying again in %.1f s", s.Err, s.Wait.Seconds()))
	case client.Back:
		c.note("connected again")
	case client.Missed:
		c.note("connected again, but some of what happened meanwhile is missing")
	}
}

// show writes an event, and lets it be heard.
func (c *chat) show(m protocol.Message) {
	c.speaker.hear(m)
	switch m := m.(type) {
	case protocol.SessionReady:
		c.ready(m)
	case protocol.SessionState:
		c.busy = m.Value != protocol.Idle
		if !c.busy {
			c.endLine()
			c.prompt()
		}
	case protocol.TranscriptFinal:
		c.pending, c.busy = "", true
	case protocol.ThinkingDelta:
		c.write(thinking, m.Text)
	case protocol.ResponseTextDelta:
		c.write(answering, m.Text)
	case protocol.ToolCall:
		c.called(m)
	case protocol.ToolResult:
		c.returned(m)
	case ganglia.Artifact:
		c.artifact(m)
	case protocol.ApprovalRequest:
		c.asks(m)
	case protocol.ResponseCompleted:
		c.withdraw(all)
	case protocol.ResponseCancelled:
		c.withdraw(all)
		if m.Reason != protocol.CancelError {
			c.write(c.shown, " …")
		}
	case protocol.History:
		c.history(m)
	case protocol.Error:
		c.failed, c.asked, c.pending = true, false, ""
		c.note(m.Message)
	}
}

func (c *chat) ready(m protocol.SessionReady) {
	switch {
	case m.Terms == nil:
	case m.Resumed:
		c.back, c.known = true, m.LastSeq
		c.asked = false // its answer, if it came, was lost with the connection
	case c.typed:
		c.note(fmt.Sprintf("talking to %s. %s", who(m), chatHelp))
	}
}

func who(m protocol.SessionReady) string {
	if m.Turns == "deterministic" || m.Agent == "" {
		return "the fixed turns"
	}
	return m.Agent
}

func (c *chat) history(h protocol.History) {
	c.endLine()
	c.asked = false
	if len(h.Items) == 0 {
		c.note("a new conversation")
	}
	for _, item := range h.Items {
		fmt.Fprintf(c.out, "%s: %s\n", item.Role, clean(item.Text))
	}
	c.prompt()
}

// write writes a piece of what is being said or thought; what changes begins a new line.
func (c *chat) write(as mode, text string) {
	if as != c.shown {
		c.endLine()
	}
	c.shown = as
	text = clean(text)
	if as == thinking {
		text = c.dimmed(text)
	}
	fmt.Fprint(c.out, text)
}

// aside is a line of its own beside the answer.
func (c *chat) aside(text string) {
	c.endLine()
	fmt.Fprintln(c.out, c.dimmed(clean(text)))
}

func (c *chat) dimmed(text string) string {
	if !c.colour {
		return text
	}
	return "\x1b[2m" + text + "\x1b[22m"
}

// note is a line about the conversation, which is no part of it.
func (c *chat) note(text string) {
	c.endLine()
	fmt.Fprintf(c.err, "— %s\n", clean(text))
}

func (c *chat) endLine() {
	if c.shown != fresh {
		fmt.Fprintln(c.out)
	}
	c.shown = fresh
}

func (c *chat) prompt() {
	if c.typed && !c.eof && c.shown != prompted {
		fmt.Fprint(c.out, "> ")
		c.shown = prompted
	}
}
