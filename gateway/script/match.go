package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxDifferences is how many are worth reading.
const maxDifferences = 8

// differences matches a message; bound are the named values so far, and those of a message that agrees are added. Of an
// envelope of version 2, seq and ts are compared only where they are expected.
func (p *pattern) differences(got []byte, bound map[string]any, envelope bool) []string {
	v, err := parseJSON(got)
	if err != nil {
		return []string{fmt.Sprintf("it is not JSON: %v", err)}
	}
	m := matcher{bound: maps.Clone(bound), envelope: envelope}
	m.value("", p.value, v)
	if len(m.found) == 0 {
		maps.Copy(bound, m.bound)
	}
	return m.found[:min(len(m.found), maxDifferences)]
}

// matcher collects the differences between two values.
type matcher struct {
	bound    map[string]any
	found    []string
	envelope bool // seq and ts may stand at the top
}

func (m *matcher) differ(path, format string, args ...any) {
	if path == "" {
		path = "the top"
	}
	m.found = append(m.found, "at "+path+": "+fmt.Sprintf(format, args...))
}

// value matches one value.
func (m *matcher) value(path string, want, got any) {
	switch want := want.(type) {
	case placeholder:
		m.placeholder(path, want, got)
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			m.object(path, want, g)
			return
		}
		m.differ(path, "expected an object, got %s", short(show(got)))
	case []any:
		if g, ok := got.([]any); ok {
			m.array(path, want, g)
			return
		}
		m.differ(path, "expected an array, got %s", short(show(got)))
	default:
		if !equal(want, got) {
			m.differ(path, "expected %s, got %s", short(show(want)), short(show(got)))
		}
	}
}

// more is the field of an expected object that lets it have fields which are not named.
const more = "..."

func (m *matcher) object(path string, want, got map[string]any) {
	_, open := want[more]
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[key]; key == more {
			continue
		} else if p, is := want[key].(placeholder); is && p.kind == "none" && !ok {
			continue
		} else if ok {
			m.value(member(path, key), want[key], g)
		} else {
			m.differ(member(path, key), "expected %s, but the field is missing", short(show(want[key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		beside := m.envelope && path == "" && (key == "seq" || key == "ts")
		if _, ok := want[key]; !ok && !open && !beside {
			m.differ(member(path, key), "unexpected field, %s", short(show(got[key])))
		}
	}
}

func (m *matcher) array(path string, want, got []any) {
	for i := range min(len(want), len(got)) {
		m.value(fmt.Sprintf("%s[%d]", path, i), want[i], got[i])
	}
	if len(want) != len(got) {
		m.differ(path, "expected %d elements, got %d", len(want), len(got))
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// placeholder matches a value against one, and gives it its name.
func (m *matcher) placeholder(path string, want placeholder, got any) {
	known, named := m.bound[want.name]
	text, isText := got.(string)
	_, isNumber := got.(json.Number)
	switch {
	case want.kind == "other" && !named:
		m.differ(path, "nothing was called %s before", want.name)
	case want.kind == "other":
		if equal(known, got) {
			m.differ(path, "expected anything but %s", short(show(known)))
		}
	case want.kind == "none":
		m.differ(path, "unexpected field, %s", short(show(got)))
	case want.kind == "text" && !isText, want.kind == "number" && !isNumber, want.kind == "uuid" && !uuid.MatchString(text),
		want.kind == "contains" && !strings.Contains(text, want.text):
		m.differ(path, "expected %s, got %s", want, short(show(got)))
	case want.name == "":
	case named && !equal(known, got):
		m.differ(path, "expected %s as before, got %s", short(show(known)), short(show(got)))
	default:
		m.bound[want.name] = got
	}
}

// equal compares values; numbers by what they are worth.
func equal(a, b any) bool {
	x, okX := a.(json.Number)
	y, okY := b.(json.Number)
	if okX && okY && x != y {
		f, errF := x.Float64()
		g, errG := y.Float64()
		return errF == nil && errG == nil && f == g
	}
	return show(a) == show(b) // keys are sorted
}

func member(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// show is a value as JSON, with its placeholders as they were written.
func show(v any) string {
	switch v := v.(type) {
	case placeholder:
		return v.String()
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, strconv.Quote(key)+":"+show(v[key]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = show(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return strconv.Quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}
