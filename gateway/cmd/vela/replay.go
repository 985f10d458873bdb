package main

import (
	"fmt"
	"os"

	"vela/gateway/script"
	"vela/session"
	"vela/session/opus"
	"vela/turn/deterministic"
)

type replayCmd struct {
	Files  []string `arg:"" help:"Journals, as vela serve --journal DIR writes them."`
	Script bool     `help:"Print a scripted turn made of the journal, for vela script, in place of replaying it."`
}

// printScript makes a script of the journal.
func (c *replayCmd) printScript(io streams) error {
	name := c.Files[0]
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := script.FromJournal(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprint(io.out, text)
	return err
}

// Validate is called by kong after parsing.
func (c *replayCmd) Validate() error {
	if c.Script && len(c.Files) > 1 {
		return fmt.Errorf("--script makes one script of one journal: name one")
	}
	return nil
}

// Run replays each journal and ends with 1 when one came out differently.
func (c *replayCmd) Run(io streams) error {
	if c.Script {
		return c.printScript(io)
	}
	different := 0
	for _, name := range c.Files {
		r, err := replayFile(name)
		switch {
		case err != nil:
			return err
		case r.Different != nil:
			different++
			d := r.Different
			fmt.Fprintf(io.out, "DIFFERENT %s: line %d\n  input    %s\n  recorded %s\n  now      %s\n",
				name, d.Line, shorten(d.Input), orNothing(d.Want), orNothing(d.Got))
		default:
			fmt.Fprintf(io.out, "SAME %s (%d inputs, %d events)\n", name, r.Inputs, r.Events)
		}
	}
	if different > 0 {
		return exit(1)
	}
	return nil
}

func replayFile(name string) (session.Replayed, error) {
	f, err := os.Open(name)
	if err != nil {
		return session.Replayed{}, err
	}
	defer f.Close()
	codec, _ := opus.New() // without it the journal of a session in Opus says what is missing
	r, err := session.Replay(f, deterministic.Engine{}, codec)
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// shorten keeps a line of audio from filling the screen.
func shorten(line string) string {
	const most = 300
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}

func orNothing(event string) string {
	if event == "" {
		return "(no event)"
	}
	return event
}
