package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"vela/gateway/tap"
)

type tapCmd struct {
	Endpoint      string   `help:"Gateway to send the signals to." default:"127.0.0.1:8080" env:"VELA_URL"`
	Source        string   `help:"Source of the signals; adapter:tap:jsonl, or with --raw adapter:tap:raw, unless given."`
	CorrelationID string   `name:"correlation-id" help:"What ties the signals to others of the same episode." placeholder:"ID"`
	Raw           bool     `help:"Take every line as text for people, rather than as JSON."`
	Command       []string `arg:"" passthrough:"partial" name:"command" help:"Program to run, and its arguments, behind --."`
}

// Help is shown by vela tap --help.
func (c *tapCmd) Help() string {
	return `The program runs as if nobody listened: its input, its output, its signals and its exit code are its own, and a gateway
that is not there neither stops nor slows it. Its output goes through a pipe, so it finds no terminal there. Each line that it
prints becomes a signal:

JSON of a well-known type, such as {"type": "tool_call", "toolName": "ls", "agentId": "me"}, as it is; other JSON as a
text_delta; what is no JSON is left out. With --raw a line with "Error:", "Exception:" or "FAILED" becomes an error, one
with "Calling tool:" or "Using:" a tool_call, one with "Result:" or "Output:" a tool_result, and every other a text_delta.

  vela tap -- my-agent --json
  vela tap --raw --source nightly -- make test`
}

// Validate is called by kong after parsing.
func (c *tapCmd) Validate() error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	const most = 256
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("say which program to run, behind --, such as vela tap -- my-agent --json")
	case utf8.RuneCountInString(c.Source) > most, utf8.RuneCountInString(c.CorrelationID) > most:
		return fmt.Errorf("--source and --correlation-id have at most %d characters", most)
	}
	return nil
}

// Exit codes for a program that cannot be run, as shells have them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// Run runs the program. Its exit code is ours.
func (c *tapCmd) Run(ctx context.Context, s streams) error {
	g, err := toGateway(c.Endpoint)
	if err != nil {
		return err
	}
	unhurried.Store(true) // the program takes the time that it takes
	ended, err := tap.Program{
		Command: c.Command,
		Lines:   tap.Lines{Text: c.Raw, Source: c.Source, CorrelationID: c.CorrelationID, NewID: uuid.NewString, Now: time.Now},
		Send:    g.send,
		Stdin:   os.Stdin, Stdout: s.out, Stderr: os.Stderr,
	}.Run(ctx)
	var start *exec.Error
	switch {
	case errors.As(err, &start), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(s.err, "vela: %s cannot be run: %v\n", c.Command[0], errors.Unwrap(err))
		if errors.Is(err, os.ErrPermission) {
			return exit(exitCannotRun)
		}
		return exit(exitNotFound)
	case err != nil && !errors.Is(err, syscall.EPIPE): // whoever read us has had enough
		fmt.Fprintln(s.err, "vela:", err)
	}
	if ended.Lost > 0 {
		fmt.Fprintf(s.err, "vela: %d of %d signals did not reach the gateway", ended.Lost, ended.Sent+ended.Lost)
		if ended.Why != nil {
			fmt.Fprintf(s.err, ": %v", ended.Why)
		}
		fmt.Fprintln(s.err)
	}
	return exit(ended.Code)
}
