package dispatch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"vela/protocol"
)

// failure is why a turn was not answered, in three versions: for the client, for whoever watches signal.json, and for
// the log. What a responder says of itself is in the log alone: it may name anything.
type failure struct {
	code  protocol.Code
	words string // for the client
	told  string // in signal.json; empty where it stands there already, or nothing can be written
	cause error  // for the log
}

func (f *failure) Error() string       { return f.words }
func (f *failure) Code() protocol.Code { return f.code }
func (f *failure) Unwrap() error       { return f.cause }

func unusable(cause error) error {
	return &failure{protocol.CodeAgentUnavailable, "The agent's folder cannot be used. Ask whoever runs the gateway to look into its log.", "", inside(cause)}
}

// inside is what the system says, without the folders of the host that lead to the file: a log is read by more people
// than those who may know them.
func inside(cause error) error {
	var at *fs.PathError
	if errors.As(cause, &at) && filepath.IsAbs(at.Path) {
		return fmt.Errorf("%s %s: %w", at.Op, filepath.Base(at.Path), at.Err)
	}
	return cause
}

func late(s Signal, after time.Duration) error {
	told := fmt.Sprintf("timeout: no artifact for dispatch_id %d within %v", s.DispatchID, after)
	return &failure{protocol.CodeAgentTimeout, "The agent did not answer in time. Ask again.", told, inCase(s, told)}
}

func unreadable(cause error) error {
	return &failure{protocol.CodeAgentFailed, "The agent's answer could not be read. Ask again.", cause.Error(), cause}
}

// reported is an error of the responder's; told is what signal.json does not say of it yet.
func reported(s Signal, told string) error {
	return &failure{protocol.CodeAgentFailed, "The agent reported an error. Ask again.", told, inCase(s, "the responder reports: "+brief(s.Error))}
}

func inCase(s Signal, what string) error {
	return errors.New(s.CaseID + " " + string(s.Step) + ": " + what)
}

// brief makes one line of at most 500 bytes of what somebody else wrote, with nothing in it that a terminal would obey.
func brief(text string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	line := strings.Join(strings.Fields(plain), " ")
	if len(line) > 500 {
		line = strings.ToValidUTF8(line[:497], "") + "…"
	}
	return line
}
