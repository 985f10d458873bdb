package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// pattern is JSON with placeholders, as a message is expected to be.
type pattern struct {
	text  string
	value any
}

// placeholder is a string of a pattern that stands for more than itself.
type placeholder struct {
	kind string // any, text, number, uuid, none, contains, other
	name string // what the value is called, or is held against; empty for no name
	text string // what it contains
}

var kinds = regexp.MustCompile(`^<(?:([a-zA-Z][a-zA-Z0-9]*):)?(any|text|number|uuid|none)>$`)
var other = regexp.MustCompile(`^<!([a-zA-Z][a-zA-Z0-9]*)>$`)

// parsePattern reads a pattern and its placeholders.
func parsePattern(text string) (*pattern, error) {
	v, err := parseJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the expected message is not JSON (%w): write one JSON value, or << and the text to compare bytes", err)
	}
	v, err = placeholders(v)
	if err != nil {
		return nil, err
	}
	return &pattern{text, v}, nil
}

// parseJSON reads one JSON value and keeps numbers as they are written.
func parseJSON(text []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, readable(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more follows the value")
	}
	return v, nil
}

// readable is a decoder's error in words for a person.
func readable(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

// placeholders replaces the strings that are some.
func placeholders(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if v[key], err = placeholders(v[key]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = placeholders(v[i]); err != nil {
				return nil, err
			}
		}
	case string:
		return parsePlaceholder(v)
	}
	return v, nil
}

func parsePlaceholder(s string) (any, error) {
	if !strings.HasPrefix(s, "<") || !strings.HasSuffix(s, ">") {
		return s, nil
	}
	if words, ok := strings.CutPrefix(s, "<~"); ok && len(words) > 1 {
		return placeholder{kind: "contains", text: words[:len(words)-1]}, nil
	}
	if m := other.FindStringSubmatch(s); m != nil {
		return placeholder{kind: "other", name: m[1]}, nil
	}
	if m := kinds.FindStringSubmatch(s); m != nil {
		return placeholder{kind: m[2], name: m[1]}, nil
	}
	return nil, fmt.Errorf("%s is no placeholder: write <any>, <text>, <number>, <uuid>, <none>, <id:uuid>, <!id> or <~words>; to expect this very text, compare bytes with <<", s)
}

// String is the placeholder as it was written.
func (p placeholder) String() string {
	switch {
	case p.kind == "contains":
		return "<~" + p.text + ">"
	case p.kind == "other":
		return "<!" + p.name + ">"
	case p.name != "":
		return "<" + p.name + ":" + p.kind + ">"
	}
	return "<" + p.kind + ">"
}
