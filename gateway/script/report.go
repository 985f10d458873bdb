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
	if len(p.past) > maxPast+1 {
		p.past = p.past[1:]
	}
}

// explain makes a failure readable: the step, what was wrong, and what came before.
func (p *player) explain(s step, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s", short(s.text), shortLines(err.Error()))
	past := p.past
	if n := len(past); n > 0 && strings.Contains(err.Error(), "got       ") && strings.Contains(past[n-1], "< ") {
		past = past[:n-1] // what was got is the last of them
	}
	if len(past) > 0 {
		b.WriteString("\nbefore it\n" + indent(strings.Join(past, "\n")))
	}
	return &explained{b.String(), err}
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

// short cuts a long text.
func short(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:cut], len(text))
}

func shortLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = short(lines[i])
	}
	return strings.Join(lines, "\n")
}

// unreachable says whether an error is that no gateway is there at all.
func unreachable(err error) bool {
	var dial *client.DialError
	return errors.As(err, &dial) && dial.Status == 0
}
