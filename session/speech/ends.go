package speech

import (
	"strings"
	"unicode"
)

// Distances, in bytes.
const (
	shortLine   = 60  // a line that is shorter was ended on purpose, not for want of room
	firstClause = 40  // from where on the first sentence may end at a clause
	aside       = 160 // how long a bracket may be for nothing in it to end a sentence
	outlook     = 40  // how far the next word is looked for, and how much of it is looked at
)

// nextOfProse is the sentence whose first word is at start. The reader sees the white space before it, too: it counts for the length.
func (s *Sentences) nextOfProse(r *reader, start int, begins bool) piece {
	line := start // where the text of the line begins
	block := begins && isBlock(r, start)
	bracket := -1 // where the outermost one was opened
	for p := start; p < LongestSentence; {
		c, size := r.rune(p)
		if r.short {
			return piece{}
		}
		next, end := p+size, false
		switch c {
		case eof:
			return piece{length: len(r.text)}
		case '\n':
			if end = block || endsLine(r, line, p); !end {
				line = p + 1
			}
		case '`':
			next = codeSpan(r, p)
		case '(', '[':
			if bracket < 0 {
				bracket = p
			}
		case ')', ']':
			bracket = -1
		case '.', '!', '?', '…':
			next, end = terminator(r, p, start, begins && line == start)
			end = end && !(bracket >= 0 && closesSoon(r, bracket, next))
		default:
			if !s.begun && p-start >= firstClause && bracket < 0 {
				if n := r.clause(p); n > 0 {
					next, end = p+n, true
				}
			}
		}
		switch {
		case r.short:
			return piece{}
		case end && next <= LongestSentence:
			return piece{length: next}
		}
		p = next
	}
	return tooLong(r, start)
}

// isBlock says whether the line at p is one that ends with itself: a heading, or a row of a table.
func isBlock(r *reader, p int) bool {
	marks := 0
	for r.at(p+marks) == '#' && marks < 7 {
		marks++
	}
	return r.at(p) == '|' || marks > 0 && marks < 7 && isSpace(r.at(p+marks))
}

// beginsBlock says whether the line at p begins something of its own: an item, a heading, a row, a quotation, a block of code.
func beginsBlock(r *reader, p int) bool {
	switch c := r.at(p); c {
	case '-', '*', '+':
		return isSpace(r.at(p+1)) || r.at(p+1) == c && r.at(p+2) == c
	case '`', '~':
		return r.at(p+1) == c && r.at(p+2) == c
	case '>':
		return true
	}
	return isBlock(r, p) || number(r, p) > 0 || 'a' <= r.at(p) && r.at(p) <= 'z' && (r.at(p+1) == '.' || r.at(p+1) == ')') && isSpace(r.at(p+2))
}

// number is the length of an item's number at p, such as "12." or "3)", with its mark; 0 if there is none.
func number(r *reader, p int) int {
	n := 0
	for n < 3 && isDigit(r.at(p+n)) {
		n++
	}
	if n > 0 && (r.at(p+n) == '.' || r.at(p+n) == ')') && isSpace(r.at(p+n+1)) {
		return n + 1
	}
	return 0
}

// endsLine says whether the newline at p ends a sentence, on the line at start.
func endsLine(r *reader, start, p int) bool {
	if !hasWord(r.text[start:p]) {
		return true
	}
	q := p + 1
	for r.at(q) == ' ' || r.at(q) == '\t' || r.at(q) == '\r' {
		if q++; q > p+outlook {
			return true
		}
	}
	quoted := r.at(start) == '>'
	if quoted && r.at(q) == '>' {
		for q++; r.at(q) == ' '; q++ {
			if q > p+outlook {
				return true
			}
		}
	}
	if c := r.at(q); c == eof || c == '\n' || beginsBlock(r, q) {
		return true
	}
	c, _ := r.rune(q)
	return p-start < shortLine && !unicode.IsLower(c) && !unicode.IsPunct(c)
}

func hasWord(text []byte) bool {
	return strings.ContainsFunc(string(text), func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
}

// codeSpan is behind the code at p, or behind its marks where nothing on the line closes them.
func codeSpan(r *reader, p int) int {
	n := 0
	for r.at(p+n) == '`' && p+n < LongestSentence {
		n++
	}
	run := 0
	for q := p + n; q <= LongestSentence; q++ {
		c := r.at(q)
		switch {
		case c == '`':
			run++
		case run == n:
			return q
		case c == '\n', c == eof:
			return p + n
		default:
			run = 0
		}
	}
	return p + n
}

// closesSoon says whether the bracket at open is closed behind p.
func closesSoon(r *reader, open, p int) bool {
	for ; p < open+aside; p++ {
		switch r.at(p) {
		case ')', ']':
			return true
		case '\n', eof:
			return false
		}
	}
	return false
}

// clause is the length of the mark at p if a clause ends there and white space follows; otherwise 0.
func (r *reader) clause(p int) int {
	c, size := r.rune(p)
	switch c {
	case ',', ';', ':', '—', '–':
	case '-':
		if p == 0 || !isSpace(r.at(p-1)) {
			return 0
		}
	default:
		return 0
	}
	if !isSpace(r.at(p + size)) {
		return 0
	}
	if p > 0 && isDigit(r.at(p-1)) && isDigit(r.at(p+size+1)) { // a date
		return 0
	}
	return size
}

// terminator looks at the full stop, question mark or exclamation mark at p, in a sentence that begins at start: next is behind it and the quotes and
// brackets that it closes, end whether the sentence ends there. first says that the sentence's line begins at start.
func terminator(r *reader, p, start int, first bool) (next int, end bool) {
	dots, strong := 0, false
	next = p
	for next < p+outlook {
		c, size := r.rune(next)
		if c != '.' && c != '!' && c != '?' && c != '…' {
			break
		}
		if c == '.' {
			dots++
		}
		strong = strong || c == '!' || c == '?'
		next += size
	}
	ellipsis := !strong && dots != 1
	stop := next
	for next < stop+outlook {
		c, size := r.rune(next)
		if !strings.ContainsRune("\"'”’»)]*_~", c) {
			break
		}
		next += size
	}
	switch c := r.at(next); {
	case c != eof && !isSpace(c):
		return next, false
	case strong && next == stop:
		return next, true
	case strong, ellipsis:
		return next, !unicode.IsLower(follows(r, next))
	}
	return next, fullStop(r, p, next, start, first)
}

// follows is the first character of the next word, past quotes and brackets; eof at the end of the line or the text.
func follows(r *reader, p int) rune {
	for q := p; q < p+outlook; {
		c, size := r.rune(q)
		if c == eof || c == '\n' {
			return eof
		}
		if !unicode.IsSpace(c) && !strings.ContainsRune("\"'“‘«([*_", c) {
			return c
		}
		q += size
	}
	return eof
}

// nextWord is the word at or behind p, on the same line; as far as it is looked for.
func nextWord(r *reader, p int) string {
	q := p
	for q < p+outlook && !isLetter(r.at(q)) {
		if c := r.at(q); c == eof || c == '\n' || isDigit(c) {
			return ""
		}
		q++
	}
	begin := q
	for q < begin+outlook && (isLetter(r.at(q)) || r.at(q) == '\'') {
		q++
	}
	return string(r.text[min(begin, len(r.text)):min(q, len(r.text))])
}

// fullStop says whether the single period at p ends the sentence; what it closes ends at next.
func fullStop(r *reader, p, next, start int, first bool) bool {
	begin := p
	for begin > start && (isLetter(int(r.text[begin-1])) || isDigit(int(r.text[begin-1])) || r.text[begin-1] == '.') {
		begin--
	}
	if begin > start && r.text[begin-1] == '\'' && p-begin == 1 { // "don't."
		return true
	}
	word := string(r.text[begin:p])
	if first && begin == start && number(r, begin) > 0 {
		return false
	}
	switch abbreviations[word] {
	case never:
		return false
	case beforeNumber:
		c := follows(r, next)
		return !unicode.IsDigit(c) && c != '#'
	case maybe:
		return startsSentence(r, next)
	}
	switch {
	case len(word) == 1 && isLetter(int(word[0])):
		if first && begin == start { // "a. first"
			return false
		}
		return startsSentence(r, next)
	case strings.Contains(word, ".") && isInitials(word):
		return startsSentence(r, next)
	}
	return next == p+1 || !unicode.IsLower(follows(r, next))
}

// startsSentence tells "in the U.S. The army" from "the U.S. Army": by words that are capitalised for nothing but a beginning.
func startsSentence(r *reader, p int) bool {
	switch c := follows(r, p); {
	case c == eof:
		return true
	case !unicode.IsLetter(c):
		return !unicode.IsDigit(c)
	case !unicode.IsUpper(c):
		return false
	}
	return starters[nextWord(r, p)]
}

// isInitials says whether a word is single letters with periods between them.
func isInitials(word string) bool {
	for part := range strings.SplitSeq(word, ".") {
		if len(part) != 1 || !isLetter(int(part[0])) {
			return false
		}
	}
	return true
}

func isDigit(c int) bool  { return '0' <= c && c <= '9' }
func isLetter(c int) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
