package pocketsphinx

import (
	"errors"
	"log/slog"
	"runtime"
	"time"
)

// Label is what people are shown as the name of this recogniser. Its model knows no other language.
const Label = "PocketSphinx, US English"

var (
	// ErrBusy ends a transcript when every decoder has been taken for longer than [Config.Wait].
	ErrBusy = errors.New("pocketsphinx: every decoder is busy: try again in a moment, or allow more decoders")
	// ErrClosed ends a transcript that was asked for after [Recognizer.Close].
	ErrClosed = errors.New("pocketsphinx: the recognizer is closed")
	// ErrNotBuilt comes from [New] and [Available] in a program that was built without the library.
	ErrNotBuilt = errors.New("pocketsphinx: local speech recognition is not in this build: install libpocketsphinx-dev, libsphinxbase-dev, " +
		"pocketsphinx-en-us and pkg-config, then build with CGO_ENABLED=1 and -tags pocketsphinx")
	// ErrNoModel is wrapped by [New] and [Available] when no complete model was found; the error says where it was looked for.
	ErrNoModel = errors.New("no model")
)

// Config says how to recognise. Its zero value works where the model is installed.
type Config struct {
	Model    string        // folder of the model, as the package pocketsphinx-en-us lays it out; empty: where the system keeps it
	Decoders int           // how many utterances at once, at most; 0: one a CPU, but at least 2 and at most 8. Each loaded one takes about 100 MB
	Wait     time.Duration // how long an utterance waits for a free decoder; 0: 5 s
	Log      *slog.Logger  // nil discards
}

const (
	leastDecoders = 2
	mostDecoders  = 8 // as a default: 800 MB
	defaultWait   = 5 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Decoders <= 0 {
		c.Decoders = min(max(runtime.NumCPU(), leastDecoders), mostDecoders)
	}
	if c.Wait <= 0 {
		c.Wait = defaultWait
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Available says why local recognition cannot work here, or nil when it can: whether the library is in this build, then whether a complete
// model is found. It looks at a dozen file names and loads nothing.
func Available(cfg Config) error {
	if !built {
		return ErrNotBuilt
	}
	_, err := findModel(cfg.Model)
	return err
}
