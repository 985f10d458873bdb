package pocketsphinx

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vela/session/speech"
)

// fake is a decoder that hears one word in every tenth of a second that is not silent. It fails its test when it is used as no decoder may be.
type fake struct {
	t       *testing.T
	busy    atomic.Bool
	inside  bool // an utterance
	freed   bool
	heard   []int16
	words   int // of the present utterance
	quiet   int // samples of silence up to now
	failsAt int // the call of process that reports an error, counted down
	starts  int // speakers
	known   voice
	begins  int // utterances
	looks   int
}

func (f *fake) use(inside bool) func() {
	f.t.Helper()
	if f.busy.Swap(true) || f.freed || f.inside != inside {
		f.t.Errorf("decoder used twice at once, after free, or outside an utterance: freed %v, inside %v", f.freed, f.inside)
	}
	return func() { f.busy.Store(false) }
}

func (f *fake) start(v voice) error {
	f.starts++
	f.known = v
	return f.begin()
}

func (f *fake) begin() error {
	defer f.use(false)()
	f.begins++
	f.inside, f.heard, f.words, f.quiet = true, f.heard[:0], 0, 0
	return nil
}

func (f *fake) process(samples []int16) error {
	defer f.use(true)()
	if f.failsAt--; f.failsAt == 0 {
		return errors.New("the library failed")
	}
	f.heard = append(f.heard, samples...)
	if speech.Level(samples) == speech.Quietest {
		f.quiet += len(samples)
		return nil
	}
	f.quiet = 0
	f.words++
	return nil
}

func (f *fake) hypothesis() string {
	f.looks++
	blocks := speech.Rate / 10 / block
	return strings.TrimSpace("<s> " + strings.Repeat("word(2) ", (f.words+blocks-1)/blocks))
}

func (f *fake) speaking() bool { return f.quiet == 0 }

func (f *fake) end() error {
	defer f.use(true)()
	f.inside = false
	return nil
}

// voice has heard one frame for every block.
func (f *fake) voice() voice {
	defer f.use(false)()
	return voice{frames: f.known.frames + len(f.heard)/block}
}

func (f *fake) free() {
	defer f.use(false)()
	f.freed = true
}

// fakes makes a recogniser of fake decoders, and shows which of them were loaded.
func fakes(t *testing.T, cfg Config) (r *Recognizer, loaded *[]*fake) {
	t.Helper()
	loaded = new([]*fake)
	r, err := newRecognizer(cfg, func() (decoder, error) {
		f := &fake{t: t}
		*loaded = append(*loaded, f)
		return f, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, loaded
}

// transcribe is the method that [Recognizer] and [Speaker] have in common.
type transcribe = func(context.Context, iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error]

// loud and quiet are sound and silence of a length.
func loud(d time.Duration) []int16 { return slices.Repeat([]int16{1000}, speech.Count(d, speech.Rate)) }

func quiet(d time.Duration) []int16 { return make([]int16, speech.Count(d, speech.Rate)) }

// frames cuts samples as a client sends them: 20 ms at a time.
func frames(samples []int16) iter.Seq[[]int16] { return slices.Chunk(samples, speech.Rate/50) }

// read collects a transcript to its end, and checks its form: partial texts that differ from the one before, then one final or an error.
func read(t *testing.T, transcripts iter.Seq2[speech.Transcript, error]) (partials []string, final string, err error) {
	t.Helper()
	ended, before := false, ""
	for transcript, failed := range transcripts {
		switch {
		case ended:
			t.Errorf("%+v, %v follows the end", transcript, failed)
		case failed != nil:
			ended, err = true, failed
		case transcript.Final:
			ended, final = true, transcript.Text
		case transcript.Text == before:
			t.Errorf("partial %q twice", before)
		default:
			partials = append(partials, transcript.Text)
			before = transcript.Text
		}
	}
	if !ended {
		t.Error("neither a final transcript nor an error")
	}
	return partials, final, err
}
