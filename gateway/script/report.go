package script

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"vela/gateway/client"
)

// maxPast is how many messages before a failure are shown, maxShown how much of each, in bytes.
const (
	maxPast  = 6
	maxShown = 300
)

// note keeps what has just happened on a connection, for the case that the next step fails.
func (p *player) note(name, what string) {
	if name != "" && what[0] != '<' && what[0] != '>' {
		name += ": "
	}
	p.past = append(p.past, name+short(what))
	if len(p.past) > maxPast+1 { // the last may be the failing step's own
		p.past = p.past[1:]
	}
}

// explain makes a failure readable: the step, what was wrong, and what came before.
func (p *player) explain(s step, err error) error {
	text := short(s.text) + "\n" + err.Error()
	past := p.past
	if n := len(past); n > 0 && strings.Contains(text+"\n", gotLine(past[n-1])) {
		past = past[:n-1] // the step itself took it, and has shown it
	}
	if past = past[max(0, len(past)-maxPast):]; len(past) > 0 {
		text += "\nbefore it\n" + indent(strings.Join(past, "\n"))
	}
	return &explained{text, err}
}

// gotLine is how a failure shows what arrived last.
func gotLine(past string) string {
	_, what, arrived := strings.Cut(past, "< ")
	if !arrived {
		return "\x00" // nothing shows this
	}
	return "got       " + what + "\n"
}

// explained is an error with a longer text.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

// String is what arrived, as it is shown to a person.
func (a arrival) String() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.raw.Binary:
		return fmt.Sprintf("a binary message of %d bytes: % x", len(a.raw.Data), a.raw.Data[:min(len(a.raw.Data), 16)])
	case len(a.raw.Data) == 0:
		return "an empty message"
	}
	return short(string(a.raw.Data))
}

// short is a text in one line, and not too long.
func short(text string) string {
	if len(text) > maxShown {
		cut := maxShown
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = fmt.Sprintf("%s… (%d bytes)", text[:cut], len(text))
	}
	return strings.ReplaceAll(text, "\n", `\n`)
}

// unreachable says whether an error is that no gateway is there at all.
func unreachable(err error) bool {
	var dial *client.DialError
	return errors.As(err, &dial) && dial.Status == 0
}
