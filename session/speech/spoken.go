package speech

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Spoken is how an English text is said, in words and punctuation alone: numbers, dates, units and usual abbreviations in full, links by what they
// are called, addresses by their host, files by their name, code in words where it is short and with [CodeOnScreen] where it is a block.
// What marks a text up is left out, and so are emoji and what else has no sound. All capitals are left to the engine.
func Spoken(language Language, text string) string {
	s := Sentences{Language: language}
	var said []string
	for _, sentence := range append(s.Add(text), s.Flush()...) {
		if sentence.Spoken != "" {
			said = append(said, sentence.Spoken)
		}
	}
	return strings.Join(said, " ")
}

// spoken is how one sentence is said; empty where it has no word.
func spoken(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ToValidUTF8(text, " ")) {
		b.WriteString(say(unmarked(line)))
		b.WriteByte(' ')
	}
	return tidy(b.String())
}

// What marks the beginning of a line.
var (
	quoteMark   = regexp.MustCompile(`^\s*(?:>\s?)+`)
	headingMark = regexp.MustCompile(`^\s*#{1,6}\s+`)
	taskMark    = regexp.MustCompile(`^\s*[-*+]\s+\[([ xX])\]\s+`)
	itemMark    = regexp.MustCompile(`^\s*(?:[-*+]|•)\s+`)
	numberMark  = regexp.MustCompile(`^\s*(\d{1,3}|[a-z])[.)]\s+`)
	footMark    = regexp.MustCompile(`^\s*\[\^?[\w-]+\]:\s.*`)
	tableMark   = regexp.MustCompile(`^\s*\|`)
)

// unmarked is a line without what makes it a heading, an item, a row or a quotation.
func unmarked(line string) string {
	line = quoteMark.ReplaceAllString(line, "")
	if m := taskMark.FindStringSubmatch(line); m != nil {
		state := "To do: "
		if m[1] != " " {
			state = "Done: "
		}
		return state + line[len(m[0]):]
	}
	if footMark.MatchString(line) {
		return ""
	}
	line = headingMark.ReplaceAllString(line, "")
	line = itemMark.ReplaceAllString(line, "")
	line = numberMark.ReplaceAllString(line, "$1, ")
	if tableMark.MatchString(line) {
		return cells(line)
	}
	return line
}

// cells is a row of a table as a list.
func cells(row string) string {
	var filled []string
	for cell := range strings.SplitSeq(row, "|") {
		if cell = strings.TrimSpace(cell); strings.Trim(cell, ":-") != "" {
			filled = append(filled, cell)
		}
	}
	return strings.Join(filled, ", ")
}

// place is where in a line a rule stands.
type place struct {
	before string // all that stands before it
	after  string // all that follows what it has matched
}

// last is the word before, in small letters.
func (p place) last() string {
	words := strings.TrimRight(p.before, " .")
	at := strings.LastIndexFunc(words, func(c rune) bool { return !unicode.IsLetter(c) && c != '\'' })
	return strings.ToLower(words[at+1:])
}

// touches says whether a letter or digit follows at once.
func (p place) touches() bool {
	c, _ := utf8.DecodeRuneInString(p.after)
	return unicode.IsLetter(c) || unicode.IsDigit(c)
}

// rule says what a piece of text that begins somewhere stands for. Where it does not apply after all, ok is false.
type rule struct {
	match  *regexp.Regexp
	say    func(p place, m []string) (words string, ok bool)
	within bool // may also begin within a word
}

func on(pattern string, say func(p place, m []string) (string, bool)) rule {
	return rule{match: regexp.MustCompile(`^(?:` + pattern + `)`), say: say}
}

func anywhere(pattern string, say func(p place, m []string) (string, bool)) rule {
	r := on(pattern, say)
	r.within = true
	return r
}

// window is how far a rule looks: what is longer is not one thing to say.
const window = 400

// say says a line, from its first character to its last: the first rule that applies takes what it matches.
func say(line string) string {
	var b strings.Builder
	within := false // a word
	end := ' '      // of what is said so far
	for at := 0; at < len(line); {
		words, n := apply(line, at, within)
		if n == 0 {
			c, size := utf8.DecodeRuneInString(line[at:])
			words, n = character(c), size
		} else if first, _ := utf8.DecodeRuneInString(words); isFactor(first) && isFactor(end) { // what was between them is not said
			b.WriteByte(' ')
		}
		b.WriteString(words)
		if words != "" {
			end, _ = utf8.DecodeLastRuneInString(words)
		}
		last, _ := utf8.DecodeLastRuneInString(line[:at+n])
		within = unicode.IsLetter(last) || unicode.IsDigit(last)
		at += n
	}
	return b.String()
}

// apply finds the rule for what begins at the place; n is 0 where there is none.
func apply(line string, at int, within bool) (words string, n int) {
	ahead := line[at:min(len(line), at+window)]
	if isPlain(ahead, within) {
		return "", 0
	}
	for _, r := range rules {
		if within && !r.within {
			continue
		}
		m := r.match.FindStringSubmatch(ahead)
		if m == nil || m[0] == "" {
			continue
		}
		if words, ok := r.say(place{line[:at], line[at+len(m[0]):]}, m); ok {
			return words, len(m[0])
		}
	}
	return "", 0
}

// isPlain saves most characters from the rules: white space, and the inside of words.
func isPlain(ahead string, within bool) bool {
	c := ahead[0]
	return c == ' ' || within && (isLetter(int(c)) || isDigit(int(c)))
}

// character is how a character is said by itself.
func character(c rune) string {
	if words, ok := symbols[c]; ok {
		return words
	}
	switch {
	case unicode.IsLetter(c), unicode.IsDigit(c), unicode.Is(unicode.Mn, c) && !unicode.Is(unicode.Variation_Selector, c):
		return string(c)
	case unicode.IsSpace(c):
		return " "
	}
	return ""
}

var (
	spaces      = regexp.MustCompile(`\s+`)
	spaceBefore = regexp.MustCompile(` +([.,;:!?])`)
	weakBefore  = regexp.MustCompile(`[,;:](?:\s*[,;:])*\s*([.!?,;:])`)
	commaAfter  = regexp.MustCompile(`([.!?]),`)
	weakEnd     = regexp.MustCompile(`[\s,;:'-]+$`)
	weakStart   = regexp.MustCompile(`^[\s,;:.!?-]+`)
)

// tidy leaves one space between words, and one mark between clauses.
func tidy(text string) string {
	text = spaces.ReplaceAllString(text, " ")
	text = spaceBefore.ReplaceAllString(text, "$1")
	text = weakBefore.ReplaceAllString(text, "$1")
	text = commaAfter.ReplaceAllString(text, "$1")
	text = weakStart.ReplaceAllString(text, "")
	text = weakEnd.ReplaceAllString(text, "")
	if !hasWord([]byte(text)) {
		return ""
	}
	return text
}
