package pocketsphinx

import (
	"context"
	"errors"
	"iter"
	"strings"

	"vela/session/speech"
)

const (
	block     = speech.Rate / 50 // what the library is fed at a time: 20 ms
	lookEvery = speech.Rate / 10 // audio between two looks at the hypothesis: 100 ms

	// The library's search for the best path, at the end of an utterance, grows with the square of its length: 0.2 s after half a minute,
	// minutes after ten. So a long utterance is handed over in parts, cut at a pause from pauseAfter on, anywhere at cutAfter.
	pauseAfter = 15 * speech.Rate
	cutAfter   = 30 * speech.Rate
)

// padding is the silence put before and behind what is said: the library wants to hear a word begin and end. Of clips cut close to the words,
// one word in eight came out wrong with it and one in five without; others did not mind.
var padding [speech.Rate / 5]int16

// errReaderLeft ends an utterance whose reader wants no more; nobody sees it.
var errReaderLeft = errors.New("reader left")

// utterance is the state of one transcript. All of it stays on the reader's goroutine.
type utterance struct {
	pool    *pool
	speaker *Speaker // nil: a stranger
	yield   func(speech.Transcript, error) bool

	decoder decoder // nil before the first block and after release
	begun   bool    // the decoder is inside an utterance
	broken  bool    // the library reported an error: do not use this decoder again

	held   [block]int16 // audio that does not fill a block yet
	filled int
	unseen int      // samples since the last look
	length int      // samples of the present part
	parts  []string // texts of the parts before
	shown  string   // the text that the reader has
}

// run reads audio to its end and yields all transcripts. It returns errReaderLeft, or an error that is for the reader.
func (u *utterance) run(ctx context.Context, audio iter.Seq[[]int16]) error {
	defer u.release()
	for frame := range audio {
		if err := u.hear(ctx, frame); err != nil {
			return err
		}
	}
	text, err := u.finish(ctx)
	if err != nil {
		return err
	}
	u.yield(speech.Transcript{Text: text, Final: true}, nil)
	return nil
}

// hear cuts a frame of any length into blocks.
func (u *utterance) hear(ctx context.Context, frame []int16) error {
	for len(frame) > 0 {
		n := copy(u.held[u.filled:], frame)
		u.filled += n
		frame = frame[n:]
		if u.filled < block {
			break
		}
		if err := u.feed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// feed gives the held block to the library, and looks at the hypothesis now and then.
func (u *utterance) feed(ctx context.Context) error {
	if err := u.begin(ctx); err != nil {
		return err
	}
	if err := u.library(u.decoder.process(u.held[:u.filled])); err != nil {
		return err
	}
	u.unseen += u.filled
	u.length += u.filled
	u.filled = 0
	if err := u.part(); err != nil {
		return err
	}
	if u.unseen < lookEvery {
		return nil
	}
	u.unseen = 0
	return u.look()
}

// part begins another part of a long utterance when it is time.
func (u *utterance) part() error {
	if u.length < pauseAfter || u.length < cutAfter && u.decoder.speaking() {
		return nil
	}
	if err := u.end(); err != nil {
		return err
	}
	if text := plain(u.decoder.hypothesis()); text != "" {
		u.parts = append(u.parts, text)
	}
	if err := u.library(u.decoder.begin()); err != nil {
		return err
	}
	u.length, u.begun = 0, true
	return nil
}

// begin takes a decoder when there is none yet; it is also where a context that is done ends the utterance.
func (u *utterance) begin(ctx context.Context) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u.begun {
		return nil
	}
	if u.decoder, err = u.pool.take(ctx); err != nil {
		return err
	}
	if err := u.library(u.decoder.start(u.speaker.known())); err != nil {
		return err
	}
	u.begun = true
	return u.library(u.decoder.process(padding[:]))
}

// end lets the decoder make up its mind.
func (u *utterance) end() error {
	u.begun = false
	return u.library(u.decoder.end())
}

// text is what was said so far, in all parts.
func (u *utterance) text() string {
	return strings.TrimSpace(strings.Join(append(u.parts, plain(u.decoder.hypothesis())), " "))
}

// look tells the reader what has changed.
func (u *utterance) look() error {
	text := u.text()
	if text == u.shown {
		return nil
	}
	u.shown = text
	if !u.yield(speech.Transcript{Text: text}, nil) {
		return errReaderLeft
	}
	return nil
}

// finish hears the rest, gives the decoder back and returns the final text, which is empty when there was no audio.
func (u *utterance) finish(ctx context.Context) (string, error) {
	if u.filled > 0 {
		if err := u.feed(ctx); err != nil {
			return "", err
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if u.decoder == nil {
		return "", nil
	}
	defer u.release()
	if err := u.library(u.decoder.process(padding[:])); err != nil {
		return "", err
	}
	if err := u.end(); err != nil {
		return "", err
	}
	u.speaker.learn(u.decoder.voice())
	return u.text(), nil
}

// library notes that the library failed, after which its decoder is not trusted any more.
func (u *utterance) library(err error) error {
	u.broken = u.broken || err != nil
	return err
}

// release gives the decoder back, once, ready for the next utterance.
func (u *utterance) release() {
	d := u.decoder
	if d == nil {
		return
	}
	u.decoder = nil
	if u.begun {
		_ = u.library(d.end()) // nobody waits for this text
	}
	if u.broken {
		u.pool.drop(d)
		return
	}
	u.pool.put(d)
}
