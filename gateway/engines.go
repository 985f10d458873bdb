package gateway

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/pocketsphinx"
	"vela/session/silero"
	"vela/session/speech"
)

// Speech says how speech is recognised. Its zero value works where PocketSphinx is in the build and its model is
// installed.
type Speech struct {
	Model    string // folder of PocketSphinx's model; empty: where the system keeps it
	Decoders int    // how many utterances at once; 0: one a CPU, at least 2. Each takes about 100 MB once used
	Silero   silero.Files
}

// Report says which engines there are, and why not. It is what /api/engines answers and vela engines prints.
type Report struct {
	Turns       session.Turns `json:"turns"` // what a client gets that does not ask
	Agent       Engine        `json:"agent"`
	Transcriber Engine        `json:"transcriber"` // the first of Ears that is available, or the first
	Ears        []Engine      `json:"ears"`        // that recognise speech: the next one where one fails
	Voices      []Engine      `json:"voices"`      // the first that is available speaks, and the next where it fails
	Detectors   []Engine      `json:"detectors"`   // the first that is available tells speech from silence, hands-free
	Opus        Engine        `json:"opus"`        // for clients that want it; PCM16 is always there
}

// Engine is one agent or speech engine. Nothing in it names a path or a key of the host.
type Engine struct {
	Name      string `json:"name"`
	Label     string `json:"label"`
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"`     // it is not available, and what to do
	Better    string `json:"better,omitempty"`  // how to get a better one
	Offered   bool   `json:"offered,omitempty"` // it runs on this machine, and is not used unless the file names it

	Cause error `json:"-"` // the same as Why, for whoever runs the gateway; nil where Why is all there is to say

	probe func(context.Context) error // asks a server whether it is there; nil for what is none
}

// Report says which engines this gateway has, and asks those that are servers whether they are there, which takes up to 3 s, unless
// it has a moment ago. Where none are named it looks for better ears on this machine, which takes up to 0.3 s.
func (g *Gateway) Report(ctx context.Context) Report {
	speech := g.spoken.lately(ctx, g.askSpeech)
	ears := speech.ears
	if g.ears.plain() {
		ears = withOffers(ears, g.finder.lately(ctx))
	}
	return Report{
		Turns:       g.cfg.Turns,
		Agent:       g.agents.first(),
		Transcriber: firstThere(ears),
		Ears:        ears,
		Voices:      speech.voices,
		Detectors:   g.detects.report(),
		Opus:        g.describeOpus(),
	}
}

func (g *Gateway) describeOpus() Engine {
	e := Engine{Name: "opus", Label: "Opus, by libopus", Available: g.codec != nil}
	if !e.Available {
		e.Why = "This build has no Opus. Run make run, which installs and builds it."
	}
	return e
}

// firstThere is the first engine that is available, or else the first.
func firstThere(list []Engine) Engine {
	for _, e := range list {
		if e.Available {
			return e
		}
	}
	return list[0]
}

// engines holds what is loaded once and shared by all sessions.
type engines struct {
	cfg     pocketsphinx.Config
	missing error                    // why speech cannot be recognised, nil if it can
	loaded  chan struct{}            // closed when load is over
	sphinx  *pocketsphinx.Recognizer // nil if loading failed; not to be read before loaded is closed
	failed  error
	log     *slog.Logger
}

func newEngines(cfg Speech, log *slog.Logger) *engines {
	sphinx := pocketsphinx.Config{Model: cfg.Model, Decoders: cfg.Decoders, Log: log.With("component", "pocketsphinx")}
	return &engines{
		cfg:     sphinx,
		missing: pocketsphinx.Available(sphinx),
		loaded:  make(chan struct{}),
		log:     log.With("component", "engines"),
	}
}

// skip is for a gateway that recognises with something else.
func (e *engines) skip() { close(e.loaded) }

// load loads the recogniser, so that the first turn does not wait for it. It takes about a third of a second.
func (e *engines) load() {
	defer close(e.loaded)
	if e.missing != nil {
		e.log.Warn("no speech recognition", "reason", why(e.missing))
		return
	}
	start := time.Now()
	e.sphinx, e.failed = pocketsphinx.New(e.cfg)
	if e.failed != nil {
		e.log.Error("the recogniser did not load", "error", e.failed)
		return
	}
	e.log.Info("recogniser loaded", "engine", pocketsphinx.Label, "ms", time.Since(start).Milliseconds())
}

// close frees what load loaded. It is called after load has ended and no session runs.
func (e *engines) close() {
	if e.sphinx != nil {
		_ = e.sphinx.Close()
	}
}

var errLoading = errors.New("the recogniser is being loaded")

// ready is nil once turns can be served. A gateway without a recogniser is ready too: deterministic turns need none.
func (e *engines) ready() error {
	select {
	case <-e.loaded:
		return nil
	default:
		return errLoading
	}
}

func (e *engines) describe() Engine {
	d := Engine{
		Name:      "pocketsphinx",
		Label:     pocketsphinx.Label,
		Available: e.missing == nil,
		Better:    "It is made for commands and clear speech, not for dictation. A whisper server is better: name it below ears in vela.yaml.",
	}
	if e.missing != nil {
		d.Why = why(e.missing)
	}
	return d
}

// why says what to do, without the paths that the error may name.
func why(err error) string {
	switch {
	case errors.Is(err, pocketsphinx.ErrNotBuilt):
		return "This build has no local speech recognition. Run make run, which installs and builds it."
	case errors.Is(err, pocketsphinx.ErrNoModel):
		return "The speech model is missing. Install the package pocketsphinx-en-us, or name its folder with --speech-model."
	}
	return "The recogniser cannot be used here. Run vela engines to see why."
}

// transcriber is what one session recognises speech with; nil where speech cannot be recognised.
func (e *engines) transcriber() session.Transcriber {
	if e.missing != nil {
		return nil
	}
	return &listener{engines: e}
}

// listener recognises the speech of one session, whose user it grows used to. It waits for the recogniser that is being
// loaded, and gives its errors their codes. Transcribe may be called from several goroutines, as an utterance that was
// cancelled may still be ending.
type listener struct {
	*engines
	once    sync.Once
	speaker *pocketsphinx.Speaker
}

// unavailable tells a client that nobody can listen now.
type unavailable struct{ words string }

func (u unavailable) Error() string       { return u.words }
func (u unavailable) Code() protocol.Code { return protocol.CodeSpeechUnavailable }

var (
	errNotLoaded = unavailable{"The speech recogniser did not load. Its log says why."}
	errAllSpeak  = unavailable{"Everybody who may speak at once is speaking. Try again in a moment."}
)

// Transcribe implements [session.Transcriber].
func (l *listener) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		select {
		case <-l.loaded:
		case <-ctx.Done():
			return
		}
		if l.failed != nil {
			yield(speech.Transcript{}, errNotLoaded)
			return
		}
		l.once.Do(func() { l.speaker = l.sphinx.Speaker() })
		for t, err := range l.speaker.Transcribe(ctx, audio) {
			if errors.Is(err, pocketsphinx.ErrBusy) {
				err = errAllSpeak
			}
			if !yield(t, err) {
				return
			}
		}
	}
}
