package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vela/turn/dispatch"
)

type respondCmd struct {
	Exec     string        `required:"" placeholder:"CMD" help:"Command that answers, run by sh -c: it reads the prompt from standard input and writes text or a JSON object to standard output. VELA_STEP, VELA_CASE and VELA_DISPATCH_ID tell it more."`
	Dir      string        `default:"." help:"Folder that the gateway dispatches to, with .asterisk in it."`
	Parallel int           `default:"4" help:"How many commands may run at once."`
	Timeout  time.Duration `default:"10m" help:"How long a command may take; a question that is older is not answered any more."`
}

// Validate is called by kong after parsing.
func (c *respondCmd) Validate() error {
	switch {
	case c.Exec == "":
		return errors.New("--exec: say which command answers")
	case c.Parallel < 1 || c.Parallel > 64:
		return errors.New("--parallel must be from 1 to 64")
	case c.Timeout < time.Second:
		return errors.New("--timeout must be at least 1s")
	}
	return nil
}

// Run answers until it is told to stop. Each question and what became of it is a line on standard error.
func (c *respondCmd) Run(ctx context.Context, io streams) error {
	fmt.Fprintf(io.err, "waiting for questions below %s\n", c.Dir)
	return dispatch.Responder{
		Dir: c.Dir, Answer: dispatch.Shell(c.Exec), Parallel: c.Parallel, Timeout: c.Timeout,
		Tell: func(line string) { fmt.Fprintln(io.err, line) },
	}.Run(ctx)
}
