package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"vela/gateway"
	"vela/session/silero"
)

type enginesCmd struct {
	Config      configFile `help:"File that says which agents there are; vela.yaml in this folder, where there is one, unless given." placeholder:"FILE" env:"VELA_CONFIG"`
	SpeechModel string     `help:"Folder of PocketSphinx's model; where the system keeps it, unless given." placeholder:"DIR" env:"VELA_SPEECH_MODEL"`
	ONNXRuntime string     `name:"onnxruntime" help:"Library of ONNX Runtime, which detects speech; beside the program, or where the system keeps libraries, unless given." placeholder:"FILE" env:"VELA_ONNXRUNTIME"`
	Silero      string     `help:"Silero's model for it; beside the program, unless given." placeholder:"FILE" env:"VELA_SILERO"`
}

// Run prints a table.
func (c *enginesCmd) Run(ctx context.Context, io streams) error {
	file, err := c.Config.read()
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{Agents: file, Speech: gateway.Speech{Model: c.SpeechModel, Silero: silero.Files{Library: c.ONNXRuntime, Model: c.Silero}}})
	if err != nil {
		return err
	}
	r := g.Report(ctx)
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tNAME\tTHERE\tWHAT")
	row := func(kind string, e gateway.Engine) {
		there, what := "yes", e.Label
		if !e.Available {
			there, what = "no", e.Label+". "+e.Why
			if e.Offered {
				there = "offered"
			}
			if e.Cause != nil {
				what = e.Label + ". " + e.Cause.Error()
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", kind, e.Name, there, what)
	}
	agents, servers := g.Probe(ctx)
	for _, a := range agents.Agents {
		row("agent, "+a.Kind, gateway.Engine{Name: a.Name, Label: a.Label, Available: a.Available, Cause: a.Cause})
	}
	for _, s := range servers {
		row("mcp server", s)
	}
	for _, e := range r.Ears {
		row("speech to text", e)
	}
	for _, v := range r.Voices {
		row("text to speech", v)
	}
	for _, d := range r.Detectors {
		row("speech detection", d)
	}
	row("sound", r.Opus)
	return w.Flush()
}
