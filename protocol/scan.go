package protocol

import "bytes"

// maxDepth bounds how deep a message may nest, so that no message can exhaust the stack. No event needs more than a
// handful; encoding/json allows 10,000.
const maxDepth = 256

// envelope is where the two members of a message lie in its frame.
type envelope struct {
	typ     []byte // without its quotes
	payload []byte // the object, braces included
}

// scanEnvelope checks that the frame is one JSON value (RFC 8259), that it is an object, and finds type and payload.
func scanEnvelope(frame []byte) (envelope, error) {
	var typ, payload []byte
	s := scanner{buf: frame}
	if s.peek() != '{' {
		return envelope{}, s.notAnObject()
	}
	for m := s.enter(); m != nil; m = s.next(m) {
		switch {
		case m.is("type"):
			typ = m.value
		case m.is("payload"):
			payload = m.value
		}
	}
	if s.bad || !s.end() {
		return envelope{}, s.failure()
	}
	if len(typ) == 0 || typ[0] != '"' {
		return envelope{}, invalid("The message needs a string \"type\": the event's name.")
	}
	if len(payload) == 0 || payload[0] != '{' {
		return envelope{}, invalid("The message needs an object \"payload\"; {} if it has nothing to say.")
	}
	name, err := unquoted(typ)
	return envelope{typ: name, payload: payload}, err
}

// memberOf finds a member of an object that scanEnvelope has checked already; the last of several, nil if there is none.
func memberOf(object []byte, name string) []byte {
	var found []byte
	s := scanner{buf: object}
	for m := s.enter(); m != nil; m = s.next(m) {
		if m.is(name) {
			found = m.value
		}
	}
	return found
}

// scanner walks over JSON text once, without building anything. bad is set at the first fault and stays.
type scanner struct {
	buf  []byte
	pos  int
	bad  bool
	deep bool // the fault is only the depth
	m    pair // what enter and next return
}

// pair is one member of an object, as it stands in the text.
type pair struct {
	key   []byte // with its quotes
	value []byte
}

func (m *pair) is(name string) bool {
	inner := m.key[1 : len(m.key)-1]
	if len(inner) == len(name) {
		return string(inner) == name
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return false
	}
	key, err := unquoted(m.key)
	return err == nil && string(key) == name
}

// enter steps into the object at the scanner and onto its first member; nil if it has none, or is bad.
func (s *scanner) enter() *pair {
	s.pos++ // the brace
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	return s.pair(1)
}

// next steps to the member after m; nil at the object's end, or at a fault.
func (s *scanner) next(*pair) *pair {
	switch s.peek() {
	case ',':
		s.pos++
		return s.pair(1)
	case '}':
		s.pos++
		return nil
	}
	s.bad = true
	return nil
}

// pair reads "key" : value.
func (s *scanner) pair(depth int) *pair {
	if s.peek() != '"' {
		s.bad = true
		return nil
	}
	start := s.pos
	s.string()
	key := s.buf[start:s.pos]
	if s.bad || s.peek() != ':' {
		s.bad = true
		return nil
	}
	s.pos++
	s.peek()
	start = s.pos
	s.value(depth)
	if s.bad {
		return nil
	}
	s.m = pair{key, s.buf[start:s.pos]} // only now: value has had pairs of its own
	return &s.m
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
	rest := s.buf[s.pos+1:]
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			s.pos += i + 2
			return
		case c < ' ':
			s.bad = true
			return
		case c == '\\':
			n := escape(rest[i+1:])
			if n == 0 {
				s.bad = true
				return
			}
			i += n
		}
	}
	s.bad = true
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
		return invalid("The message nests deeper than %d levels. Send a flatter one.", maxDepth)
	}
	return errNotJSON
}
