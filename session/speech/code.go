package speech

import (
	"strings"
	"unicode"
)

// codeSymbols is how the characters of code are said; what is not here is a pause between words.
var codeSymbols = map[rune]string{
	'.': "dot", '/': "slash", '\\': "backslash", '=': "equals", '@': "at", '+': "plus", '*': "star", '$': "dollar", '&': "and", '|': "pipe", '<': "less than",
	'>': "greater than", '#': "hash", '%': "percent", '~': "tilde", '^': "caret", '!': "not",
}

// inCode says a name or a short piece of code in words: "session.Run" as "session dot Run", "maxFrameSize" as "max Frame Size",
// "--verbose" as "dash dash verbose". Brackets, quotes and the like are left out.
func inCode(code string) string {
	var words []string
	text := []rune(code)
	for at := 0; at < len(text); {
		c := text[at]
		end := at + 1
		switch {
		case unicode.IsLetter(c):
			end = wordEnd(text, at)
			words = append(words, string(text[at:end]))
		case '0' <= c && c <= '9':
			for end < len(text) && '0' <= text[end] && text[end] <= '9' {
				end++
			}
			words = append(words, amount(string(text[at:end])))
		case c == '.' && (end == len(text) || !unicode.IsLetter(text[end]) && !unicode.IsDigit(text[end])):
		case c == '-':
			if begins := at == 0 || unicode.IsSpace(text[at-1]) || text[at-1] == '-'; begins && end < len(text) && !unicode.IsSpace(text[end]) {
				words = append(words, "dash")
			}
		case codeSymbols[c] != "" && (at == 0 || text[at-1] != c):
			words = append(words, codeSymbols[c])
		}
		at = end
	}
	return strings.Join(words, " ")
}

// wordEnd is behind the word at: at a change from small letters to a capital one, and before the last capital of several, as in "HTTPServer".
func wordEnd(text []rune, at int) int {
	end := at + 1
	for end < len(text) && (unicode.IsLetter(text[end]) || unicode.Is(unicode.Mn, text[end]) || text[end] == '\'') {
		upper := unicode.IsUpper(text[end])
		switch {
		case upper && unicode.IsLower(text[end-1]):
			return end
		case upper && end+1 < len(text) && unicode.IsLower(text[end+1]) && unicode.IsUpper(text[end-1]):
			return end
		}
		end++
	}
	return end
}
