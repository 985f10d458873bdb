package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"vela/session"
	"vela/session/flite"
	"vela/session/wavcommand"
)

// voiceSpec is one voice of a [File].
type voiceSpec struct {
	Kind     string   `yaml:"kind"`     // one of [voiceKinds]
	Label    string   `yaml:"label"`    // what people see
	Voice    string   `yaml:"voice"`    // the engine's name for it
	Command  []string `yaml:"command"`  // reads text, and writes WAV
	Seekable bool     `yaml:"seekable"` // it goes back in its output, as flite does
}

// voiceKinds are the kinds of voices, in the order of the README.
var voiceKinds = []string{"flite", "command"}

func (v voiceSpec) check() error {
	switch {
	case v.Kind == "command" && len(v.Command) == 0:
		return errors.New("command is missing")
	case v.Kind != "command" && (len(v.Command) > 0 || v.Seekable):
		return errors.New("command and seekable are for voices of the kind command")
	}
	return nil
}

// voices speak the answers: the first one, and the next where one fails.
type voices struct {
	list   []session.Synthesizer
	report []Engine
}

// makeVoices makes the voices of the file, or flite where it has none. One that is not there is left out, and says why.
func makeVoices(specs []voiceSpec, log *slog.Logger) *voices {
	if len(specs) == 0 {
		specs = []voiceSpec{{Kind: "flite"}}
	}
	v := &voices{}
	for i, spec := range specs {
		engine := Engine{Name: spec.Kind, Label: spec.Label, Available: true}
		s, err := spec.make(&engine, log)
		if err != nil {
			engine.Available, engine.Why = false, err.Error()
			log.Warn("a voice is not there", "voice", i+1, "kind", spec.Kind, "reason", err)
		} else {
			v.list = append(v.list, s)
		}
		v.report = append(v.report, engine)
	}
	return v
}

func (v voiceSpec) make(e *Engine, log *slog.Logger) (session.Synthesizer, error) {
	cfg := wavcommand.Config{Argv: v.Command, Seekable: v.Seekable, Log: log.With("component", "voice")}
	switch v.Kind {
	case "flite":
		f := flite.Config{Voice: v.Voice}
		if e.Label == "" {
			e.Label = flite.Label
		}
		e.Better = "It is made for machines without a network, and sounds like one."
		if err := flite.Available(context.Background(), f); err != nil {
			return nil, notInstalled(err)
		}
		cfg.Argv, cfg.Seekable = flite.Command(f), true
	case "command":
		if e.Label == "" {
			e.Label = "A command"
		}
	default:
		return nil, fmt.Errorf("gateway: no voice of the kind %q", v.Kind)
	}
	return wavcommand.New(cfg)
}

// notInstalled leaves out what the system says, which may be a path.
func notInstalled(err error) error {
	if errors.Is(err, flite.ErrNotInstalled) {
		return flite.ErrNotInstalled
	}
	return err
}
