package pipeline

import "encoding/json"

// Command is what comes out of the pipeline: a [Dispatch], [Interrupt], [Assignment], [Started] or [Stopped].
type Command interface {
	// Command is its name on the wire, such as "dispatch".
	Command() string
}

// Dispatch begins a performance of a choreography.
type Dispatch struct {
	Performance   uint64            `json:"performance"` // counts from 1 in each run
	Choreography  string            `json:"choreography"`
	Type          string            `json:"type"` // the signal's, or "__f:ID" for a choreography behind filters
	SignalID      string            `json:"signalId"`
	SignalType    string            `json:"signalType"`
	CorrelationID string            `json:"correlationId,omitempty"`
	Payload       json.RawMessage   `json:"payload"` // as the filters have left it
	Steps         []json.RawMessage `json:"steps,omitempty"`
	To            []Target          `json:"to,omitempty"` // where wires lead on from the choreography
}

// Target is where a wire leads from a choreography.
type Target struct {
	Zone    Zone         `json:"zone"`
	ID      string       `json:"id"`
	Mapping *WireMapping `json:"mapping,omitempty"`
}

// Interrupt ends performances that still run.
type Interrupt struct {
	CorrelationID string   `json:"correlationId"`
	Performances  []uint64 `json:"performances"`
}

// Assignment gives a property of an entity a value, at once or, with a Change, little by little.
type Assignment struct {
	Binding  string  `json:"binding"`
	Entity   string  `json:"entity"`
	Property string  `json:"property"`
	Value    any     `json:"value"`            // a number, string, bool or [Coordinate]
	Append   bool    `json:"append,omitempty"` // of speech: to what stands in the bubble
	Change   *Change `json:"transition,omitempty"`
}

// Change is how a value gets from one number to another. An Assignment of the end value follows when it is over.
type Change struct {
	From       float64 `json:"from"`
	DurationMs float64 `json:"durationMs"`
	Easing     string  `json:"easing"`
}

// Started begins a run.
type Started struct{}

// Stopped ends a run: speech, performances and transitions end, and the entities are again what they were before.
type Stopped struct {
	Entities []State `json:"entities"`
}

// State is what a run may change of an entity.
type State struct {
	ID       string  `json:"id"`
	X        float64 `json:"x"`
	Y        float64 `json:"y"`
	Scale    float64 `json:"scale"`
	Rotation float64 `json:"rotation"`
	Opacity  float64 `json:"opacity"`
	Visible  bool    `json:"visible"`
}

// Command implements [Command].
func (Dispatch) Command() string   { return "dispatch" }
func (Interrupt) Command() string  { return "interrupt" }
func (Assignment) Command() string { return "assignment" }
func (Started) Command() string    { return "started" }
func (Stopped) Command() string    { return "stopped" }
