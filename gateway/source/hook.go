package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"vela/protocol/signal"
)

// hookSource is the source of the signals of Claude Code's hooks, and hookAgent the agent in them.
const (
	hookSource = "adapter:tap"
	hookAgent  = "claude"
)

// hook is the input of a hook, as far as we read it (https://docs.anthropic.com/en/docs/claude-code/hooks; recorded from
// Claude Code 2.1.329).
type hook struct {
	Event     string          `json:"hook_event_name"`
	SessionID string          `json:"session_id"`
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
	Response  json.RawMessage `json:"tool_response"`
	Error     string          `json:"error"`
	AgentID   string          `json:"agent_id"`
	AgentType string          `json:"agent_type"`
}

// UnknownHook is an event of Claude Code's that is no signal.
type UnknownHook string

func (u UnknownHook) Error() string {
	return fmt.Sprintf("source: the hook event %.64q makes no signal", string(u))
}

// ParseHook makes a signal of the JSON that Claude Code gives to a hook. Its session is the correlation id; a call and
// its result share their call id, by which they are to be put in order: hooks may arrive late. The error is an
// [UnknownHook], or says that this is no hook's JSON.
func (s Stamp) ParseHook(body []byte) (signal.Raw, error) {
	if len(body) > signal.MaxSize {
		return signal.Raw{}, fmt.Errorf("source: a hook of more than %d bytes", signal.MaxSize)
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\ufffd"))
	}
	var h hook
	if err := json.Unmarshal(body, &h); err != nil {
		return signal.Raw{}, fmt.Errorf("source: read hook: %w", err)
	}
	p := h.payload()
	if p == nil {
		return signal.Raw{}, UnknownHook(h.Event)
	}
	id := s.NewID
	s.NewID = func() string { return "tap-" + id() }
	r := s.seal(hookSource, h.SessionID, nil, p)
	if h.Event == "PostToolUseFailure" {
		r.Metadata = h.failedCall()
	}
	return r, nil
}

func (h hook) payload() signal.Payload {
	switch h.Event {
	case "PreToolUse":
		return signal.ToolCall{ToolName: h.tool(), AgentID: hookAgent, CallID: h.ToolUseID, Input: objectIn("input", h.Input)}
	case "PostToolUse":
		return signal.ToolResult{ToolName: h.tool(), AgentID: hookAgent, CallID: h.ToolUseID, Success: true, Output: h.output()}
	case "PostToolUseFailure":
		return signal.Error{AgentID: hookAgent, Message: or(h.Error, "Tool use failed"), Severity: signal.SeverityError, Code: h.ToolName}
	case "SubagentStart":
		return signal.TaskDispatch{TaskID: or(h.AgentID, "unknown"), From: hookAgent, To: or(h.AgentType, "subagent")}
	case "SubagentStop":
		return signal.Completion{TaskID: or(h.AgentID, "unknown"), AgentID: h.AgentType, Success: true}
	case "Stop":
		return signal.AgentStateChange{AgentID: hookAgent, From: signal.AgentActing, To: signal.AgentDone}
	case "SessionStart":
		return signal.AgentStateChange{AgentID: hookAgent, From: signal.AgentIdle, To: signal.AgentThinking}
	}
	return nil
}

func (h hook) tool() string { return or(h.ToolName, "unknown") }

// output wraps what the tool returned, unless that is nothing to JavaScript.
func (h hook) output() json.RawMessage {
	switch string(h.Response) {
	case "", "null", "false", "0", `""`:
		return nil
	}
	wrapped, _ := json.Marshal(map[string]json.RawMessage{"response": h.Response}) // it is part of a JSON text
	return wrapped
}

// failedCall ties an error to the call that failed, for which its payload has no place.
func (h hook) failedCall() json.RawMessage {
	about, _ := json.Marshal(map[string]string{"toolName": h.tool(), "callId": h.ToolUseID}) // strings always have a JSON
	return about
}

// objectIn is a JSON object: the value itself, or an object with it under a name.
func objectIn(name string, v json.RawMessage) json.RawMessage {
	if len(v) == 0 || string(v) == "null" || v[0] == '{' {
		if string(v) == "null" {
			return nil
		}
		return v
	}
	wrapped, _ := json.Marshal(map[string]json.RawMessage{name: v}) // it is part of a JSON text
	return wrapped
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
