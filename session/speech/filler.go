package speech

import "strings"

// fillers are what people say before they know what to say, or while they listen. As recognisers write them.
var fillers = map[string]bool{
	"ah": true, "eh": true, "er": true, "erm": true, "ha": true, "hm": true, "hmm": true, "huh": true, "mhm": true,
	"mm": true, "mmm": true, "uh": true, "uhh": true, "uh-huh": true, "um": true, "umm": true,
}

// Wordless says whether a transcript has nothing but fillers, or nothing at all.
func Wordless(text string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if word = strings.Trim(word, ".,!?…-'\""); word != "" && !fillers[word] {
			return false
		}
	}
	return true
}
