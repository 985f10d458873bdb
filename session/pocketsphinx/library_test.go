//go:build cgo && pocketsphinx

package pocketsphinx

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"vela/session/speech"
)

var update = flag.Bool("update", false, "speak the sentences of testdata again, with flite")

// sentence is one of testdata, said by a voice of flite.
type sentence struct{ voice, text string }

var sentences = []sentence{
	{"slt", "what time is it"},
	{"slt", "cancel that please"},
	{"slt", "how are you today"},
	{"kal16", "good morning"},
	{"kal16", "what is the weather like today"},
	{"rms", "turn on the light"},
}

func (s sentence) file() string {
	return filepath.Join("testdata", s.voice+"_"+strings.ReplaceAll(s.text, " ", "_")+".wav")
}

// samples reads the sentence, or has it spoken first.
func (s sentence) samples(t *testing.T) []int16 {
	t.Helper()
	if *update {
		if out, err := exec.Command("flite", "-voice", s.voice, "-t", s.text, "-o", s.file()).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	f, err := os.Open(s.file())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wav, err := speech.ReadWAV(f, 10*speech.Rate)
	if err != nil || wav.Rate != speech.Rate {
		t.Fatalf("%s: %d Hz, %v", s.file(), wav.Rate, err)
	}
	return wav.Samples
}

// library is a recogniser of the real thing, with so many decoders.
func library(t *testing.T, cfg Config) *Recognizer {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestWordsAreRecognised(t *testing.T) {
	r := library(t, Config{Decoders: 1})
	for round, s := range append(sentences, sentences...) { // twice: what was heard before makes no difference
		partials, final, err := read(t, r.Transcribe(t.Context(), frames(s.samples(t))))
		if final != s.text || err != nil {
			t.Errorf("%d: %s: %q, %v", round, s.file(), final, err)
		}
		if len(partials) < 2 {
			t.Errorf("%d: %s: partials %q", round, s.file(), partials)
		}
	}
}

func TestWordsAreRecognisedFromAnotherRate(t *testing.T) {
	r := library(t, Config{Decoders: 1})
	s := sentences[0]
	studio, err := speech.Resample(s.samples(t), speech.Rate, 48000)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := speech.Resample(studio, 48000, speech.Rate)
	if err != nil {
		t.Fatal(err)
	}
	if _, final, err := read(t, r.Transcribe(t.Context(), frames(samples))); final != s.text || err != nil {
		t.Errorf("%q, %v", final, err)
	}
}

func TestSilenceIsNoWords(t *testing.T) {
	r := library(t, Config{Decoders: 1})
	for _, d := range []time.Duration{0, 5 * time.Millisecond, 2 * time.Second, 45 * time.Second} {
		if partials, final, err := read(t, r.Transcribe(t.Context(), frames(quiet(d)))); len(partials) > 0 || final != "" || err != nil {
			t.Errorf("%v of silence: %q, %q, %v", d, partials, final, err)
		}
	}
}

func TestAPersonIsUnderstoodFromTheFirstUtterance(t *testing.T) {
	person := library(t, Config{Decoders: 1}).Speaker()
	for _, s := range []sentence{sentences[0], sentences[2], sentences[0]} {
		if _, final, err := read(t, person.Transcribe(t.Context(), frames(s.samples(t)))); final != s.text || err != nil {
			t.Errorf("%s: %q, %v", s.file(), final, err)
		}
	}
	if v := person.known(); v.frames <= strangerFrames || v.mean[0] == 0 {
		t.Errorf("learned %+v", v)
	}
}

func TestMoreUtterancesThanDecoders(t *testing.T) {
	r := library(t, Config{Decoders: 2, Wait: time.Minute})
	before := runtime.NumGoroutine()
	var utterances sync.WaitGroup
	for _, s := range sentences {
		samples := s.samples(t)
		utterances.Go(func() {
			if _, final, err := read(t, r.Transcribe(t.Context(), frames(samples))); final != s.text || err != nil {
				t.Errorf("%s: %q, %v", s.file(), final, err)
			}
		})
	}
	utterances.Wait()
	// A goroutine is counted until a moment after it has told the group that it is done.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ; runtime.NumGoroutine() > before; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("%d goroutines after %d", runtime.NumGoroutine(), before)
		}
	}
}

func TestTheOnlyDecoderComesBack(t *testing.T) {
	r := library(t, Config{Decoders: 1, Wait: time.Millisecond})
	s := sentences[0]
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := func(yield func([]int16) bool) {
		for frame := range frames(s.samples(t)) {
			if !yield(frame) {
				return
			}
		}
		if _, _, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); !errors.Is(err, ErrBusy) {
			t.Errorf("beside an utterance: %v", err)
		}
		cancel()
	}
	if partials, _, err := read(t, r.Transcribe(ctx, interrupted)); len(partials) == 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %q, %v", partials, err)
	}
	for transcript, err := range r.Transcribe(t.Context(), frames(s.samples(t))) {
		if err != nil || transcript.Text != "" {
			break
		}
	}
	if _, final, err := read(t, r.Transcribe(t.Context(), frames(s.samples(t)))); final != s.text || err != nil {
		t.Errorf("after both: %q, %v", final, err)
	}
}

func TestNewRefusesAMissingModel(t *testing.T) {
	cfg := Config{Model: t.TempDir()}
	if _, err := New(cfg); !errors.Is(err, ErrNoModel) {
		t.Errorf("New: %v", err)
	}
	if err := Available(cfg); !errors.Is(err, ErrNoModel) {
		t.Errorf("Available: %v", err)
	}
	if err := Available(Config{}); err != nil {
		t.Errorf("Available where the model is installed: %v", err)
	}
}
