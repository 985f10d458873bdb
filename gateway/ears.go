package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"

	"vela/session"
	"vela/session/sherpa"
	"vela/session/speech"
	"vela/session/speechserver"
)

// ears recognise speech: the first one, and the next where one fails.
type ears struct {
	list   []func() session.Transcriber // each makes one for a session
	report []Engine
	models []*localModel // that are to be loaded
	log    *slog.Logger
}

// makeEars makes the recognisers of the file, or PocketSphinx where it has none. One that is not there is left out.
func makeEars(f File, local *engines, log *slog.Logger) (*ears, error) {
	specs := f.ears
	if len(specs) == 0 {
		specs = []earSpec{{Kind: "pocketsphinx"}}
	}
	e := &ears{log: log.With("component", "ears")}
	for i, spec := range specs {
		if spec.Kind == "pocketsphinx" {
			e.report = append(e.report, local.describe())
			if local.missing == nil {
				e.list = append(e.list, local.transcriber)
			}
			continue
		}
		if spec.Kind == "sherpa" {
			if err := e.addSherpa(f, spec, log); err != nil {
				return nil, fmt.Errorf("%s: ear %d: %w", f.at(spec.line), i+1, err)
			}
			continue
		}
		engine := Engine{Name: spec.Kind, Label: spec.Label, Available: true}
		if engine.Label == "" {
			engine.Label = map[string]string{"openai": "A transcription server", "whisper": "whisper.cpp"}[spec.Kind]
		}
		t, err := spec.make(log)
		switch {
		case errors.Is(err, errNoKey):
			engine.Available, engine.Why = false, err.Error()
		case err != nil:
			return nil, fmt.Errorf("%s: ear %d: %w", f.at(spec.line), i+1, err)
		default:
			e.list = append(e.list, func() session.Transcriber { return t })
			engine.probe = t.Probe
		}
		e.report = append(e.report, engine)
	}
	return e, nil
}

// addSherpa adds a recogniser with a model of its own. Its error is that its folder cannot be named.
func (e *ears) addSherpa(f File, spec earSpec, log *slog.Logger) error {
	dir, err := pathFrom(f.dir, spec.Model)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	engine := Engine{Name: spec.Kind, Label: cmp.Or(spec.Label, sherpa.Label), Available: true}
	cfg := sherpa.Config{Model: dir, Language: spec.Language}
	if err := sherpa.Available(cfg); err != nil {
		engine.Available, engine.Why, engine.Cause = false, whyNoModel(err), err
		e.log.Warn("an ear is not there", "kind", spec.Kind, "reason", err)
	} else {
		m := newLocalModel(cfg, log.With("component", "sherpa"))
		e.models = append(e.models, m)
		e.list = append(e.list, func() session.Transcriber { return m })
	}
	e.report = append(e.report, engine)
	return nil
}

// close frees the models. It is called after they are loaded and no session runs.
func (e *ears) close() {
	for _, m := range e.models {
		m.close()
	}
}

// plain says whether there is nothing but PocketSphinx: then better ones are looked for.
func (e *ears) plain() bool {
	return !slices.ContainsFunc(e.report, func(r Engine) bool { return r.Name != "pocketsphinx" })
}

// served is a recogniser that is a server.
type served interface {
	session.Transcriber
	Probe(context.Context) error
}

func (e earSpec) make(log *slog.Logger) (served, error) {
	key, err := secret(e.KeyEnv)
	if err != nil {
		return nil, err
	}
	cfg := speechserver.Config{URL: e.URL, Key: key, Log: log.With("component", "ears")}
	hints := speechserver.Hints{Language: e.Language, Prompt: e.Prompt}
	if e.Kind == "whisper" {
		return speechserver.NewWhisperTranscriber(cfg, hints)
	}
	return speechserver.NewOpenAITranscriber(cfg, e.Model, hints)
}

// local says whether PocketSphinx is among them: then its model is loaded, and turns wait for it.
func (e *ears) local() bool {
	return slices.ContainsFunc(e.report, func(r Engine) bool { return r.Name == "pocketsphinx" })
}

// transcriber is what one session recognises speech with; nil where nothing can.
func (e *ears) transcriber() session.Transcriber {
	switch len(e.list) {
	case 0:
		return nil
	case 1:
		return e.list[0]()
	}
	t := listeners{log: e.log}
	for _, of := range e.list {
		t.list = append(t.list, of())
	}
	return t
}

// listeners are several recognisers as one: the next one hears the whole utterance when one fails before its end.
type listeners struct {
	list []session.Transcriber
	log  *slog.Logger
}

// Transcribe implements [session.Transcriber]. What has been heard is kept, as long as there is somebody to hear it again.
func (l listeners) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		var heard [][]int16
		for i, t := range l.list {
			last := i == len(l.list)-1
			failed, over := attemptToHear(ctx, t, again(&heard, audio, !last), last, yield)
			if over || ctx.Err() != nil {
				return
			}
			l.log.Warn("a recogniser failed; the next one goes on", "error", failed)
		}
	}
}

// again is what has been heard, and then the rest of the audio, which is added to it if somebody may need it once more.
func again(heard *[][]int16, audio iter.Seq[[]int16], keep bool) iter.Seq[[]int16] {
	return func(yield func([]int16) bool) {
		for _, piece := range *heard {
			if !yield(piece) {
				return
			}
		}
		for piece := range audio {
			if keep {
				*heard = append(*heard, slices.Clone(piece))
			}
			if !yield(piece) {
				return
			}
		}
	}
}

// attemptToHear lets one recogniser hear. Its error is held back unless it is the last one; over says that nobody else is
// to be asked.
func attemptToHear(ctx context.Context, t session.Transcriber, audio iter.Seq[[]int16], last bool, yield func(speech.Transcript, error) bool) (failed error, over bool) {
	final := false
	for transcript, err := range t.Transcribe(ctx, audio) {
		if err != nil && !last && !final && ctx.Err() == nil {
			return err, false
		}
		final = final || transcript.Final
		if !yield(transcript, err) || err != nil {
			return nil, true
		}
	}
	return errNoTranscript, final || last
}

var errNoTranscript = errors.New("gateway: the recogniser ended without a transcript")
