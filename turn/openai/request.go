package openai

import (
	"encoding/json"

	"vela/turn"
	"vela/turn/agent"
)

// The body of a request, as far as we use it.
type (
	request struct {
		Model         string    `json:"model"`
		Messages      []message `json:"messages"`
		Tools         []offer   `json:"tools,omitempty"`
		Temperature   *float64  `json:"temperature,omitempty"`
		MaxTokens     int       `json:"max_tokens,omitempty"`
		NewLimit      int       `json:"max_completion_tokens,omitempty"`
		Stream        bool      `json:"stream"`
		StreamOptions *options  `json:"stream_options,omitempty"`
	}

	options struct {
		IncludeUsage bool `json:"include_usage"`
	}

	message struct {
		Role       string  `json:"role"`
		Content    *string `json:"content,omitempty"`
		ToolCalls  []call  `json:"tool_calls,omitempty"`
		ToolCallID string  `json:"tool_call_id,omitempty"`
		reasoning
	}

	call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}

	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}

	offer struct {
		Type     string      `json:"type"`
		Function description `json:"function"`
	}

	description struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
)

// request puts a prompt into the vendor's words.
func (m *Model) request(p agent.Prompt, name string) request {
	r := request{Model: name, Temperature: m.cfg.Temperature, Stream: true}
	if m.newLimit.Load() {
		r.NewLimit = m.cfg.MaxTokens
	} else {
		r.MaxTokens = m.cfg.MaxTokens
	}
	if !m.noOptions.Load() {
		r.StreamOptions = &options{IncludeUsage: true}
	}
	if p.System != "" {
		r.Messages = append(r.Messages, text("system", p.System))
	}
	for _, msg := range p.Messages {
		r.Messages = append(r.Messages, messages(msg)...)
	}
	for _, d := range p.Tools {
		r.Tools = append(r.Tools, offer{Type: "function", Function: description{d.Name, d.Description, d.Parameters}})
	}
	return r
}

func text(role, content string) message { return message{Role: role, Content: &content} }

// messages are what one message of a prompt becomes: each result is one by itself.
func messages(msg agent.Message) []message {
	if msg.Role == turn.Assistant {
		return assistant(msg)
	}
	var all []message
	for _, r := range msg.Results {
		result := text("tool", r.Content)
		result.ToolCallID = r.CallID
		all = append(all, result)
	}
	if msg.Text != "" {
		all = append(all, text("user", msg.Text))
	}
	return all
}

// assistant leaves out what is empty: some servers take neither an empty content nor an empty list of calls.
func assistant(msg agent.Message) []message {
	if msg.Text == "" && len(msg.Calls) == 0 {
		return nil
	}
	a := message{Role: "assistant", reasoning: recall(msg.Own)}
	if msg.Text != "" {
		a.Content = &msg.Text
	}
	for _, c := range msg.Calls {
		a.ToolCalls = append(a.ToolCalls, call{ID: c.ID, Type: "function", Function: function{Name: c.Name, Arguments: string(c.Input)}})
	}
	return []message{a}
}
