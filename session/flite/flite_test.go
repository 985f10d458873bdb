package flite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vela/session/speech"
	"vela/session/wavcommand"
)

// say speaks with the flite that is installed.
func say(t *testing.T, voice, text string) (samples []int16, rate int) {
	t.Helper()
	s, err := wavcommand.New(wavcommand.Config{Argv: Command(Config{Voice: voice}), Seekable: true})
	if err != nil {
		t.Fatal(err)
	}
	for c, err := range s.Synthesize(t.Context(), text) {
		if err != nil {
			t.Fatalf("%q: %v: %v", text, err, errors.Unwrap(err))
		}
		samples, rate = append(samples, c.Samples...), c.Rate
	}
	return samples, rate
}

func TestSpeaks(t *testing.T) {
	short, rate := say(t, "", "Good morning.")
	if length := speech.Duration(len(short), rate).Seconds(); rate != Rate || length < 0.5 || length > 2 || speech.Level(short) < -40 {
		t.Errorf("%.2f s at %d Hz and %.0f dBFS", length, rate, speech.Level(short))
	}
	long, _ := say(t, "", "Good morning. How are you? I am well.")
	if len(long) < 2*len(short) {
		t.Errorf("three sentences have %d samples, one of them %d", len(long), len(short))
	}
}

func TestTextIsNeverAnArgument(t *testing.T) {
	for _, text := range []string{"-h", "--version", "-o /dev/null x", "<speak>hi</speak>", "`hi` $(hi)"} {
		if samples, _ := say(t, "", text); len(samples) < Rate/10 {
			t.Errorf("%q: %d samples", text, len(samples))
		}
	}
}

func TestWhatHasNoSound(t *testing.T) {
	for _, text := range []string{"", " ", "...", "日本", "\x00\xff"} {
		say(t, "", text)
	}
}

func TestVoices(t *testing.T) {
	voices, err := Voices(t.Context(), Config{})
	if err != nil || !slices.Contains(voices, DefaultVoice) || len(voices) < 3 {
		t.Fatalf("%q, %v", voices, err)
	}
	first := make(map[int]string)
	for _, voice := range voices {
		if strings.HasSuffix(voice, "_time") { // it knows nothing but the time
			continue
		}
		samples, rate := say(t, voice, "Good morning.")
		if rate != Rate && (voice != "kal" || rate != Rate/2) {
			t.Errorf("%s: %d Hz", voice, rate)
		}
		if other, taken := first[len(samples)]; taken {
			t.Errorf("%s and %s say the same", voice, other)
		}
		first[len(samples)] = voice
	}
}

func TestAvailable(t *testing.T) {
	if err := Available(t.Context(), Config{}); err != nil {
		t.Error(err)
	}
	if err := Available(t.Context(), Config{Voice: "nobody"}); err == nil || !strings.Contains(err.Error(), DefaultVoice) {
		t.Errorf("a voice that is not there: %v", err)
	}
	if err := Available(t.Context(), Config{Program: "flite-that-is-nowhere"}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("no flite: %v", err)
	}
	mute := filepath.Join(t.TempDir(), "flite")
	if err := os.WriteFile(mute, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Available(t.Context(), Config{Program: mute}); err == nil {
		t.Error("a flite that lists nothing: no error")
	}
}
