package session

import (
	"encoding/json"
	"slices"
	"time"

	"vela/protocol"
	"vela/turn"
)

// maxHistory bounds what a session remembers, in messages: fifty exchanges. An engine cuts further, to what its model takes.
const maxHistory = 100

// remember makes an exchange part of the conversation, as far as it was heard. Requests hold the old slice: it is never
// written to. A mocked one is no part of it.
func (s *Session) remember(a *answer, heard string) {
	if a.mocked {
		return
	}
	s.rememberText(a.times.asked, a.question, a.message(heard))
	s.save()
}

// message is the answer as the conversation has it, as far as it was heard.
func (a *answer) message(heard string) turn.Message {
	m := turn.Message{Text: heard, Tools: a.tools, Interrupted: a.stopped}
	if text := a.text.String(); text != heard {
		m.Written = text
	}
	return m
}

// correct changes what was heard of an answer that has just been cut, as the client has learnt it since.
func (s *Session) correct(c *cut) {
	for i := len(s.history) - 2; i >= 0; i-- {
		if s.history[i].Role != turn.User || !s.history[i].At.Equal(c.times.asked) || s.history[i+1].Role != turn.Assistant {
			continue
		}
		said := c.message(c.heardText())
		said.Role, said.At = turn.Assistant, s.history[i+1].At
		said.Tools = s.history[i+1].Tools
		s.history = slices.Clone(s.history)
		s.history[i+1] = said
		s.save()
		return
	}
}

func (s *Session) rememberText(asked time.Time, question string, said turn.Message) {
	h := append(s.history[:len(s.history):len(s.history)], turn.Message{Role: turn.User, Text: question, At: asked})
	if said.Text != "" || said.Written != "" || len(said.Tools) > 0 {
		said.Role, said.At = turn.Assistant, s.now
		h = append(h, said)
	}
	h = h[max(0, len(h)-maxHistory):]
	if h[0].Role == turn.Assistant {
		h = h[1:] // what it answered has been cut off
	}
	s.history = h
	trimTools(h)
}

// maxToolsText bounds, in bytes, what a conversation remembers of tool calls beside their names.
const maxToolsText = 256 << 10

// trimTools forgets what the oldest tool calls took and gave. Requests hold what was there: it is replaced, not changed.
func trimTools(h []turn.Message) {
	room := maxToolsText
	for i := len(h) - 1; i >= 0; i-- {
		for k := len(h[i].Tools) - 1; k >= 0; k-- {
			if room -= len(h[i].Tools[k].Input) + len(h[i].Tools[k].Output); room < 0 {
				h[i].Tools = bare(h[i].Tools, k)
				break
			}
		}
	}
}

// bare is the calls with nothing but their names up to the one at last.
func bare(tools []turn.ToolUse, last int) []turn.ToolUse {
	tools = slices.Clone(tools)
	for i := range tools[:last+1] {
		tools[i].Input, tools[i].Output = json.RawMessage("{}"), nil
	}
	return tools
}

// conversation is the history as a client sees it.
func (s *Session) conversation() protocol.History {
	items := make([]protocol.HistoryItem, 0, len(s.history))
	for _, m := range s.history {
		item := protocol.HistoryItem{Role: string(m.Role), Text: m.Text, At: m.At.UnixMilli()}
		if m.Written != "" {
			item.Text, item.HeardText = m.Written, &m.Text
		}
		items = append(items, item)
	}
	return protocol.History{Items: items}
}

// clearHistory begins a new conversation.
func (s *Session) clearHistory(p Peer) error {
	if s.inFlight() {
		return s.refuseInFlight()
	}
	s.history, s.standing = nil, nil
	s.save()
	s.tell(p, s.conversation())
	return nil
}
