// Command openclaw drives the built program, with an agent of the kind openclaw, against the real OpenClaw: turns, tool
// calls, failures, cancels, and OpenClaw killed in the middle of an answer and started again; and as a source of signals,
// while another client drives it. OpenClaw runs without
// network against a model of our own that answers by rote. It prints what it saw, -results keeps it, and it fails if
// anything was not as it should be.
//
// Start at checks.go. It needs npm, on Linux of the kind x64, and is not part of the tests: make e2e-openclaw.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	cache := flag.String("cache", "openclaw/.cache", "folder where OpenClaw is installed")
	program := flag.String("vela", "../bin/vela", "the program")
	results := flag.String("results", "", "file to keep what was seen in")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if err := run(ctx, *cache, *program, *results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cache, program, results string) error {
	if err := install(ctx, cache); err != nil {
		return err
	}
	d := &drive{program: program}
	var err error
	if d.model, err = startModel(); err != nil {
		return err
	}
	defer d.model.close()
	if d.claw, err = newClaw(cache, d.model.url); err != nil {
		return err
	}
	defer d.claw.close()
	d.dir = d.claw.home
	if err := d.claw.start(ctx); err != nil {
		return err
	}
	if d.vela, err = startVela(program, d.dir, token, d.claw.port); err != nil {
		return err
	}
	defer d.vela.kill()
	if d.session, err = d.vela.talk(ctx); err != nil {
		return err
	}
	defer d.session.close()
	defer func() {
		if d.observed != nil && d.observed.stop != nil {
			d.observed.stop()
		}
	}()
	if err := d.checks(ctx); err != nil {
		return fmt.Errorf("%w\nthe end of OpenClaw's log:\n%s", err, d.claw.tail())
	}
	if d.bad > 0 {
		return errors.New("not everything held")
	}
	if results == "" {
		return nil
	}
	return os.WriteFile(results, []byte(d.table()), 0o644)
}

// table is what is kept.
func (d *drive) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Vela against the real OpenClaw\n\nWritten by `make e2e-openclaw` on %s: OpenClaw %s on Node %s, without network, its model a server\nof this folder that answers by rote. Times are of two cores that had other work too.\n\n| what | what was seen |\n| --- | --- |\n",
		time.Now().UTC().Format(time.DateOnly), clawVersion, nodeVersion)
	for _, r := range d.rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r.what, strings.ReplaceAll(r.how, "|", "\\|"))
	}
	return b.String()
}
