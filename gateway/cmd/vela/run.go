package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// streams are where a command writes: its result to out, everything else to err.
type streams struct{ out, err io.Writer }

// run parses the arguments and runs the command. It returns the exit code: 0, 1 when the command failed, 2 when it was
// called wrongly.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	code, done := 0, false
	var c cli
	parser, err := kong.New(&c,
		kong.Name("vela"), kong.Description(description), kong.Writers(out, errs),
		kong.Exit(func(n int) { code, done = n, true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(streams{out, errs}),
	)
	if err != nil {
		fmt.Fprintln(errs, "vela:", err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if done {
		return code
	}
	if err != nil {
		fmt.Fprintf(errs, "vela: %v\nRun vela --help, or vela COMMAND --help.\n", err)
		return 2
	}
	return exitCode(command.Run(), errs)
}

func exitCode(err error, errs io.Writer) int {
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(errs, "vela: %v\n", err)
	return 1
}
