package protocol

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxDepth bounds how deep a message may nest, so that no message can exhaust the stack. No event needs more than a
// handful; encoding/json allows 10,000.
const maxDepth = 256

// envelope is where the members of a message lie in its frame.
type envelope struct {
	typ     []byte // without its quotes
	payload []byte // the object, braces included

	id, seq, ts []byte // as they stand, nil where they do not; only version 2 looks at them
}

// scanEnvelope checks that the frame is one JSON value (RFC 8259), that it is an object, and finds its members. Of an
// object that is no event it returns, with the error, what else it found.
func scanEnvelope(frame []byte) (envelope, error) {
	var e envelope
	s := scanner{buf: frame}
	if s.peek() != '{' {
		return e, s.notAnObject()
	}
	for found := s.enter(); found; found = s.next() {
		switch {
		case s.at("type"):
			e.typ = s.member
		case s.at("payload"):
			e.payload = s.member
		case s.at("id"):
			e.id = s.member
		case s.at("seq"):
			e.seq = s.member
		case s.at("ts"):
			e.ts = s.member
		}
	}
	if s.bad || !s.end() {
		return envelope{}, s.failure()
	}
	if len(e.typ) == 0 || e.typ[0] != '"' {
		return e, invalid("The message needs a string \"type\": the event's name.")
	}
	if len(e.payload) == 0 || e.payload[0] != '{' {
		return e, invalid("The message needs an object \"payload\"; {} if it has nothing to say.")
	}
	var err error
	e.typ, err = unquoted(e.typ)
	return e, err
}

// memberOf finds a member of an object that scanEnvelope has checked already; the last of several, nil if there is none.
func memberOf(object []byte, name string) []byte {
	var last []byte
	s := scanner{buf: object}
	for found := s.enter(); found; found = s.next() {
		if s.at(name) {
			last = s.member
		}
	}
	return last
}

// scanner walks over JSON text once, without building anything. bad is set at the first fault and stays.
type scanner struct {
	buf  []byte
	pos  int
	bad  bool
	deep bool // the fault is only the depth

	// The member that enter, next or pair has read last, as it stands in the text.
	key    []byte // without its quotes
	member []byte
}

// at says whether the member has this name, which must be letters only: they stand for themselves or as \u00xx, and
// no other escape means a letter. Nothing is allocated, however many keys a message has.
func (s *scanner) at(name string) bool {
	key := s.key
	for i := range len(name) {
		var c byte
		switch {
		case len(key) == 0:
			return false
		case bytes.HasPrefix(key, []byte(`\u00`)): // two hex digits follow: the key has been checked
			c, key = unhex(key[4])<<4|unhex(key[5]), key[6:]
		default:
			c, key = key[0], key[1:]
		}
		if c != name[i] {
			return false
		}
	}
	return len(key) == 0
}

// enter steps into the object at the scanner and onto its first member; false if it has none, or is bad.
func (s *scanner) enter() bool {
	s.pos++ // the brace
	if s.peek() == '}' {
		s.pos++
		return false
	}
	return s.pair(1)
}

// next steps to the next member; false at the object's end, or at a fault.
func (s *scanner) next() bool {
	switch s.peek() {
	case ',':
		s.pos++
		return s.pair(1)
	case '}':
		s.pos++
		return false
	}
	s.bad = true
	return false
}

// pair reads "key" : value.
func (s *scanner) pair(depth int) bool {
	if s.peek() != '"' {
		s.bad = true
		return false
	}
	start := s.pos
	s.string()
	end := s.pos
	if s.bad || s.peek() != ':' {
		s.bad = true
		return false
	}
	s.pos++
	s.peek()
	from := s.pos
	s.value(depth)
	s.key, s.member = s.buf[start+1:end-1], s.buf[from:s.pos] // only now: the value may have had members of its own
	return !s.bad
}

// peek skips white space and returns the next byte without taking it; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.buf); s.pos++ {
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end says whether nothing but white space is left.
func (s *scanner) end() bool { return s.peek() == 0 && s.pos == len(s.buf) }

// value reads any value; depth counts the containers around it.
func (s *scanner) value(depth int) {
	switch c := s.peek(); {
	case c == '"':
		s.string()
	case c == '{' || c == '[':
		s.container(c, depth+1)
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.bad = true
	}
}

func (s *scanner) container(open byte, depth int) {
	if depth > maxDepth {
		s.bad, s.deep = true, true
		return
	}
	s.pos++
	closing := open + 2 // in ASCII ']' and '}' are two after '[' and '{'
	if s.peek() == closing {
		s.pos++
		return
	}
	for !s.bad {
		if open == '{' {
			s.pair(depth)
		} else {
			s.value(depth)
		}
		if s.bad {
			return
		}
		switch s.peek() {
		case ',':
			s.pos++
		case closing:
			s.pos++
			return
		default:
			s.bad = true
		}
	}
}

func (s *scanner) literal(word string) {
	if !bytes.HasPrefix(s.buf[s.pos:], []byte(word)) {
		s.bad = true
		return
	}
	s.pos += len(word)
}

// string reads a string, its opening quote at the scanner. Bytes beyond ASCII pass: whether a message is UTF-8 is the
// WebSocket's matter, before this.
func (s *scanner) string() {
	s.pos++
	for {
		s.pos += plain(s.buf[s.pos:])
		if s.skip('"') {
			return
		}
		n := 0
		if s.skip('\\') {
			n = escape(s.buf[s.pos:])
		}
		if n == 0 { // no escape, a control character, or the end of the text
			s.bad = true
			return
		}
		s.pos += n
	}
}

// plain returns how many bytes there are before a quote, a backslash or a control character. It looks at eight at a
// time, as most of what arrives is one long string. Subtracting n from every byte of a word borrows, which shows in the
// high bit, where the byte is less than n. Flipping bit 1 puts the quote right above the control characters, so that
// less than 0x21 finds both; flipping the backslash's bits makes it 0, less than 1. A borrow spoils only the bytes
// above, and the lowest is the one that counts.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := w^ones*('"'^' '), w^ones*'\\'
		stop := ((quote-ones*(' '+1))&^quote | (backslash-ones)&^backslash) & highs
		if stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// escape returns how long the escape after a backslash is, 0 if it is none.
func escape(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(b) >= 5 && hex(b[1]) && hex(b[2]) && hex(b[3]) && hex(b[4]) {
			return 5
		}
	}
	return 0
}

func hex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// unhex is the value of a hex digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&7 + 9 // in ASCII the letters' low bits count from 1
}

// number reads -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *scanner) number() {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		s.bad = true
		return
	}
	if s.skip('.') && !s.digits() {
		s.bad = true
		return
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		if !s.digits() {
			s.bad = true
		}
	}
}

func (s *scanner) skip(c byte) bool {
	if s.pos < len(s.buf) && s.buf[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.buf) && '0' <= s.buf[s.pos] && s.buf[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// notAnObject tells a good value that is no object from what is not JSON at all.
func (s *scanner) notAnObject() error {
	s.value(0)
	if s.bad || !s.end() {
		return s.failure()
	}
	return invalid("The message is not a JSON object. Send one with \"type\" and \"payload\".")
}

func (s *scanner) failure() error {
	if s.deep {
		return errTooDeep
	}
	return errNotJSON
}
