package wavcommand

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os/exec"
	"path/filepath"
	"time"

	"vela/session/speech"
)

// Config says which command speaks. Argv is required.
type Config struct {
	// Argv is the program and its arguments. It reads UTF-8 text from standard input to its end and writes a WAV file to standard output, of any
	// format that [speech.StreamWAV] reads; what it writes to standard error goes to the log.
	Argv []string
	// Seekable is for a command that goes back in its output to fill in lengths: standard output is a file then, which has no name and is heard
	// when the command has ended. Its arguments may name it /dev/stdout.
	Seekable bool

	Processes int           // at once, at most; 0: 4. A sentence past that waits for one to end
	Timeout   time.Duration // of one sentence; 0: 60 s
	Log       *slog.Logger  // nil discards
}

const (
	defaultProcesses = 4
	defaultTimeout   = time.Minute
)

// Bounds of one sentence.
const (
	longestText   = 4096 // bytes; what is longer is cut between words
	longestSpeech = 10 * time.Minute
)

// Synthesizer speaks with a command. Its methods may be called from any goroutine; it holds nothing between sentences.
type Synthesizer struct {
	cfg   Config
	slots chan struct{} // one taken for each process
	log   *slog.Logger
}

// Available says why the command cannot speak, or nil where its program is there. It starts nothing.
func Available(cfg Config) error {
	if len(cfg.Argv) == 0 {
		return errors.New("wavcommand: no command is set")
	}
	if _, err := exec.LookPath(cfg.Argv[0]); err != nil {
		return fmt.Errorf("wavcommand: %w", err)
	}
	return nil
}

// New returns a synthesizer, or what [Available] says.
func New(cfg Config) (*Synthesizer, error) {
	if err := Available(cfg); err != nil {
		return nil, err
	}
	if cfg.Processes <= 0 {
		cfg.Processes = defaultProcesses
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Synthesizer{cfg: cfg, slots: make(chan struct{}, cfg.Processes), log: cfg.Log.With("command", filepath.Base(cfg.Argv[0]))}, nil
}

var errTimeout = errors.New("wavcommand: the command takes too long for one sentence")

// Synthesize speaks one sentence, in chunks of [speech.LongestChunk] at most, each as soon as it is written. Text without a word costs a process, too.
//
// It yields from the goroutine that ranges over it. An error comes last: the cause of ctx, or an [*Error]. Leaving the loop kills the process,
// as ctx does, and neither leaves one behind.
func (s *Synthesizer) Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error] {
	return func(yield func(speech.Chunk, error) bool) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			yield(speech.Chunk{}, context.Cause(ctx))
			return
		}
		if whole := len(text); whole > longestText {
			text = speech.Cut(text, longestText)
			s.log.Warn("text cut off", "bytes", whole, "spoken", len(text))
		}
		limited, stop := context.WithTimeoutCause(ctx, s.cfg.Timeout, errTimeout)
		defer stop()
		left := false
		err := s.run(limited, text, func(c speech.Chunk) bool {
			left = !yield(c, nil)
			return !left
		})
		switch {
		case left || err == nil:
		case ctx.Err() != nil:
			yield(speech.Chunk{}, context.Cause(ctx))
		default:
			yield(speech.Chunk{}, err)
		}
	}
}
