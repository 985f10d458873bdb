package session

import (
	"encoding/json"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
)

// The bounds of what is shown and kept of one tool call.
const (
	maxToolShown = 96 << 10 // bytes of its input, or of its output, that peers are shown: beyond that they are shown none
	maxToolKept  = 16 << 10 // bytes of each that stay in the conversation
	maxToolsKept = 64       // calls of one answer that do, the last ones
)

// call is the agent calling a tool.
func (s *Session) call(p signal.ToolCall) {
	a := s.answer
	s.disown(p.CallID)
	a.tools = called(a.tools, turn.ToolUse{CallID: p.CallID, Name: p.ToolName, Input: p.Input, Round: a.rounds, After: a.text.Len()})
	s.traceCall(p.CallID, p.ToolName)
	if a.voice != nil {
		a.voice.pause()
		s.play()
	}
	s.emit2(protocol.ToolCall{CallID: p.CallID, Name: p.ToolName, Input: object(atMost(p.Input, maxToolShown))})
	s.begun(p)
}

// result is what a tool returned.
func (s *Session) result(p signal.ToolResult) {
	returned(s.answer.tools, p.CallID, p.Success, p.Output)
	s.trace.result(s.now, p.CallID, p.Success)
	s.settle(turn.Answer{}, func(o open) bool { return o.CallID == p.CallID && p.CallID != "" }) // nobody waits for it any more
	s.emit2(protocol.ToolResult{CallID: p.CallID, Name: p.ToolName, Success: p.Success, Output: atMost(p.Output, maxToolShown)})
	s.ended(p)
}

// called is the calls of an answer with one more, as far as they stay in the conversation.
func called(tools []turn.ToolUse, u turn.ToolUse) []turn.ToolUse {
	u.Input = object(atMost(u.Input, maxToolKept))
	tools = append(tools, u)
	return tools[max(0, len(tools)-maxToolsKept):]
}

// returned puts a result to its call.
func returned(tools []turn.ToolUse, callID string, success bool, output json.RawMessage) {
	for i := range tools {
		if u := &tools[i]; u.CallID == callID && u.Output == nil {
			u.Output, u.Success = atMost(output, maxToolKept), success
		}
	}
}

// atMost is what a tool takes or gives, unless it is too long: half of it would be no JSON.
func atMost(body json.RawMessage, size int) json.RawMessage {
	if len(body) > size {
		return nil
	}
	return body
}

// object is a tool's input as the contract wants it: always there.
func object(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}
