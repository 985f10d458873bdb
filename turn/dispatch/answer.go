package dispatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spoken are the fields that a text for a person is looked for in, the likeliest first.
var spoken = []string{"answer", "text", "summary", "reasoning", "description"}

// parsePath takes a JSON pointer (RFC 6901), or names and indices between dots.
func parsePath(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	pointer, is := strings.CutPrefix(path, "/")
	if !is {
		parts := strings.Split(path, ".")
		if slices.Contains(parts, "") {
			return nil, fmt.Errorf("dispatch: the path of the answer is %q: write it like report.text or /report/text", path)
		}
		return parts, nil
	}
	parts := strings.Split(pointer, "/")
	for i := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
	}
	return parts, nil
}

// answerText is what an artifact's data says to a person. It also says whether the text lay where it was configured to.
func answerText(data json.RawMessage, path []string) (string, bool) {
	if len(path) > 0 {
		if text := textOf(lookUp(data, path)); text != "" {
			return text, true
		}
	}
	for _, name := range spoken {
		if value := lookUp(data, []string{name}); isText(value) && textOf(value) != "" {
			return textOf(value), len(path) == 0
		}
	}
	return textOf(data), len(path) == 0
}

// lookUp follows a path; nil where it leads nowhere.
func lookUp(value json.RawMessage, path []string) json.RawMessage {
	for _, part := range path {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(value, &object) == nil {
			value = object[part]
		} else if i, err := strconv.Atoi(part); err == nil && json.Unmarshal(value, &list) == nil && i >= 0 && i < len(list) {
			value = list[i]
		} else {
			return nil
		}
	}
	return value
}

func isText(value json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(value), []byte{'"'}) }

// textOf is a JSON string's text, and any other value as compact JSON; empty for null and for no value.
func textOf(value json.RawMessage) string {
	var text *string
	if json.Unmarshal(value, &text) == nil {
		if text == nil {
			return ""
		}
		return strings.TrimSpace(*text)
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return ""
	}
	return b.String()
}

// maxPiece is how much text one delta has, in bytes: an event is bounded, an artifact may have 4 MiB.
const maxPiece = 8 << 10

// pieces cuts a text between characters.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > maxPiece {
			n := maxPiece
			for !utf8.RuneStart(text[n]) {
				n--
			}
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
		yield(text)
	}
}
