package pipeline

import (
	"encoding/json"
	"slices"
)

// Zone is a part of the canvas that a wire leaves or reaches.
type Zone string

// The zones. A signal's id is that of its source, a type's that of the signal type; a shader's is "SHADER:UNIFORM", a
// sketch's "p5:SKETCH:PARAM".
const (
	ZoneSignal       Zone = "signal"
	ZoneSignalType   Zone = "signal-type"
	ZoneChoreography Zone = "choreographer"
	ZoneTheme        Zone = "theme"
	ZoneShader       Zone = "shader"
	ZoneSketch       Zone = "p5"
)

// Config is what wiring.json says; wiring.schema.json says what it may.
type Config struct {
	Wires          []Wire                `json:"wires,omitempty"`
	Choreographies []Choreography        `json:"choreographies,omitempty"`
	Bindings       []Binding             `json:"bindings,omitempty"`
	Entities       []Entity              `json:"entities,omitempty"`
	Positions      map[string]Coordinate `json:"positions,omitempty"` // named places
}

// Wire lets signals pass from one zone to another: from a source to a type, from a type to a choreography, or from a
// choreography to what draws.
type Wire struct {
	ID       string          `json:"id"`
	FromZone Zone            `json:"fromZone"`
	FromID   string          `json:"fromId"`
	ToZone   Zone            `json:"toZone"`
	ToID     string          `json:"toId"`
	Mapping  *WireMapping    `json:"mapping,omitempty"` // for what draws
	Filters  []FilterSetting `json:"filters,omitempty"` // on the way from a type to a choreography only
}

// WireMapping tells what draws how to use a value. It is handed on as it is.
type WireMapping struct {
	Fn   string            `json:"fn"`
	Args []json.RawMessage `json:"args,omitempty"`
}

// FilterSetting is one filter of a chain. Which fields count depends on the type.
type FilterSetting struct {
	Type       string    `json:"type"`       // throttle, sample, delta, when or map
	IntervalMs float64   `json:"intervalMs"` // throttle
	Every      int       `json:"every"`      // sample
	Path       string    `json:"path"`       // delta
	Threshold  float64   `json:"threshold"`  // delta
	Clause     Clause    `json:"clause"`     // when
	Mappings   []Mapping `json:"mappings"`   // map
}

// MarshalJSON writes the fields that count.
func (f FilterSetting) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"type": f.Type}
	switch f.Type {
	case "throttle":
		fields["intervalMs"] = f.IntervalMs
	case "sample":
		fields["every"] = f.Every
	case "delta":
		fields["path"], fields["threshold"] = f.Path, f.Threshold
	case "when":
		fields["clause"] = f.Clause
	case "map":
		fields["mappings"] = f.Mappings
	}
	return json.Marshal(fields)
}

// Mapping copies the value at one path of a payload to another.
type Mapping struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Choreography is what is performed when signals of certain types arrive: those that wires lead to it, or, where no
// wire does, that of On.
type Choreography struct {
	ID         string            `json:"id"`
	On         string            `json:"on"`
	When       Clause            `json:"when,omitzero"`
	Interrupts bool              `json:"interrupts,omitempty"` // what runs for the same correlation id
	Entity     string            `json:"defaultTargetEntityId,omitempty"`
	Steps      []json.RawMessage `json:"steps,omitempty"`
}

// Binding sets a property of an entity whenever its choreography is reached.
type Binding struct {
	ID           string      `json:"id"`
	Entity       string      `json:"targetEntityId"` // a semantic id: of every placed entity that has it
	Property     string      `json:"property"`
	Choreography string      `json:"sourceChoreographyId"`
	SourceType   string      `json:"sourceType"`
	SourceField  string      `json:"sourceField,omitempty"`
	Mapping      *Scale      `json:"mapping,omitempty"`
	Action       *Action     `json:"action,omitempty"`
	Transition   *Transition `json:"transition,omitempty"`
}

// Scale maps numbers of one range to another.
type Scale struct {
	Fn     string     `json:"fn"` // lerp, clamp, step or smoothstep; any other counts as lerp
	Input  [2]float64 `json:"inputRange"`
	Output [2]float64 `json:"outputRange"`
}

// Action is what an entity does, for properties that are no numbers.
type Action struct {
	Route              string          `json:"route,omitempty"`
	Waypoint           string          `json:"waypoint,omitempty"` // a named position
	AnimationDuring    string          `json:"animationDuring,omitempty"`
	AnimationOnArrival string          `json:"animationOnArrival,omitempty"`
	Duration           json.RawMessage `json:"duration,omitempty"` // ms, or "auto"
}

// Transition is a change that takes its time.
type Transition struct {
	Target        float64 `json:"targetValue"`
	DurationMs    float64 `json:"durationMs"`
	Easing        string  `json:"easing,omitempty"` // linear, easeIn, easeOut, easeInOut or arc; any other counts as linear
	Revert        bool    `json:"revert,omitempty"`
	RevertDelayMs float64 `json:"revertDelayMs,omitempty"`
}

// Entity is something placed on the stage, with the values that it starts from. What is left out is 0, but scale and
// opacity are 1, and it is visible. An entity that only bindings name counts as placed once, under that name.
type Entity struct {
	ID       string   `json:"id"`
	Semantic string   `json:"semanticId,omitempty"` // what bindings call it; the id if empty
	X        float64  `json:"x"`
	Y        float64  `json:"y"`
	Scale    *float64 `json:"scale,omitempty"`
	Rotation float64  `json:"rotation"`
	Opacity  *float64 `json:"opacity,omitempty"`
	Visible  *bool    `json:"visible,omitempty"`
}

// Coordinate is a place on the stage, in its own units.
type Coordinate struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Types are the signal types that reach a choreography: those of the wires to it, or its own On where there is none.
func (c Config) Types(choreography string) []string {
	var types []string
	for _, w := range c.Wires {
		if w.FromZone == ZoneSignalType && w.ToZone == ZoneChoreography && w.ToID == choreography && !slices.Contains(types, w.FromID) {
			types = append(types, w.FromID)
		}
	}
	if len(types) > 0 {
		return types
	}
	for _, k := range c.Choreographies {
		if k.ID == choreography {
			return []string{k.On}
		}
	}
	return nil
}
