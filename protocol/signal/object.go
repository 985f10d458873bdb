package signal

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Members yields the members of a JSON object in the order in which they are written, the names without quotes and
// escapes, the values as they stand. The object has to be valid JSON; of anything else Members yields what it finds up
// to some fault. Nothing is allocated for names without escapes.
func Members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		for name, v := range spans(object) {
			if !yield(unquote(object[name:skipString(object, name)]), object[v.from:v.end:v.end]) {
				return
			}
		}
	}
}

// Set returns a JSON object with one member set: the last of that name is replaced, or one is put at the end. The object
// itself, which has to be valid, stays as it is.
func Set(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	at, found, members := span{}, false, 0
	for from, v := range spans(object) {
		members++
		if string(unquote(object[from:skipString(object, from)])) == name {
			at, found = v, true
		}
	}
	changed := make(json.RawMessage, 0, len(object)+len(name)+len(value)+4)
	if found {
		changed = append(changed, object[:at.from]...)
		changed = append(changed, value...)
		return append(changed, object[at.end:]...)
	}
	if members > 0 {
		changed = append(append(changed, object[:bytes.LastIndexByte(object, '}')]...), ',')
	} else {
		changed = append(changed, '{')
	}
	changed = append(appendString(changed, name), ':')
	return append(append(changed, value...), '}')
}

// span is where a value lies in its object.
type span struct{ from, end int }

// spans yields where the members of an object begin, and where their values lie.
func spans(object []byte) iter.Seq2[int, span] {
	return func(yield func(int, span) bool) {
		at := skipSpace(object, 0)
		if at == len(object) || object[at] != '{' {
			return
		}
		for at = skipSpace(object, at+1); at < len(object) && object[at] == '"'; at = skipSpace(object, at+1) {
			name := at
			if at = skipString(object, at); at-name < 2 {
				return
			}
			at = skipSpace(object, at)
			if at == len(object) || object[at] != ':' {
				return
			}
			from := skipSpace(object, at+1)
			at = skipValue(object, from)
			if at == from || !yield(name, span{from, at}) {
				return
			}
			at = skipSpace(object, at)
			if at == len(object) || object[at] != ',' {
				return
			}
		}
	}
}

// unquote takes a name out of its quotes.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return nil
	}
	return []byte(s)
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t') {
		at++
	}
	return at
}

// skipString goes behind the string that begins here, and never beyond the end.
func skipString(b []byte, at int) int {
	for at++; at < len(b); at++ {
		switch b[at] {
		case '"':
			return at + 1
		case '\\':
			at++
		}
	}
	return len(b)
}

// skipValue goes behind the value that begins here.
func skipValue(b []byte, at int) int {
	if at == len(b) {
		return at
	}
	if b[at] == '"' {
		return skipString(b, at)
	}
	for depth := 0; at < len(b); {
		switch b[at] {
		case '"':
			at = skipString(b, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // a number or a word ended with what it stands in
				return at
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ' ', '\n', '\r', '\t', ':':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return at
}

// depth is how many objects and arrays stand within one another in a valid JSON text.
func depth(b []byte) int {
	deepest, now := 0, 0
	for at := 0; at < len(b); {
		switch b[at] {
		case '"':
			at = skipString(b, at)
			continue
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
		at++
	}
	return deepest
}
