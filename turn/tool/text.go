package tool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible writes a text on one line, with whatever does not show, or would change how the rest shows, as an escape:
// line breaks, control characters, and those that turn the direction of writing around.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// short is a text on one line, of at most n runes. It says how much is missing.
func short(s string, n int) string {
	const note = " … (%d more)"
	line := visible(s)
	size := utf8.RuneCountInString(line)
	if size <= n {
		return line
	}
	kept := max(0, n-len(fmt.Sprintf(note, size)))
	return clip(line, kept) + fmt.Sprintf(note, size-kept)
}

// quoted is short for a text within a sentence.
func quoted(s string, n int) string { return `"` + short(s, n) + `"` }

// clip returns the first n runes.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// prefix returns as much of s as n bytes hold, cut between two runes.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// lines counts the lines of a text; the last one needs no line break.
func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
