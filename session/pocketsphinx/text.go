package pocketsphinx

import (
	"regexp"
	"strings"
)

// variant is the suffix that numbers the pronunciations of a word, as in read(2).
var variant = regexp.MustCompile(`\(\d+\)$`)

// plain turns a hypothesis into words: no <s>, </s> or <sil>, no [NOISE] or ++SPN++, no pronunciation numbers, single spaces.
func plain(hypothesis string) string {
	words := strings.Fields(hypothesis)
	kept := words[:0]
	for _, w := range words {
		if w = variant.ReplaceAllString(w, ""); w != "" && !filler(w) {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// filler tells the marks of silence and noise from words.
func filler(word string) bool {
	return strings.HasPrefix(word, "<") || strings.HasPrefix(word, "[") || strings.HasPrefix(word, "+")
}
