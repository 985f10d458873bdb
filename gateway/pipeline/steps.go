package pipeline

import (
	"encoding/json"
	"errors"
	"strings"

	"vela/protocol/signal"
)

// steps are what a performance does, in the form that the stage reads. A string that begins with "signal." stands for a
// value of the signal.
type steps struct {
	ready    []json.RawMessage // as they are, where nothing stands for a value
	template []any             // otherwise
}

// newSteps puts the steps of a choreography into their form: params lie beside the other fields, a step without an entity
// has that of the choreography, and a delay is there only if there is something to wait for.
func newSteps(k Choreography) (steps, error) {
	var s steps
	dynamic := false
	for _, text := range k.Steps {
		var step map[string]any
		if err := json.Unmarshal(text, &step); err != nil || step == nil {
			return s, errors.New("a step is an object")
		}
		step = flat(step, k.Entity)
		dynamic = dynamic || refers(step)
		s.template = append(s.template, step)
	}
	if dynamic {
		return s, nil
	}
	for _, step := range s.template {
		text, err := json.Marshal(step)
		if err != nil {
			return s, err
		}
		s.ready = append(s.ready, text)
	}
	return steps{ready: s.ready}, nil
}

// flat puts one step into its form, and with it those that it holds.
func flat(step map[string]any, entity string) map[string]any {
	out := map[string]any{}
	for name, v := range step {
		out[name] = v
	}
	delete(out, "params")
	if params, ok := step["params"].(map[string]any); ok {
		for name, v := range params {
			out[name] = v
		}
	}
	if own, _ := out["entity"].(string); own == "" {
		delete(out, "entity")
		if entity != "" {
			out["entity"] = entity
		}
	}
	if delay, ok := out["delay"].(float64); ok && delay <= 0 {
		delete(out, "delay")
	}
	if inner, ok := out["steps"].([]any); ok {
		all := make([]any, 0, len(inner))
		for _, one := range inner {
			if step, ok := one.(map[string]any); ok {
				one = flat(step, entity)
			}
			all = append(all, one)
		}
		out["steps"] = all
	}
	return out
}

const reference = "signal."

func refers(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.HasPrefix(v, reference)
	case []any:
		for _, one := range v {
			if refers(one) {
				return true
			}
		}
	case map[string]any:
		for _, one := range v {
			if refers(one) {
				return true
			}
		}
	}
	return false
}

// of are the steps for one signal. A reference to nothing leaves its field out, and its place in a list null.
func (s *steps) of(about sample) []json.RawMessage {
	if s.template == nil {
		return s.ready
	}
	budget := signal.MaxSize // of all that is filled in, in bytes
	all := make([]json.RawMessage, 0, len(s.template))
	for _, step := range s.template {
		text, err := json.Marshal(filled(step, about, &budget))
		if err != nil {
			continue // what was read as JSON has a JSON
		}
		all = append(all, text)
	}
	return all
}

func filled(v any, about sample, budget *int) any {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, reference) {
			return v
		}
		found := parsePath(v).value(about)
		if found == nil || len(found) > *budget {
			return nil
		}
		*budget -= len(found)
		return found
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = filled(one, about, budget)
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for name, one := range v {
			f := filled(one, about, budget)
			if f != nil || one == nil {
				all[name] = f
			}
		}
		return all
	}
	return v
}
