package pocketsphinx

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// held is audio that goes on after some sound until done is closed, or ctx is done.
func held(ctx context.Context, done <-chan struct{}) iter.Seq[[]int16] {
	return func(yield func([]int16) bool) {
		for frame := range frames(loud(time.Second)) {
			if !yield(frame) {
				return
			}
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

func TestPartialsComeBeforeTheFinal(t *testing.T) {
	r, _ := fakes(t, Config{})
	partials, final, err := read(t, r.Transcribe(t.Context(), frames(loud(450*time.Millisecond))))
	if want := []string{words(1), words(2), words(3), words(4)}; !slices.Equal(partials, want) {
		t.Errorf("partials %q, want %q", partials, want)
	}
	if final != words(5) || err != nil {
		t.Errorf("final %q, %v", final, err)
	}
}

func TestFramesMayHaveAnyLength(t *testing.T) {
	samples := loud(1010 * time.Millisecond) // the last block is half full
	for _, n := range []int{1, 7, 160, 320, 333, 16000} {
		r, loaded := fakes(t, Config{})
		partials, final, err := read(t, r.Transcribe(t.Context(), slices.Chunk(samples, n)))
		if len(partials) != 10 || final != words(11) || err != nil {
			t.Errorf("frames of %d: %d partials, %q, %v", n, len(partials), final, err)
		}
		if want := slices.Concat(padding[:], samples, padding[:]); !slices.Equal((*loaded)[0].heard, want) {
			t.Errorf("frames of %d: the decoder heard something else than %d samples between silences", n, len(samples))
		}
	}
}

func TestNothingSaid(t *testing.T) {
	for name, audio := range map[string][]int16{"no audio": nil, "silence": quiet(3 * time.Second), "one sample": make([]int16, 1)} {
		r, loaded := fakes(t, Config{})
		partials, final, err := read(t, r.Transcribe(t.Context(), frames(audio)))
		if len(partials) != 0 || final != "" || err != nil {
			t.Errorf("%s: %q, %q, %v, want an empty final", name, partials, final, err)
		}
		if audio == nil && (*loaded)[0].starts != 0 {
			t.Error("no audio took a decoder")
		}
	}
}

func TestPartialsAreLookedForTenTimesASecond(t *testing.T) {
	r, loaded := fakes(t, Config{})
	read(t, r.Transcribe(t.Context(), frames(loud(2*time.Second))))
	if looks := (*loaded)[0].looks; looks > 21 {
		t.Errorf("%d looks at the hypothesis of 2 s", looks)
	}
}

func TestLongUtterancesAreCutIntoParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		audio []int16
		parts int
		words int
	}{
		{"at a pause", slices.Concat(loud(25*time.Second), quiet(time.Second), loud(10*time.Second)), 2, 350},
		{"not at an early pause", slices.Concat(loud(5*time.Second), quiet(time.Second), loud(10*time.Second)), 1, 150},
		{"somewhere", loud(80 * time.Second), 3, 800},
		{"silence", quiet(40 * time.Second), 3, 0},
	} {
		r, loaded := fakes(t, Config{})
		partials, final, err := read(t, r.Transcribe(t.Context(), frames(c.audio)))
		if final != words(c.words) || err != nil {
			t.Errorf("%s: %d words, %v", c.name, len(strings.Fields(final)), err)
		}
		if !slices.IsSortedFunc(partials, func(a, b string) int { return len(a) - len(b) }) {
			t.Errorf("%s: a partial transcript forgot the parts before", c.name)
		}
		if f := (*loaded)[0]; f.begins != c.parts || f.starts != 1 {
			t.Errorf("%s: %d parts of %d speakers, want %d of one", c.name, f.begins, f.starts, c.parts)
		}
	}
}

func TestDecodersAreLoadedWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, loaded := fakes(t, Config{Decoders: 3})
		for range 4 {
			read(t, r.Transcribe(t.Context(), frames(loud(time.Second))))
		}
		if len(*loaded) != 1 {
			t.Errorf("%d decoders for one utterance at a time", len(*loaded))
		}
		done := make(chan struct{})
		var utterances sync.WaitGroup
		for range 7 {
			utterances.Go(func() {
				if _, final, err := read(t, r.Transcribe(t.Context(), held(t.Context(), done))); final != words(10) || err != nil {
					t.Errorf("%q, %v", final, err)
				}
			})
			synctest.Wait() // the loader of this test is not for several goroutines
		}
		if len(*loaded) != 3 {
			t.Errorf("%d decoders for seven utterances, want the bound, 3", len(*loaded))
		}
		close(done)
		utterances.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		for _, f := range *loaded {
			if !f.freed {
				t.Error("a decoder outlived Close")
			}
		}
	})
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakes(t, Config{Decoders: 1, Wait: 3 * time.Second})
		done := make(chan struct{})
		go read(t, r.Transcribe(t.Context(), held(t.Context(), done)))
		synctest.Wait()
		began := time.Now()
		if _, _, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); !errors.Is(err, ErrBusy) {
			t.Errorf("with the only decoder taken: %v", err)
		}
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		time.AfterFunc(2*time.Second, func() { close(done) })
		if _, final, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); final != words(10) || err != nil {
			t.Errorf("with the decoder back in time: %q, %v", final, err)
		}
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakes(t, Config{Decoders: 1})
		done := make(chan struct{})
		go read(t, r.Transcribe(t.Context(), held(t.Context(), done)))
		synctest.Wait()
		hungUp := errors.New("hung up")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, hungUp)
		defer cancel()
		if _, _, err := read(t, r.Transcribe(ctx, frames(loud(time.Second)))); !errors.Is(err, hungUp) {
			t.Errorf("%v, want the cause", err)
		}
		close(done)
	})
}

func TestCancelInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, loaded := fakes(t, Config{Decoders: 1})
		bargeIn := errors.New("barge-in")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(bargeIn) })
		partials, _, err := read(t, r.Transcribe(ctx, held(ctx, nil)))
		if len(partials) != 10 || !errors.Is(err, bargeIn) {
			t.Errorf("%d partials, %v", len(partials), err)
		}
		endless := func(yield func([]int16) bool) { // audio that does not know of ctx
			for yield(loud(20 * time.Millisecond)) {
			}
		}
		if _, _, err := read(t, r.Transcribe(ctx, endless)); !errors.Is(err, bargeIn) {
			t.Errorf("endless audio: %v", err)
		}
		reuse(t, r, loaded)
	})
}

// reuse checks that the only decoder went back and hears the next speaker from the start.
func reuse(t *testing.T, r *Recognizer, loaded *[]*fake) {
	t.Helper()
	if _, final, err := read(t, r.Transcribe(t.Context(), frames(loud(200*time.Millisecond)))); final != words(2) || err != nil {
		t.Errorf("the next utterance: %q, %v", final, err)
	}
	if len(*loaded) != 1 {
		t.Errorf("%d decoders loaded", len(*loaded))
	}
}

func TestReaderLeavesInTheMiddle(t *testing.T) {
	r, loaded := fakes(t, Config{Decoders: 1})
	for transcript, err := range r.Transcribe(t.Context(), frames(loud(time.Second))) {
		if transcript.Text == words(3) || err != nil {
			break
		}
	}
	reuse(t, r, loaded)
}

func TestReaderPanics(t *testing.T) {
	r, loaded := fakes(t, Config{Decoders: 1})
	func() {
		defer func() { _ = recover() }()
		for range r.Transcribe(t.Context(), frames(loud(time.Second))) {
			panic("reader")
		}
	}()
	reuse(t, r, loaded)
}

func TestDecoderIsBackBeforeTheFinalIsRead(t *testing.T) {
	r, loaded := fakes(t, Config{Decoders: 1})
	for transcript := range r.Transcribe(t.Context(), frames(loud(time.Second))) {
		if transcript.Final {
			reuse(t, r, loaded)
		}
	}
}

func TestFailedDecoderIsReplaced(t *testing.T) {
	r, loaded := fakes(t, Config{Decoders: 1})
	(*loaded)[0].failsAt = 30
	if _, _, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); err == nil || err.Error() != "the library failed" {
		t.Errorf("%v, want what the library said", err)
	}
	if !(*loaded)[0].freed {
		t.Error("the failed decoder was not freed")
	}
	if _, final, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); final != words(10) || err != nil || len(*loaded) != 2 {
		t.Errorf("the next utterance: %q, %v, %d loaded", final, err, len(*loaded))
	}
}

func TestModelThatDoesNotLoad(t *testing.T) {
	refused := errors.New("refused")
	loads := 0
	r, err := newRecognizer(Config{Decoders: 2}, func() (decoder, error) {
		if loads++; loads > 1 {
			return nil, refused
		}
		return &fake{t: t}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for transcript, err := range r.Transcribe(t.Context(), frames(loud(time.Second))) {
		if err != nil || transcript.Final {
			break
		}
		for range 3 { // each gives its place back
			if _, _, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); !errors.Is(err, refused) {
				t.Errorf("%v, want what loading said", err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := newRecognizer(Config{}, func() (decoder, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("New: %v", err)
	}
}

func TestCloseWaitsForUtterancesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, loaded := fakes(t, Config{Decoders: 1})
		done := make(chan struct{})
		var utterances sync.WaitGroup
		utterances.Go(func() {
			if _, final, err := read(t, r.Transcribe(t.Context(), held(t.Context(), done))); final != words(10) || err != nil {
				t.Errorf("the utterance under way: %q, %v", final, err)
			}
		})
		synctest.Wait()
		utterances.Go(func() {
			if _, _, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); !errors.Is(err, ErrClosed) {
				t.Errorf("an utterance that waits: %v", err)
			}
		})
		synctest.Wait()
		time.AfterFunc(time.Minute, func() { close(done) })
		began := time.Now()
		for range 2 { // the second finds nothing to do
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if waited := time.Since(began); waited != time.Minute || !(*loaded)[0].freed {
			t.Errorf("closed after %v, freed %v", waited, (*loaded)[0].freed)
		}
		utterances.Wait()
		if _, _, err := read(t, r.Transcribe(t.Context(), frames(loud(time.Second)))); !errors.Is(err, ErrClosed) {
			t.Errorf("an utterance after Close: %v", err)
		}
	})
}

func TestDefaults(t *testing.T) {
	got := Config{}.withDefaults()
	if got.Decoders < 2 || got.Decoders > 8 || got.Wait != 5*time.Second || got.Log == nil {
		t.Errorf("%+v", got)
	}
	if got := (Config{Decoders: 1, Wait: time.Hour}).withDefaults(); got.Decoders != 1 || got.Wait != time.Hour {
		t.Errorf("%+v: what was set is kept", got)
	}
}

// The loop that a session runs for one utterance.
func ExampleRecognizer_Transcribe() {
	var r *Recognizer                // from New
	var microphone iter.Seq[[]int16] // blocks until more comes, ends with the utterance
	listen := func(ctx context.Context) (string, error) {
		for transcript, err := range r.Transcribe(ctx, microphone) {
			if err != nil || transcript.Final {
				return transcript.Text, err
			}
		}
		return "", ctx.Err()
	}
	_ = listen
}
