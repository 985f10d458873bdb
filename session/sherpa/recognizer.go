package sherpa

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"vela/session/speech"
)

// Label is what people are shown as the name of this recogniser.
const Label = "sherpa-onnx"

var (
	// ErrNotBuilt comes from [New] and [Available] in a program that was built without the library.
	ErrNotBuilt = errors.New("sherpa: sherpa-onnx is not in this build: build it on Linux with make build SHERPA=1")
	// ErrBusy ends a transcript when as many are being made as may be, for longer than [Config.Wait].
	ErrBusy = errors.New("sherpa: everybody who may speak at once is speaking")
	// ErrClosed ends a transcript that was asked for after [Recognizer.Close].
	ErrClosed = errors.New("sherpa: the recognizer is closed")
)

// Config says how to recognise.
type Config struct {
	Model    string        // folder of the model
	Language string        // of what is said, such as en, for a whisper model that knows several; empty: it finds out
	AtOnce   int           // utterances, at most; 0: one a CPU, but at least 2
	Wait     time.Duration // how long an utterance waits for its turn; 0: 5 s
	Log      *slog.Logger  // nil discards
}

const defaultWait = 5 * time.Second

// Available says why this cannot work here, or nil when it can: whether the library is in this build, then whether the folder
// holds a model. It loads nothing.
func Available(cfg Config) error {
	if !built {
		return ErrNotBuilt
	}
	_, err := findModel(cfg.Model)
	return err
}

// library is a loaded model. It is used from several goroutines at once.
type library interface {
	stream() (stream, error)
	free()
}

// stream is one utterance, or a part of it. One goroutine uses it.
type stream interface {
	hear(samples []float32) // at [speech.Rate], -1 to 1; at least one
	text() string           // what has been recognised so far; empty where the model does not stream
	finish() string         // what was said; the last call but free
	free()
}

// Recognizer turns speech into text. Transcribe may be called from any goroutine.
type Recognizer struct {
	lib   library
	whole bool // the model hears an utterance when it is over
	slots chan struct{}
	wait  time.Duration

	mu     sync.RWMutex // held for reading while an utterance is heard
	closed bool
}

// New finds the model and loads it, which takes seconds for a large one. Close it to have the memory back. It returns
// [ErrNotBuilt], or an error that wraps [ErrNoModel]. What is looked at first is the shape of the files: over one that is whole
// and makes no sense, the library ends the process.
func New(cfg Config) (*Recognizer, error) {
	if err := Available(cfg); err != nil {
		return nil, err
	}
	m, err := findModel(cfg.Model)
	if err != nil {
		return nil, err
	}
	lib, err := load(m, cfg.Language)
	if err != nil {
		return nil, err
	}
	if cfg.Log != nil {
		cfg.Log.Info("model loaded", "streaming", m.kind == streaming)
	}
	return newRecognizer(cfg, lib, m.kind != streaming), nil
}

func newRecognizer(cfg Config, lib library, whole bool) *Recognizer {
	if cfg.AtOnce <= 0 {
		cfg.AtOnce = max(2, runtime.NumCPU())
	}
	if cfg.Wait <= 0 {
		cfg.Wait = defaultWait
	}
	return &Recognizer{lib: lib, whole: whole, slots: make(chan struct{}, cfg.AtOnce), wait: cfg.Wait}
}

// Close refuses new utterances, waits for those under way, and frees the model. It always returns nil.
func (r *Recognizer) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.lib.free()
	}
	return nil
}

// Transcribe recognises one utterance: mono samples at [speech.Rate] in pieces of any length, read until audio ends. It yields
// partial transcripts whenever the text has changed, then exactly one final one; or an error in its place: [ErrBusy], [ErrClosed],
// what the library says, or the cause of ctx. Everything happens on the reader's goroutine.
func (r *Recognizer) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		u := utterance{of: r, yield: yield}
		if err := u.run(ctx, audio); err != nil && !errors.Is(err, errReaderLeft) {
			yield(speech.Transcript{}, err)
		}
	}
}

// enter waits for a turn. The model stays until leave.
func (r *Recognizer) enter(ctx context.Context) (leave func(), err error) {
	patience := time.NewTimer(r.wait)
	defer patience.Stop()
	select {
	case r.slots <- struct{}{}:
	case <-patience.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.RLock()
	leave = func() {
		r.mu.RUnlock()
		<-r.slots
	}
	if r.closed {
		leave()
		return nil, ErrClosed
	}
	return leave, nil
}

// errReaderLeft ends an utterance whose reader wants no more; nobody sees it.
var errReaderLeft = errors.New("reader left")

// How an utterance is handed over.
const (
	lookEvery = speech.Rate / 10 // samples between two looks at the text
	// A model that hears an utterance as a whole hears at most half a minute of it: whisper knows no more. A longer one is cut where it
	// is quietest between cutFrom and cutTo.
	cutFrom = 18 * speech.Rate
	cutTo   = 28 * speech.Rate
)

// utterance is the state of one transcript.
type utterance struct {
	of    *Recognizer
	yield func(speech.Transcript, error) bool

	stream stream // nil before the first sample of a part
	held   []float32
	unseen int
	parts  []string
	shown  string
}

func (u *utterance) run(ctx context.Context, audio iter.Seq[[]int16]) error {
	leave := func() {}
	defer func() {
		u.free()
		leave()
	}()
	entered := false
	for piece := range audio {
		if len(piece) == 0 {
			continue
		}
		if !entered {
			l, err := u.of.enter(ctx)
			if err != nil {
				return err
			}
			leave, entered = l, true
		}
		if err := u.hear(piece); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := u.part(u.held); err != nil {
		return err
	}
	u.yield(speech.Transcript{Text: u.text(""), Final: true}, nil)
	return nil
}

func (u *utterance) hear(piece []int16) error {
	for _, s := range piece {
		u.held = append(u.held, float32(s)/32768)
	}
	if u.of.whole {
		for len(u.held) >= cutTo {
			at := quietest(u.held[:cutTo])
			if err := u.part(u.held[:at]); err != nil {
				return err
			}
			u.held = append([]float32(nil), u.held[at:]...)
			if err := u.show(""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(u.held) < lookEvery {
		return nil
	}
	if err := u.feed(u.held); err != nil {
		return err
	}
	u.held = u.held[:0]
	return u.show(u.stream.text())
}

// feed begins a part if there is none.
func (u *utterance) feed(samples []float32) (err error) {
	if len(samples) == 0 {
		return nil
	}
	if u.stream == nil {
		if u.stream, err = u.of.lib.stream(); err != nil {
			return err
		}
	}
	u.stream.hear(samples)
	return nil
}

// part ends one with what is left of it.
func (u *utterance) part(rest []float32) error {
	if err := u.feed(rest); err != nil {
		return err
	}
	if u.stream == nil {
		return nil
	}
	if text := plain(u.stream.finish()); text != "" {
		u.parts = append(u.parts, text)
	}
	u.free()
	return nil
}

func (u *utterance) free() {
	if u.stream != nil {
		u.stream.free()
		u.stream = nil
	}
}

// text is what was said up to now; so far is of the part that is being heard.
func (u *utterance) text(soFar string) string {
	return strings.TrimSpace(strings.Join(u.parts, " ") + " " + plain(soFar))
}

func (u *utterance) show(soFar string) error {
	text := u.text(soFar)
	if text == u.shown {
		return nil
	}
	u.shown = text
	if !u.yield(speech.Transcript{Text: text}, nil) {
		return errReaderLeft
	}
	return nil
}

// quietest is where to cut: in the middle of the quietest tenth of a second from cutFrom on.
func quietest(samples []float32) int {
	const block = speech.Rate / 10
	best, at := float32(-1), cutFrom
	for i := cutFrom; i+block <= len(samples); i += block {
		power := float32(0)
		for _, s := range samples[i : i+block] {
			power += s * s
		}
		if best < 0 || power < best {
			best, at = power, i+block/2
		}
	}
	return at
}

// plain is text as people write it: models that know capital letters alone are not shouting.
func plain(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.ContainsFunc(text, unicode.IsLower) {
		return text
	}
	return strings.ToLower(text)
}

func refused(folder string) error {
	return fmt.Errorf("sherpa: %w: the library refused what is in %s; its words are on standard error", ErrNoModel, folder)
}
