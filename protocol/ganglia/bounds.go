package ganglia

import (
	"strings"
	"unicode/utf8"
)

// The bounds of what is shown, in bytes. Together with what clean replaces they keep every artifact under 1 MiB of JSON,
// where a byte of text takes two at most.
const (
	maxContent = 256 << 10
	maxLine    = 1 << 10
)

const cutNote = "\n… (the rest was cut off: it is too long to show)"

// text bounds a text of many lines. Where it was cut, its last line says so.
func text(s string) string {
	shown := clean(head(s, maxContent)) // which may have made it longer again
	if len(s) <= maxContent && len(shown) <= maxContent {
		return shown
	}
	return strings.TrimRight(head(shown, maxContent-len(cutNote)), "\r\n") + cutNote
}

// line bounds a name, which is one line whatever it came as.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, short(s, maxLine))
}

// short leaves at most n bytes, and a sign where it was more.
func short(s string, n int) string {
	shown := clean(head(s, n))
	if len(s) <= n && len(shown) <= n {
		return shown
	}
	return head(shown, n-len("…")) + "…"
}

// clean replaces what no viewer shows: control characters, each of which would take six bytes in JSON, and what is no
// UTF-8.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, s)
}

// head is at most the first n bytes, without half a character at their end.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
