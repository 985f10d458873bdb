// Package flite knows how CMU Flite is called: a small synthesizer of English with a handful of voices, made for machines without a network.
// It is Debian's package flite.
//
// [Command] is for package wavcommand, which runs it; [Available] and [Voices] say what there is.
package flite

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Label is what people are shown as the name of this engine.
const Label = "Flite, US English"

// Rate is that of its voices, in Hz, but for kal, which has half of it.
const Rate = 16000

// DefaultVoice is the clearest of the voices that the package brings along.
const DefaultVoice = "slt"

// ErrNotInstalled is wrapped by [Available] where the program is missing.
var ErrNotInstalled = errors.New("flite is not installed: apt-get install flite")

// Config says how to speak. Its zero value works where Debian's package is installed.
type Config struct {
	Program string // a name or a path; empty: flite
	Voice   string // one of [Voices]; empty: [DefaultVoice]
}

// Command is the program with its arguments. It reads text from standard input. Standard output has to be a file: flite writes the header of its WAV
// again after each of its own sentences, and to a pipe it writes nothing but the first one.
func Command(cfg Config) []string {
	return []string{cfg.program(), "-voice", cfg.voice(), "-f", "/dev/stdin", "-o", "/dev/stdout"}
}

func (c Config) program() string {
	if c.Program == "" {
		return "flite"
	}
	return c.Program
}

func (c Config) voice() string {
	if c.Voice == "" {
		return DefaultVoice
	}
	return c.Voice
}

// Available says why flite cannot speak here, or nil when it can: whether it is installed, and has the voice. It takes a few milliseconds.
//
// Without this question a misspelt voice would go unnoticed: flite speaks with another one then.
func Available(ctx context.Context, cfg Config) error {
	voices, err := Voices(ctx, cfg)
	if err != nil {
		return err
	}
	if !slices.Contains(voices, cfg.voice()) {
		return fmt.Errorf("flite: there is no voice %q: choose one of %s", cfg.voice(), strings.Join(voices, ", "))
	}
	return nil
}

// patience is how long flite may take to list its voices.
const patience = 5 * time.Second

// Voices lists the voices that flite has, in its own order. The error wraps [ErrNotInstalled] where there is no flite.
func Voices(ctx context.Context, cfg Config) ([]string, error) {
	path, err := exec.LookPath(cfg.program())
	if err != nil {
		return nil, fmt.Errorf("flite: %w", errors.Join(ErrNotInstalled, err))
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "-lv")
	cmd.WaitDelay = patience
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("flite: list voices: %w", err)
	}
	_, list, found := strings.Cut(string(out), ":")
	voices := strings.Fields(list)
	if !found || len(voices) == 0 {
		return nil, errors.New("flite: list voices: it names none")
	}
	return voices, nil
}
