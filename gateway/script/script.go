package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Script is one scripted conversation. Made by [Parse]; it may be run any number of times, and by several goroutines.
type Script struct {
	Name  string // as it was given to [Parse]
	About string // the first block of comments
	steps []step
}

// step is one line.
type step struct {
	line int
	text string
	do   action
}

// action plays one step; its error says, for a person, what was wrong.
type action func(ctx context.Context, p *player) error

// SyntaxError is one line that is no step.
type SyntaxError struct {
	Name string
	Line int
	Text string // what is wrong, and what to write instead
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Text) }

// Parse reads a script. The name, usually the file's, stands in errors and results, and WAV files are looked for beside
// it. The error holds one [*SyntaxError] for each line that is wrong, joined by [errors.Join].
func Parse(name, text string) (*Script, error) {
	p := parser{name: name, known: map[string]bool{}}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		p.line = i + 1
		p.read(strings.TrimSuffix(line, "\r"))
	}
	if len(p.steps) == 0 && len(p.errs) == 0 {
		p.errs = append(p.errs, &SyntaxError{name, len(lines), "the script has no step: write at least one, such as < {\"type\":\"session.ready\",\"payload\":\"<any>\"}"})
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &Script{Name: name, About: strings.Join(p.about, "\n"), steps: p.steps}, nil
}
