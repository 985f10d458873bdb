package sherpa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/session/speech"
)

// fake is a library that says a word for every second that it hears. It fails its test when it is used as it may not be.
type fake struct {
	t       *testing.T
	mu      sync.Mutex
	streams int // now
	most    int
	parts   []int // samples of each stream that was finished
	first   []float32
	freed   bool
	fails   error
}

func (f *fake) stream() (stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.freed {
		f.t.Error("used after it was freed")
	}
	if f.fails != nil {
		return nil, f.fails
	}
	f.streams++
	f.most = max(f.most, f.streams)
	return &fakeStream{of: f}, nil
}

func (f *fake) free() {
	if f.freed || f.streams > 0 {
		f.t.Errorf("freed twice, or with %d streams", f.streams)
	}
	f.freed = true
}

type fakeStream struct {
	of   *fake
	n    int
	over bool
}

func (s *fakeStream) hear(samples []float32) {
	if len(samples) == 0 || s.over {
		s.of.t.Errorf("%d samples, after the end: %t", len(samples), s.over)
	}
	if s.n == 0 && len(samples) > 1 {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		s.of.first = slices.Clone(samples[:2])
	}
	s.n += len(samples)
}

func (s *fakeStream) text() string { return strings.Repeat(" WORD", s.n/speech.Rate) }

func (s *fakeStream) finish() string {
	s.over = true
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.parts = append(s.of.parts, s.n)
	return s.text() + " END "
}

func (s *fakeStream) free() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.streams--
}

// said transcribes so much sound, in pieces of 20 ms, and collects what is yielded.
func said(ctx context.Context, r *Recognizer, samples []int16) (partials []string, final string, err error) {
	for tr, failed := range r.Transcribe(ctx, slices.Chunk(samples, speech.Rate/50)) {
		switch {
		case failed != nil:
			err = failed
		case tr.Final:
			final = tr.Text
		default:
			partials = append(partials, tr.Text)
		}
	}
	return partials, final, err
}

func sound(seconds float64) []int16 { return make([]int16, int(seconds*speech.Rate)) }

// A streaming model says what it has heard so far, as people write it.
func TestStreaming(t *testing.T) {
	lib := &fake{t: t}
	r := newRecognizer(Config{}, lib, false)
	samples := sound(2.55)
	samples[0], samples[1] = -32768, 16384
	partials, final, err := said(t.Context(), r, samples)
	if want := []string{"word", "word word"}; !slices.Equal(partials, want) || final != "word word end" || err != nil {
		t.Errorf("%q, %q, %v", partials, final, err)
	}
	if !slices.Equal(lib.parts, []int{len(samples)}) || !slices.Equal(lib.first, []float32{-1, 0.5}) || lib.streams != 0 {
		t.Errorf("it heard %v of %d samples, beginning with %v; %d streams are left", lib.parts, len(samples), lib.first, lib.streams)
	}
}

// A model that hears an utterance as a whole gets it in parts of half a minute at most, cut where it is quiet, and nothing twice.
func TestInParts(t *testing.T) {
	for _, seconds := range []float64{0, 0.01, 3, 27.9, 28, 65, 300} {
		lib := &fake{t: t}
		r := newRecognizer(Config{}, lib, true)
		samples := sound(seconds)
		for i := range samples {
			samples[i] = 8000
		}
		quiet := 21 * speech.Rate
		if len(samples) > quiet+speech.Rate {
			clear(samples[quiet : quiet+speech.Rate/5])
		}
		_, final, err := said(t.Context(), r, samples)
		sum := 0
		for _, n := range lib.parts {
			if sum += n; n > cutTo {
				t.Errorf("%v s: a part of %d samples", seconds, n)
			}
		}
		if err != nil || sum != len(samples) || strings.Count(final, "end") != len(lib.parts) {
			t.Errorf("%v s: %d of %d samples were heard, %q, %v", seconds, sum, len(samples), final, err)
		}
		if seconds >= 28 && (lib.parts[0] < quiet || lib.parts[0] > quiet+speech.Rate/5) {
			t.Errorf("%v s: it was cut at %d, and is quiet at %d", seconds, lib.parts[0], quiet)
		}
	}
}

func TestWhoeverLeavesLeavesNothing(t *testing.T) {
	lib := &fake{t: t}
	r := newRecognizer(Config{AtOnce: 1}, lib, false)
	for range r.Transcribe(t.Context(), slices.Chunk(sound(5), 320)) {
		break
	}
	func() {
		defer func() { _ = recover() }()
		for range r.Transcribe(t.Context(), slices.Chunk(sound(5), 320)) {
			panic("the reader's")
		}
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	if _, _, err := said(ctx, r, sound(5)); err == nil || err.Error() != "gone" {
		t.Errorf("of a context that is done: %v", err)
	}
	if _, final, err := said(t.Context(), r, sound(1)); err != nil || final != "word end" || lib.streams != 0 {
		t.Errorf("after all that: %q, %v; %d streams are left", final, err, lib.streams)
	}
}

func TestAtMostSoManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := &fake{t: t}
		r := newRecognizer(Config{AtOnce: 2}, lib, false)
		var wg sync.WaitGroup
		results := make(chan string, 3)
		for range 3 {
			wg.Go(func() {
				slow := func(yield func([]int16) bool) {
					for range 10 {
						if !yield(sound(1)) {
							return
						}
						time.Sleep(time.Second)
					}
				}
				for tr, err := range r.Transcribe(t.Context(), slow) {
					if err != nil || tr.Final {
						results <- fmt.Sprint(err)
					}
				}
			})
		}
		wg.Wait()
		close(results)
		got := slices.Sorted(func(yield func(string) bool) {
			for s := range results {
				if !yield(s) {
					return
				}
			}
		})
		if want := []string{"<nil>", "<nil>", ErrBusy.Error()}; !slices.Equal(got, want) || lib.most != 2 {
			t.Errorf("%q, at most %d at once", got, lib.most)
		}
	})
}

func TestClosing(t *testing.T) {
	lib := &fake{t: t}
	r := newRecognizer(Config{}, lib, false)
	for range 2 {
		if err := r.Close(); err != nil || !lib.freed {
			t.Errorf("%v; freed: %t", err, lib.freed)
		}
	}
	if _, _, err := said(t.Context(), r, sound(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("after that: %v", err)
	}
}

func TestALibraryThatFails(t *testing.T) {
	lib := &fake{t: t, fails: errors.New("out of memory")}
	for _, whole := range []bool{false, true} {
		if _, final, err := said(t.Context(), newRecognizer(Config{}, lib, whole), sound(40)); !errors.Is(err, lib.fails) || final != "" {
			t.Errorf("%q, %v", final, err)
		}
	}
}

func TestPlainText(t *testing.T) {
	for text, want := range map[string]string{" HELLO  WORLD": "hello world", "Hello, NASA.": "Hello, NASA.", "": "", " 42 ": "42"} {
		if got := plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
