package speech

import "strings"

// fillers are what people say before they know what to say, or while they listen. As recognisers write them.
var fillers = map[string]bool{
	"ah": true, "eh": true, "er": true, "erm": true, "ha": true, "hm": true, "hmm": true, "huh": true, "mhm": true,
	"mm": true, "mmm": true, "uh": true, "uhh": true, "uh-huh": true, "um": true, "umm": true,
}

// faint are the words that recognisers make of a cough or a door: short, common, and rarely all that somebody says.
var faint = map[string]bool{
	"a": true, "an": true, "and": true, "are": true, "at": true, "but": true, "he": true, "her": true, "i": true, "if": true,
	"in": true, "is": true, "it": true, "of": true, "oh": true, "on": true, "or": true, "that": true, "the": true,
	"they": true, "this": true, "to": true, "us": true, "we": true, "you": true,
}

// Wordless says whether a transcript has nothing but fillers, or nothing at all.
func Wordless(text string) bool {
	return only(text, func(word string) bool { return fillers[word] })
}

// Faint says whether a transcript has nothing but fillers and words that recognisers make of noise.
func Faint(text string) bool {
	return only(text, func(word string) bool { return fillers[word] || faint[word] })
}

// only says whether every word of a text is of a kind.
func only(text string, kind func(string) bool) bool {
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if word = strings.Trim(word, ".,!?…-'\""); word != "" && !kind(word) {
			return false
		}
	}
	return true
}
