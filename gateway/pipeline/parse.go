package pipeline

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed wiring.schema.json
var wiringSchema []byte

// MaxSize bounds a wiring, in bytes.
const MaxSize = 1 << 20

// Schema is the JSON Schema (draft 2020-12) of wiring.json.
func Schema() []byte { return bytes.Clone(wiringSchema) }

// compiledSchema is compiled once, at the first use.
var compiledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(wiringSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("wiring.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("wiring.schema.json")
})

// Mistakes are all that is wrong with a wiring, each with its place as a JSON pointer, such as /wires/0/filters/1/every.
type Mistakes []string

func (m Mistakes) Error() string { return "pipeline: " + strings.Join(m, "; ") }

// Mistakes lists them.
func (m Mistakes) Mistakes() []string { return m }

// Parse reads wiring.json. Its error is of type [Mistakes].
func Parse(text []byte) (*Wiring, error) {
	if len(text) > MaxSize {
		return nil, Mistakes{fmt.Sprintf("/: more than %d bytes", MaxSize)}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, Mistakes{"/: " + notJSON(text, err)}
	}
	schema, err := compiledSchema()
	if err != nil {
		return nil, fmt.Errorf("pipeline: the schema of wirings: %w", err)
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(doc); errors.As(err, &invalid) {
		return nil, leaves(invalid, nil)
	} else if err != nil {
		return nil, fmt.Errorf("pipeline: check the wiring: %w", err)
	}
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, Mistakes{"/: " + err.Error()}
	}
	return Compile(c)
}

// notJSON says where a text is no JSON: line and column count from 1.
func notJSON(text []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err.Error()
	}
	before := text[:min(max(int(syntax.Offset)-1, 0), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d: %v", line, column, err)
}

var english = message.NewPrinter(language.English)

// leaves are the mistakes themselves, without the parts of the schema that led to them.
func leaves(e *jsonschema.ValidationError, found Mistakes) Mistakes {
	if len(e.Causes) == 0 {
		said := pointer(e.InstanceLocation...) + ": " + e.ErrorKind.LocalizedString(english)
		if !slices.Contains(found, said) {
			found = append(found, said)
		}
	}
	for _, c := range e.Causes {
		found = leaves(c, found)
	}
	return found
}

// pointer is a JSON pointer (RFC 6901).
func pointer(tokens ...string) string {
	if len(tokens) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// at is a pointer to a field of an element of a list.
func at(list string, i int, more ...string) string {
	return pointer(append([]string{list, strconv.Itoa(i)}, more...)...)
}

// zones are the ways that a wire may lead.
var zones = map[Zone][]Zone{
	ZoneSignal:       {ZoneSignalType},
	ZoneSignalType:   {ZoneChoreography},
	ZoneChoreography: {ZoneTheme, ZoneShader, ZoneSketch},
}

// mistakes finds what the schema does not see: names that lead nowhere or are given twice, wires that lead from nowhere
// to nowhere, and clauses that do not compile; those that do are ready for use then.
func (c Config) mistakes() Mistakes {
	var found Mistakes
	say := func(place, format string, args ...any) {
		found = append(found, place+": "+fmt.Sprintf(format, args...))
	}
	choreographies := map[string]bool{}
	for i, k := range c.Choreographies {
		if choreographies[k.ID] {
			say(at("choreographies", i, "id"), "there is another choreography %q", k.ID)
		}
		choreographies[k.ID] = true
		if err := c.Choreographies[i].When.compile(); err != nil {
			say(at("choreographies", i, "when"), "%v", err)
		}
	}
	wires := map[string]bool{}
	for i, w := range c.Wires {
		if wires[w.ID] {
			say(at("wires", i, "id"), "there is another wire %q", w.ID)
		}
		wires[w.ID] = true
		if !slices.Contains(zones[w.FromZone], w.ToZone) {
			say(at("wires", i, "toZone"), "no wire leads from %s to %s", w.FromZone, w.ToZone)
		}
		if w.ToZone == ZoneChoreography && !choreographies[w.ToID] {
			say(at("wires", i, "toId"), "there is no choreography %q", w.ToID)
		}
		if w.FromZone == ZoneChoreography && !choreographies[w.FromID] {
			say(at("wires", i, "fromId"), "there is no choreography %q", w.FromID)
		}
		if len(w.Filters) > 0 && w.ToZone != ZoneChoreography {
			say(at("wires", i, "filters"), "only a wire to a choreography has filters")
		}
		for j := range w.Filters {
			if err := w.Filters[j].Clause.compile(); err != nil {
				say(at("wires", i, "filters", strconv.Itoa(j), "clause"), "%v", err)
			}
		}
	}
	bindings := map[string]bool{}
	for i, b := range c.Bindings {
		if bindings[b.ID] {
			say(at("bindings", i, "id"), "there is another binding %q", b.ID)
		}
		bindings[b.ID] = true
		if !choreographies[b.Choreography] {
			say(at("bindings", i, "sourceChoreographyId"), "there is no choreography %q", b.Choreography)
		}
		if b.Property != propertyTeleport || b.Action == nil || b.Action.Waypoint == "" {
			continue
		}
		if _, ok := c.Positions[b.Action.Waypoint]; !ok {
			say(at("bindings", i, "action", "waypoint"), "there is no position %q", b.Action.Waypoint)
		}
	}
	entities := map[string]bool{}
	for i, e := range c.Entities {
		if entities[e.ID] {
			say(at("entities", i, "id"), "there is another entity %q", e.ID)
		}
		entities[e.ID] = true
	}
	return found
}
