package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"vela/session"
	"vela/session/flite"
	"vela/session/speechserver"
	"vela/session/wavcommand"
)

// voices speak the answers: the one that a client has chosen or else the first, and the next where one fails.
type voices struct {
	list   []session.NamedVoice
	report []Engine
}

// flites are flite's voices, where no file names one: the clearest first, and without those that only tell the time or are a
// worse copy of another.
func flites() []voiceSpec {
	specs := []voiceSpec{{Kind: "flite"}}
	there, err := flite.Voices(context.Background(), flite.Config{})
	if err != nil {
		return specs // and its error is told when it is made
	}
	for _, voice := range []string{"rms", "awb", "kal16"} {
		if slices.Contains(there, voice) {
			specs = append(specs, voiceSpec{Kind: "flite", Name: "flite-" + voice, Label: "Flite, " + voice, Voice: voice})
		}
	}
	return specs
}

// name is what clients ask for a voice by: its own, or its kind with a number where that is taken.
func (v voiceSpec) name(taken []Engine) string {
	name := cmp.Or(v.Name, v.Kind)
	for n := 2; slices.ContainsFunc(taken, func(e Engine) bool { return e.Name == name }); n++ {
		name = fmt.Sprintf("%s-%d", cmp.Or(v.Name, v.Kind), n)
	}
	return name
}

// makeVoices makes the voices of the file, or flite's where it has none. One that is not there is left out, and says why.
func makeVoices(f File, log *slog.Logger) (*voices, error) {
	specs := f.voices
	if len(specs) == 0 {
		specs = flites()
	}
	v := &voices{}
	for i, spec := range specs {
		engine := Engine{Name: spec.name(v.report), Label: spec.Label, Available: true}
		s, err := spec.make(&engine, log)
		switch {
		case err != nil && spec.URL != "" && !errors.Is(err, errNoKey):
			return nil, fmt.Errorf("%s: voice %d: %w", f.at(spec.line), i+1, err)
		case err != nil:
			engine.Available, engine.Why, engine.Cause = false, publicly(err), err
			log.Warn("a voice is not there", "voice", i+1, "kind", spec.Kind, "reason", err)
		default:
			v.list = append(v.list, session.NamedVoice{Name: engine.Name, Synthesizer: s})
		}
		v.report = append(v.report, engine)
	}
	return v, nil
}

func (v voiceSpec) make(e *Engine, log *slog.Logger) (session.Synthesizer, error) {
	if v.URL != "" {
		return v.server(e, log)
	}
	cfg := wavcommand.Config{Argv: v.Command, Seekable: v.Seekable, Log: log.With("component", "voice")}
	switch v.Kind {
	case "flite":
		f := flite.Config{Voice: v.Voice}
		if e.Label == "" {
			e.Label = flite.Label
		}
		e.Better = "It is made for machines without a network, and sounds like one."
		if err := flite.Available(context.Background(), f); err != nil {
			return nil, withoutPath(err)
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

func (v voiceSpec) server(e *Engine, log *slog.Logger) (session.Synthesizer, error) {
	e.Label = cmp.Or(e.Label, map[string]string{"openai": "A speech server", "piper": "Piper"}[v.Kind])
	key, err := secret(v.KeyEnv)
	if err != nil {
		return nil, err
	}
	cfg := speechserver.Config{URL: v.URL, Key: key, Log: log.With("component", "voice")}
	if v.Kind == "piper" {
		voice := speechserver.PiperVoice{Voice: v.Voice}
		if v.Speed > 0 {
			voice.LengthScale = 1 / v.Speed
		}
		s, err := speechserver.NewPiperSynthesizer(cfg, voice)
		if err != nil {
			return nil, err
		}
		e.probe = s.Probe
		return s, nil
	}
	s, err := speechserver.NewOpenAISynthesizer(cfg, speechserver.OpenAIVoice{Model: v.Model, Voice: v.Voice, Rate: v.Rate, Speed: v.Speed})
	if err != nil {
		return nil, err
	}
	e.probe = s.Probe
	return s, nil
}

// withoutPath leaves out what the system says of flite.
func withoutPath(err error) error {
	if errors.Is(err, flite.ErrNotInstalled) {
		err = flite.ErrNotInstalled
	}
	return notThere(err.Error())
}
