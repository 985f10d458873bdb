package speech

import "strings"

// fillers are what people say before they know what to say, or while they listen. As recognisers write them.
var fillers = map[string]bool{
	"ah": true, "eh": true, "er": true, "erm": true, "ha": true, "hm": true, "hmm": true, "huh": true, "mhm": true,
	"mm": true, "mmm": true, "uh": true, "uhh": true, "uh-huh": true, "um": true, "umm": true,
}

// faint are the words that recognisers make of a cough or a door: short, common, and rarely all that somebody says.
var faint = map[string]bool{
	"a": true, "an": true, "and": true, "are": true, "as": true, "at": true, "be": true, "been": true,
	"but": true, "by": true, "for": true, "from": true, "had": true, "has": true, "have": true, "he": true,
	"her": true, "him": true, "his": true, "i": true, "if": true, "in": true, "into": true, "is": true,
	"it": true, "its": true, "my": true, "of": true, "oh": true, "on": true, "or": true, "our": true, "she": true,
	"than": true, "that": true, "the": true, "their": true, "them": true, "then": true, "there": true,
	"these": true, "they": true, "this": true, "those": true, "to": true, "us": true, "was": true, "we": true,
	"were": true, "with": true, "you": true, "your": true,
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
