package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Set is a Caller over tools that are always there. Make it with [NewSet].
type Set struct {
	tools       map[string]Tool
	definitions []Definition
}

var wellFormed = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewSet makes a Set that lists its tools in the given order. It returns an error for a name that is ill-formed or
// taken, and for parameters that are no JSON object.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: map[string]Tool{}}
	for _, t := range tools {
		d := t.Definition()
		if !wellFormed.MatchString(d.Name) {
			return nil, fmt.Errorf("tool: %q is no name for a tool: it takes 1 to 64 letters, digits, _ and -", d.Name)
		}
		if s.tools[d.Name] != nil {
			return nil, fmt.Errorf("tool: there are two tools with the name %s", d.Name)
		}
		if len(d.Parameters) == 0 || !isObject(d.Parameters) {
			return nil, fmt.Errorf("tool: the parameters of %s are no JSON object", d.Name)
		}
		s.tools[d.Name] = t
		s.definitions = append(s.definitions, d)
	}
	return s, nil
}

// Definitions implements [Caller].
func (s *Set) Definitions() []Definition { return slices.Clone(s.definitions) }

// Call implements [Caller]. An empty input counts as an empty object.
func (s *Set) Call(ctx context.Context, c Call) (Result, error) {
	t := s.tools[c.Name]
	if t == nil {
		return Result{}, unknown(c.Name)
	}
	input, err := object(c)
	if err != nil {
		return Result{}, err
	}
	return t.Run(ctx, input)
}

// Join makes one Caller of several. Where two have a tool of the same name, the one of the earlier caller counts.
func Join(callers ...Caller) Caller { return joined(callers) }

type joined []Caller

func (j joined) Definitions() []Definition {
	var all []Definition
	for _, c := range j {
		for _, d := range c.Definitions() {
			if _, taken := find(all, d.Name); !taken {
				all = append(all, d)
			}
		}
	}
	return all
}

func (j joined) Call(ctx context.Context, c Call) (Result, error) {
	for _, caller := range j {
		if _, has := find(caller.Definitions(), c.Name); has {
			return caller.Call(ctx, c)
		}
	}
	return Result{}, unknown(c.Name)
}

func find(all []Definition, name string) (Definition, bool) {
	i := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return all[i], true
}

func unknown(name string) error {
	return fmt.Errorf("There is no tool with the name %s. Use only the tools that you were told of.", quoted(name, 64))
}

// object returns a call's input, if it is a JSON object.
func object(c Call) (json.RawMessage, error) {
	if blank(c.Input) {
		return json.RawMessage("{}"), nil
	}
	if !isObject(c.Input) {
		return nil, fmt.Errorf("The input of %s is not a JSON object. Call it again with one.", short(c.Name, 64))
	}
	return c.Input, nil
}
