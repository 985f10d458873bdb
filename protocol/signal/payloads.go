package signal

import "encoding/json"

// What an agent does.
type (
	// TaskDispatch says that a task was given to an agent.
	TaskDispatch struct {
		TaskID      string `json:"taskId"` // ties it to the [Completion] of the task
		From        string `json:"from"`   // who gives it, by name
		To          string `json:"to"`     // which agent gets it, by its id
		Description string `json:"description,omitempty"`
	}

	// ToolCall says that an agent calls a tool. CallID ties it to its [ToolResult].
	ToolCall struct {
		ToolName string          `json:"toolName"`
		AgentID  string          `json:"agentId"`
		CallID   string          `json:"callId,omitempty"`
		Input    json.RawMessage `json:"input,omitempty"` // a JSON object
	}

	// ToolResult says what a tool returned.
	ToolResult struct {
		ToolName string          `json:"toolName"`
		AgentID  string          `json:"agentId"`
		CallID   string          `json:"callId,omitempty"`
		Success  bool            `json:"success"`
		Output   json.RawMessage `json:"output,omitempty"` // a JSON object
	}

	// TokenUsage says what a request to a model took.
	TokenUsage struct {
		AgentID          string  `json:"agentId"`
		PromptTokens     int     `json:"promptTokens"` // with what of them a cache held
		CompletionTokens int     `json:"completionTokens"`
		Model            string  `json:"model,omitempty"`
		Cost             float64 `json:"cost,omitempty"` // US dollars
	}

	// AgentStateChange says that an agent went from one state to another.
	AgentStateChange struct {
		AgentID string     `json:"agentId"`
		From    AgentState `json:"from"`
		To      AgentState `json:"to"`
		Reason  string     `json:"reason,omitempty"`
	}

	// Error says that something went wrong.
	Error struct {
		AgentID  string   `json:"agentId,omitempty"`
		Code     string   `json:"code,omitempty"` // the source's own
		Message  string   `json:"message"`        // for people
		Severity Severity `json:"severity"`
	}

	// Completion says that a task is over.
	Completion struct {
		TaskID  string `json:"taskId"` // in a turn: the turn's id
		AgentID string `json:"agentId,omitempty"`
		Success bool   `json:"success"`
		Result  string `json:"result,omitempty"`
	}

	// TextDelta is the next piece of an agent's text.
	TextDelta struct {
		AgentID     string      `json:"agentId"`
		Content     string      `json:"content"`
		ContentType ContentType `json:"contentType,omitempty"` // empty counts as text
		Index       int         `json:"index,omitempty"`       // of the piece in its text, from 0
	}

	// Thinking is the next piece of an agent's reasoning, which is not part of its answer.
	Thinking struct {
		AgentID string `json:"agentId"`
		Content string `json:"content"`
	}
)

// What a person does on a stage, on its way back to the host.
type (
	// UserClick is a click on an entity.
	UserClick struct {
		Target   string `json:"target"` // the entity's id
		Position *Point `json:"position,omitempty"`
	}

	// UserMove is an entity dragged into a slot.
	UserMove struct {
		EntityID string `json:"entityId"`
		ToSlot   string `json:"toSlot"`
		ToZone   string `json:"toZone,omitempty"`
	}

	// UserZone is a zone drawn on the board.
	UserZone struct {
		Bounds Rect   `json:"bounds"`
		Intent string `json:"intent,omitempty"`
	}

	// UserCommand is an action chosen from an entity's menu.
	UserCommand struct {
		EntityID string          `json:"entityId"`
		Action   string          `json:"action"`
		Params   json.RawMessage `json:"params,omitempty"` // a JSON object
	}

	// UserPoint is a click on an empty spot.
	UserPoint struct {
		Position Point  `json:"position"`
		Zone     string `json:"zone,omitempty"`
	}
)

// Point is a place on the board, in the board's own units.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Rect is a zone of the board, in the board's own units.
type Rect struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	W float64 `json:"w"`
	H float64 `json:"h"`
}

// Other is the payload of a signal of any type that is not well known.
type Other struct {
	Name string          // the signal's type
	Body json.RawMessage // a JSON object
}

// MarshalJSON writes the body as it came.
func (o Other) MarshalJSON() ([]byte, error) {
	if len(o.Body) == 0 {
		return []byte("{}"), nil
	}
	return o.Body, nil
}

// AgentState is where an agent stands: idle, thinking, acting, waiting, then done or error.
type AgentState string

// The states of an agent.
const (
	AgentIdle     AgentState = "idle"
	AgentThinking AgentState = "thinking"
	AgentActing   AgentState = "acting"
	AgentWaiting  AgentState = "waiting"
	AgentDone     AgentState = "done"
	AgentError    AgentState = "error"
)

// Severity says how bad an [Error] is.
type Severity string

// The severities.
const (
	SeverityWarning  Severity = "warning"
	SeverityError    Severity = "error"
	SeverityCritical Severity = "critical"
)

// ContentType says what the text of a [TextDelta] is.
type ContentType string

// The content types.
const (
	ContentText     ContentType = "text"
	ContentCode     ContentType = "code"
	ContentMarkdown ContentType = "markdown"
)

// SignalType implements [Payload].
func (TaskDispatch) SignalType() string     { return "task_dispatch" }
func (ToolCall) SignalType() string         { return "tool_call" }
func (ToolResult) SignalType() string       { return "tool_result" }
func (TokenUsage) SignalType() string       { return "token_usage" }
func (AgentStateChange) SignalType() string { return "agent_state_change" }
func (Error) SignalType() string            { return "error" }
func (Completion) SignalType() string       { return "completion" }
func (TextDelta) SignalType() string        { return "text_delta" }
func (Thinking) SignalType() string         { return "thinking" }
func (UserClick) SignalType() string        { return "user.click" }
func (UserMove) SignalType() string         { return "user.move" }
func (UserZone) SignalType() string         { return "user.zone" }
func (UserCommand) SignalType() string      { return "user.command" }
func (UserPoint) SignalType() string        { return "user.point" }
func (o Other) SignalType() string          { return o.Name }
