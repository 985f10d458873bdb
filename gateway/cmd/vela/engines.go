package main

import (
	"fmt"
	"text/tabwriter"

	"vela/gateway"
)

type enginesCmd struct {
	SpeechModel string `help:"Folder of PocketSphinx's model; where the system keeps it, unless given." placeholder:"DIR" env:"VELA_SPEECH_MODEL"`
}

// Run prints a table.
func (c *enginesCmd) Run(io streams) error {
	g, err := gateway.New(gateway.Config{Speech: gateway.Speech{Model: c.SpeechModel}})
	if err != nil {
		return err
	}
	r := g.Report()
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tNAME\tTHERE\tWHAT")
	row := func(kind string, e gateway.Engine) {
		there, what := "yes", e.Label
		if !e.Available {
			there, what = "no", e.Label+". "+e.Why
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", kind, e.Name, there, what)
	}
	row("agent", r.Agent)
	row("speech to text", r.Transcriber)
	return w.Flush()
}
