package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Template recognises the next of a row of JSON objects that are the same but for the values of some strings, such as
// the pieces of an answer, without decoding it: a model's stream is made of little else.
//
// It is right for any object once it is right for one. The learnt object is cut inside of string values. One JSON string
// in the place of another changes nothing of an object but that value. So if the probe decodes to the learnt object with
// the probe's word in one place, then what matches decodes to the learnt object with the first value there. Whoever
// learns a template has to check that.
type Template struct {
	parts  [][]byte // of the object, between the values; the last one is its end
	closed bool     // the end is braces alone, which may have spaces between them (Anthropic pads its events)
}

// maxParts is how many values may differ, and one.
const maxParts = 3

// Learn makes a template of an object. The value of the first key is what is looked for; those of the others may differ
// too, if they are there.
func Learn(object []byte, key string, others ...string) (Template, bool) {
	object = bytes.Clone(object)
	begin, end, ok := value(object, key)
	if !ok {
		return Template{}, false
	}
	t := Template{parts: [][]byte{object[:begin]}}
	for _, other := range others {
		from, to, found := value(object, other)
		if !found || from < end || len(t.parts) == maxParts-1 {
			continue
		}
		t.parts = append(t.parts, object[end:from])
		begin, end = from, to
	}
	t.parts = append(t.parts, object[end:])
	t.closed = closing(object[end:])
	return t, true
}

// value finds the first string that is the value of a key.
func value(object []byte, key string) (begin, end int, ok bool) {
	quoted := []byte(`"` + key + `"`)
	for from := 0; ; {
		at := bytes.Index(object[from:], quoted)
		if at < 0 {
			return 0, 0, false
		}
		from += at + len(quoted)
		rest := bytes.TrimLeft(object[from:], " ")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		if rest = bytes.TrimLeft(rest[1:], " "); len(rest) == 0 || rest[0] != '"' {
			continue
		}
		begin = len(object) - len(rest) + 1
		n, _ := inside(object[begin:])
		end = begin + n
		return begin, end, end < len(object) && object[end] == '"'
	}
}

// inside is the length of the inside of a JSON string at the beginning; a byte that cannot be there ends it. Escapes are
// passed over, not checked.
func inside(b []byte) (n int, escaped bool) {
	ascii := true
	for n < len(b) && b[n] != '"' && b[n] >= ' ' {
		if b[n] == '\\' {
			escaped = true
			n++
		}
		ascii = ascii && b[min(n, len(b)-1)] < utf8.RuneSelf
		n++
	}
	n = min(n, len(b))
	if !ascii && !utf8.Valid(b[:n]) {
		return 0, false
	}
	return n, escaped
}

// closing says whether the end of an object, after a string, is nothing but braces.
func closing(end []byte) bool { return len(bytes.Trim(end[1:], "} ")) == 0 }

// Match returns the value of the first key if the object is of the template.
func (t *Template) Match(object []byte) (string, bool) {
	if len(t.parts) == 0 {
		return "", false
	}
	var first []byte // with its quotes
	var escapes bool
	last := len(t.parts) - 1
	for i, part := range t.parts[:last] {
		if !bytes.HasPrefix(object, part) {
			return "", false
		}
		rest := object[len(part):]
		n, escaped := inside(rest)
		switch {
		case i == 0 && n < len(rest):
			first, escapes = object[len(part)-1:len(part)+n+1], escaped
		case i == 0, escaped:
			return "", false
		}
		object = rest[n:]
	}
	if !bytes.Equal(object, t.parts[last]) && !(t.closed && sameBraces(object, t.parts[last])) {
		return "", false
	}
	if !escapes {
		return string(first[1 : len(first)-1]), true
	}
	var text string
	err := json.Unmarshal(first, &text)
	return text, err == nil
}

// sameBraces says whether two ends are equal but for spaces. The known one is a quote and braces.
func sameBraces(end, known []byte) bool {
	if len(end) == 0 || end[0] != '"' || !closing(end) {
		return false
	}
	return bytes.Count(end, brace) == bytes.Count(known, brace)
}

var brace = []byte("}")

// Probe is the learnt object with a word in the place of each value.
func (t *Template) Probe(word string) []byte { return slices.Clone(bytes.Join(t.parts, []byte(word))) }
