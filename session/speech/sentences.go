package speech

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Language says whose rules sentences are cut and spoken by.
type Language string

// English is the one language so far; text in any other is treated like it.
const English Language = "en"

// Sentence is a piece of an answer that is spoken in one go.
type Sentence struct {
	Start, End int    // the bytes [Start, End) of the answer that it speaks
	Text       string // those bytes
	Spoken     string // how it is said: words and punctuation alone. Empty where there is nothing to say, as within a block of code
}

// LongestSentence bounds the Text of a [Sentence], in bytes.
const LongestSentence = 300

// CodeOnScreen is what is said in place of code: once an answer.
const CodeOnScreen = "Code is on the screen."

// Sentences cuts an answer into sentences while it arrives. Each comes out as soon as nothing that follows can change it, and how the answer was
// cut into deltas makes no difference to any of them. One after the other they are the answer, byte for byte.
//
//   - A sentence ends at its full stop, question mark or exclamation mark, not at the period of an abbreviation, an initial, a number, an address
//     or a file's name. White space after it belongs to the next one.
//   - Headings, items of a list and rows of a table are sentences. So is a line of fewer than 60 bytes where the next one begins like a sentence;
//     elsewhere the end of a line is white space.
//   - As long as nothing has been said, a sentence of 40 bytes or more ends at a comma, semicolon, colon or dash, too: the voice begins sooner.
//   - One that goes on past [LongestSentence] ends at the last such mark of its second half, at the last white space, or, without any, there.
//   - A line of a block of code is a sentence with nothing to say; the first one of an answer says [CodeOnScreen].
//
// Its zero value is English. It belongs to one goroutine at a time, keeps about two sentences of text, and reads no clock.
type Sentences struct {
	Language Language

	rest    []byte // what has come and is in no sentence yet
	at      int    // where rest begins in the answer
	midline bool   // rest does not begin a line
	fence   string // what ends the block of code that rest is in; empty outside
	address bool   // rest is the middle of an address that was too long
	begun   bool   // something has been said
	coded   bool   // and that there is code
}

// Add takes the next piece of the answer and returns the sentences that are certain now, mostly none.
func (s *Sentences) Add(delta string) []Sentence {
	s.rest = append(s.rest, delta...)
	return s.cut(false)
}

// Pause returns what is left of the answer so far, as if it ended there: nothing follows for a while. The next Add goes on
// with it.
func (s *Sentences) Pause() []Sentence { return s.cut(true) }

// Flush ends the answer and returns what is left of it. The next Add begins another answer.
func (s *Sentences) Flush() []Sentence {
	last := s.cut(true)
	*s = Sentences{Language: s.Language}
	return last
}

func (s *Sentences) cut(final bool) []Sentence {
	var out []Sentence
	for len(s.rest) > 0 {
		p := s.next(&reader{text: s.rest, final: final})
		if p.length == 0 {
			break
		}
		out = append(out, s.take(p))
	}
	if out != nil {
		s.rest = bytes.Clone(s.rest) // lets go of what was cut off
	}
	return out
}

// piece is what the front of the rest was found to be; its zero value is that more is needed to know.
type piece struct {
	length  int
	silent  bool   // nothing of it is said
	opens   string // a fence: what will end the block of code that begins behind it
	closes  bool   // a fence, the other one
	address bool   // it ends within an address
}

// take makes a sentence of the front of the rest.
func (s *Sentences) take(p piece) Sentence {
	text := string(s.rest[:p.length])
	out := Sentence{Start: s.at, End: s.at + p.length, Text: text}
	switch {
	case p.opens != "" && !s.coded:
		s.coded = true
		out.Spoken = CodeOnScreen
	case !p.silent:
		out.Spoken = spoken(text)
	}
	switch {
	case p.opens != "":
		s.fence = p.opens
	case p.closes:
		s.fence = ""
	}
	s.address = p.address
	s.begun = s.begun || out.Spoken != ""
	s.midline = text[len(text)-1] != '\n'
	s.at += p.length
	s.rest = s.rest[p.length:]
	return out
}

// next finds the sentence at the front of the rest.
func (s *Sentences) next(r *reader) piece {
	switch {
	case s.fence != "":
		return s.nextOfCode(r)
	case s.address:
		return restOfAddress(r)
	}
	start, line := 0, 0 // of the first word, and of its line; -1 within a line
	if s.midline {
		line = -1
	}
	for ; start < LongestSentence && isSpace(r.at(start)); start++ {
		if r.at(start) == '\n' {
			line = start + 1
		}
	}
	switch {
	case r.short:
		return piece{}
	case r.at(start) == eof || start == LongestSentence:
		return piece{length: start, silent: true}
	case line >= 0:
		if p, is := fenceAt(r, start); is || r.short {
			return p
		}
	}
	return s.nextOfProse(r, start, line >= 0)
}

// nextOfCode is one line of code, or as much of it as may be.
func (s *Sentences) nextOfCode(r *reader) piece {
	n := r.line(0, LongestSentence)
	if r.short {
		return piece{}
	}
	line := strings.TrimSpace(string(r.text[:n]))
	closes := !s.midline && strings.HasPrefix(line, s.fence) && strings.Trim(line, s.fence[:1]) == ""
	return piece{length: r.whole(n), silent: true, closes: closes}
}

// fenceAt is the line at start, and what is before it, if it opens a block of code.
func fenceAt(r *reader, start int) (piece, bool) {
	c := r.at(start)
	if c != '`' && c != '~' {
		return piece{}, false
	}
	marks := 0
	for marks < LongestSentence && r.at(start+marks) == c {
		marks++
	}
	if marks < 3 {
		return piece{}, false
	}
	n := r.line(start, LongestSentence)
	info := r.text[min(start+marks, n):n]
	if r.short || n == LongestSentence || c == '`' && bytes.ContainsRune(info, '`') {
		return piece{}, false
	}
	return piece{length: n, silent: true, opens: strings.Repeat(string(rune(c)), marks)}, true
}

// restOfAddress is what follows the front of an address, up to the next white space.
func restOfAddress(r *reader) piece {
	n := 0
	for n < LongestSentence && !isSpace(r.at(n)) && r.at(n) != eof {
		n++
	}
	switch {
	case r.short:
		return piece{}
	case n < LongestSentence:
		// The white space ends it; it is silent, too, so that the piece is never empty.
		if r.at(n) != eof {
			n++
		}
		return piece{length: n, silent: true}
	}
	return piece{length: r.whole(n), silent: true, address: true}
}

// tooLong is where a sentence ends that has no end, given where its first word begins.
func tooLong(r *reader, start int) piece {
	text := r.text[:min(LongestSentence, len(r.text))]
	for p := len(text) - 2; p > LongestSentence/2; p-- {
		if n := r.clause(p); n > 0 && p+n+1 < len(text) { // clause looks one byte further
			return piece{length: p + n}
		}
	}
	for p := len(text) - 1; p > start; p-- {
		if isSpace(int(text[p])) {
			return piece{length: p}
		}
	}
	word := string(text[start:])
	return piece{length: r.whole(len(text)), address: strings.Contains(word, "://") || strings.HasPrefix(word, "www.")}
}

// eof is what a reader finds behind a text that has ended.
const eof = -1

// reader looks at a text of which more may come, and remembers when it was asked about what has not come yet: what was found then may be wrong.
type reader struct {
	text  []byte
	final bool // nothing more comes
	short bool // more is needed
}

// at is the byte at p, or eof.
func (r *reader) at(p int) int {
	if p < len(r.text) {
		return int(r.text[p])
	}
	r.short = r.short || !r.final
	return eof
}

// rune is the character at p; eof and 0 behind the text.
func (r *reader) rune(p int) (c rune, size int) {
	if r.at(p) == eof {
		return eof, 0
	}
	if !utf8.FullRune(r.text[p:]) {
		r.short = r.short || !r.final
	}
	return utf8.DecodeRune(r.text[p:])
}

// line is the end of the line at p, behind its newline, at most most.
func (r *reader) line(p, most int) int {
	for ; p < most && r.at(p) != eof; p++ {
		if r.at(p) == '\n' {
			return p + 1
		}
	}
	return p
}

// whole is n, or the beginning of the character that n would cut in two: bytes that are no text are cut anywhere.
func (r *reader) whole(n int) int {
	n = min(n, len(r.text))
	for p := n - 1; p > max(0, n-utf8.UTFMax); p-- {
		if utf8.RuneStart(r.text[p]) {
			if utf8.FullRune(r.text[p:n]) {
				return n
			}
			return p
		}
	}
	return n
}

func isSpace(c int) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

// Cut is the beginning of a text of at most most bytes, up to the last white space that is not in its first half, or else to the last whole character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if at := strings.LastIndexAny(text[:most+1], " \t\r\n"); at > 0 && at >= most/2 {
		return text[:at]
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
