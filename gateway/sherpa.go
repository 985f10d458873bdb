package gateway

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"vela/session"
	"vela/session/sherpa"
	"vela/session/speech"
)

// localModel recognises speech with a model that is loaded beside the gateway.
type localModel struct {
	cfg    sherpa.Config
	loaded chan struct{}      // closed when load is over
	engine *sherpa.Recognizer // nil if loading failed; not to be read before loaded is closed
	log    *slog.Logger
}

func newLocalModel(cfg sherpa.Config, log *slog.Logger) *localModel {
	cfg.Log = log
	return &localModel{cfg: cfg, loaded: make(chan struct{}), log: log}
}

// whyNoModel says what to do, without the paths that the error may name.
func whyNoModel(err error) string {
	if errors.Is(err, sherpa.ErrNotBuilt) {
		return "This build has no sherpa-onnx. Build it with make build SHERPA=1."
	}
	return "Its folder holds no model that can be used. Run vela engines to see what is missing."
}

func (m *localModel) load() {
	defer close(m.loaded)
	start := time.Now()
	engine, err := sherpa.New(m.cfg)
	if err != nil {
		m.log.Error("the model did not load", "error", err)
		return
	}
	m.engine = engine
	m.log.Info("recogniser loaded", "engine", sherpa.Label, "ms", time.Since(start).Milliseconds())
}

// close frees what load loaded. It is called after load has ended and no session runs.
func (m *localModel) close() {
	if m.engine != nil {
		_ = m.engine.Close()
	}
}

var _ session.Transcriber = (*localModel)(nil)

// Transcribe implements [session.Transcriber]. It waits for the model that is being loaded, and gives errors their codes.
func (m *localModel) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		select {
		case <-m.loaded:
		case <-ctx.Done():
			return
		}
		if m.engine == nil {
			yield(speech.Transcript{}, errNotLoaded)
			return
		}
		for t, err := range m.engine.Transcribe(ctx, audio) {
			if errors.Is(err, sherpa.ErrBusy) {
				err = errAllSpeak
			}
			if !yield(t, err) {
				return
			}
		}
	}
}
