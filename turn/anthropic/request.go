package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/stream"
	"vela/turn/tool"
)

// The body of a request, as far as we use it.
type (
	request struct {
		Model       string    `json:"model"`
		MaxTokens   int       `json:"max_tokens"`
		System      string    `json:"system,omitempty"`
		Messages    []message `json:"messages"`
		Tools       []offer   `json:"tools,omitempty"`
		ToolChoice  *choice   `json:"tool_choice,omitempty"`
		Temperature *float64  `json:"temperature,omitempty"`
		Thinking    *thinking `json:"thinking,omitempty"`
		Stream      bool      `json:"stream"`
	}

	message struct {
		Role    turn.Role `json:"role"`
		Content []any     `json:"content"` // textBlock, toolUse, toolResult, or a block of the model's own
	}

	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}

	toolUse struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}

	toolResult struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		Content   string `json:"content"`
		IsError   bool   `json:"is_error,omitempty"`
	}

	offer struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}

	choice struct {
		Type string `json:"type"`
	}

	thinking struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
	}
)

// request puts a prompt into the vendor's words.
func (m *Model) request(p agent.Prompt) request {
	r := request{Model: m.cfg.Model, MaxTokens: m.cfg.MaxTokens, System: p.System, Temperature: m.cfg.Temperature, Stream: true}
	if m.cfg.Thinking > 0 && mayThink(p.Messages) {
		r.Thinking = &thinking{"enabled", m.cfg.Thinking}
	}
	for _, msg := range p.Messages {
		r.add(msg.Role, blocks(msg))
	}
	for _, d := range p.Tools {
		schema := d.Parameters
		if len(schema) == 0 {
			schema = anyObject
		}
		r.Tools = append(r.Tools, offer{d.Name, d.Description, schema})
	}
	if len(r.Tools) == 0 {
		r.describe(p.Messages)
	}
	return r
}

// mayThink says whether the model may be asked to think. The API refuses that in the middle of a turn that the model has
// begun without a thought, or whose thought is lost.
func mayThink(messages []agent.Message) bool {
	last := len(messages) - 1
	if last < 1 || len(messages[last].Results) == 0 {
		return true
	}
	return slices.ContainsFunc(messages[last-1].Own, func(o signal.Other) bool { return o.Name == ownThinking })
}

// add appends a message; the API wants the two roles to take turns.
func (r *request) add(role turn.Role, content []any) {
	if len(content) == 0 {
		return
	}
	if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == role {
		r.Messages[last].Content = append(r.Messages[last].Content, content...)
		return
	}
	r.Messages = append(r.Messages, message{role, content})
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// describe names the tools that messages speak of, for a prompt that offers none: the API refuses calls of tools that
// are not defined. None of them may be called.
func (r *request) describe(messages []agent.Message) {
	for _, msg := range messages {
		for _, c := range msg.Calls {
			if !slices.ContainsFunc(r.Tools, func(o offer) bool { return o.Name == c.Name }) {
				r.Tools = append(r.Tools, offer{Name: c.Name, InputSchema: anyObject})
			}
		}
	}
	if len(r.Tools) > 0 {
		r.ToolChoice = &choice{"none"}
	}
}

// blocks are what one message of a prompt becomes. What the model wants back stands before everything else, and results
// before what the person says: the API insists on both. It takes no text of white space alone.
func blocks(msg agent.Message) []any {
	var all []any
	for _, o := range msg.Own {
		if o.Name == ownThinking {
			all = append(all, o.Body)
		}
	}
	for _, r := range msg.Results {
		all = append(all, toolResult{"tool_result", wireID(r.CallID), r.Content, r.Failed})
	}
	if strings.TrimSpace(msg.Text) != "" {
		all = append(all, textBlock{"text", msg.Text})
	}
	for _, c := range msg.Calls {
		all = append(all, use(c))
	}
	return all
}

func use(c tool.Call) toolUse {
	return toolUse{"tool_use", wireID(c.ID), c.Name, stream.Object(c.Input)}
}

// wireID makes another vendor's id of a call, in a conversation that has changed its model, into one that the API takes:
// letters, digits, _ and -.
func wireID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}
