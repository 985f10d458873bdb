package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"vela/protocol/signal"
)

// Clause says which signals are meant. Written in JSON it is an object, whose entries all have to hold, or a list of
// such objects, one of which has to hold:
//
//	{"signal.toolName": {"equals": "bash"}, "input.command": {"matches": "^rm "}}
//
// An entry is a path and its operators, which all have to hold: exists, equals, contains, matches, gt and lt. With not
// the operators inside must not hold, and its siblings do not count. The zero value means every signal.
type Clause struct {
	text json.RawMessage
	any  [][]entry // nil means every signal
}

type entry struct {
	path path
	test test
}

// test holds the operators for one value.
type test struct {
	not      *test
	exists   *bool
	equals   json.RawMessage // nil: any
	contains []byte          // nil: any
	matches  *regexp.Regexp
	gt, lt   *float64
}

// UnmarshalJSON reads a clause. Whether its expressions compile is found out by [Compile].
func (c *Clause) UnmarshalJSON(b []byte) error {
	c.text, c.any = bytes.Clone(b), nil
	return nil
}

// MarshalJSON writes the clause as it was read.
func (c Clause) MarshalJSON() ([]byte, error) {
	if len(c.text) == 0 {
		return []byte("null"), nil
	}
	return c.text, nil
}

// Holds says whether a clause means this signal.
func (c *Clause) Holds(r signal.Raw) bool { return c.holds(sample{r.Type, r.Payload}) }

// compile makes of the text what holds needs.
func (c *Clause) compile() error {
	text := bytes.TrimSpace(c.text)
	switch {
	case len(text) == 0 || string(text) == "null":
		return nil
	case text[0] == '{':
		group, err := compileEntries(text)
		c.any = [][]entry{group}
		return err
	case text[0] != '[':
		return errors.New("a clause is an object or a list of objects")
	}
	var groups []json.RawMessage
	if err := json.Unmarshal(text, &groups); err != nil {
		return err
	}
	c.any = nil
	for _, g := range groups {
		if len(g) == 0 || g[0] != '{' {
			return errors.New("a clause is an object or a list of objects")
		}
		group, err := compileEntries(g)
		if err != nil {
			return err
		}
		c.any = append(c.any, group)
	}
	return nil
}

func compileEntries(object json.RawMessage) ([]entry, error) {
	group := []entry{}
	for name, operators := range signal.Members(object) {
		t, err := compileTest(operators, 0)
		if err != nil {
			return nil, fmt.Errorf("%.128s: %w", name, err)
		}
		group = append(group, entry{parsePath(string(name)), t})
	}
	return group, nil
}

// maxNots bounds how deep one not may stand in another.
const maxNots = 16

func compileTest(operators json.RawMessage, depth int) (test, error) {
	var t test
	if operators[0] != '{' || depth > maxNots {
		return t, errors.New("operators are an object, such as {\"equals\": \"x\"}, with not at most 16 deep")
	}
	for name, v := range signal.Members(operators) {
		var err error
		switch string(name) {
		case "not":
			inner, e := compileTest(v, depth+1)
			t.not, err = &inner, e
		case "exists":
			err = read(v, &t.exists, "true or false")
		case "equals":
			t.equals = bytes.Clone(v)
		case "contains":
			var part *string
			if err = read(v, &part, "a string"); err == nil {
				t.contains = append([]byte{}, *part...)
			}
		case "matches":
			var pattern *string
			if err = read(v, &pattern, "a string"); err == nil {
				t.matches, err = regexp.Compile(*pattern)
			}
		case "gt":
			err = read(v, &t.gt, "a number")
		case "lt":
			err = read(v, &t.lt, "a number")
		default:
			err = errors.New("there is no such operator; there are not, exists, equals, contains, matches, gt and lt")
		}
		if err != nil {
			return t, fmt.Errorf("%.32s: %w", name, err)
		}
	}
	return t, nil
}

func read[T any](v json.RawMessage, into **T, kind string) error {
	if json.Unmarshal(v, into) != nil || *into == nil {
		return errors.New("has to be " + kind)
	}
	return nil
}

func (c *Clause) holds(s sample) bool {
	return len(c.any) == 0 || slices.ContainsFunc(c.any, func(group []entry) bool {
		for i := range group {
			if e := &group[i]; !e.holds(s) {
				return false
			}
		}
		return true
	})
}

func (e *entry) holds(s sample) bool {
	if e.path.isType() {
		return e.test.holdsType(s.typ)
	}
	return e.test.holds(e.path.value(s))
}

// holds tests one value, nil where there is none.
func (t *test) holds(v json.RawMessage) bool {
	if t.not != nil {
		return !t.not.holds(v)
	}
	if t.exists != nil && *t.exists != (len(v) > 0 && v[0] != 'n') {
		return false
	}
	if t.equals != nil && !same(t.equals, v) {
		return false
	}
	if t.contains != nil || t.matches != nil {
		text, ok := textOf(v)
		if !ok || !t.holdsText(text) {
			return false
		}
	}
	if t.gt != nil || t.lt != nil {
		n, ok := numberOf(v)
		if !ok || t.gt != nil && !(n > *t.gt) || t.lt != nil && !(n < *t.lt) {
			return false
		}
	}
	return true
}

func (t *test) holdsText(text []byte) bool {
	return (t.contains == nil || bytes.Contains(text, t.contains)) && (t.matches == nil || t.matches.Match(text))
}

// holdsType is holds for the signal's type, which is not part of the payload and is always a string.
func (t *test) holdsType(typ string) bool {
	if t.not != nil {
		return !t.not.holdsType(typ)
	}
	if t.exists != nil && !*t.exists || t.gt != nil || t.lt != nil {
		return false
	}
	if t.equals != nil {
		if text, ok := textOf(t.equals); !ok || string(text) != typ {
			return false
		}
	}
	return t.contains == nil && t.matches == nil || t.holdsText([]byte(typ))
}

// same is JavaScript's strict equality of two values, of which the first is a constant: numbers by value, strings by
// their text, objects and arrays never. A value that is missing equals nothing.
func same(want, v json.RawMessage) bool {
	if len(v) == 0 || want[0] == '{' || want[0] == '[' {
		return false
	}
	if text, ok := textOf(want); ok {
		is, ok := textOf(v)
		return ok && bytes.Equal(text, is)
	}
	if n, ok := numberOf(want); ok {
		is, ok := numberOf(v)
		return ok && n == is
	}
	return bytes.Equal(want, v) // true, false and null
}
