package pocketsphinx

import (
	"context"
	"errors"
	"iter"

	"vela/session/speech"
)

const (
	block     = speech.Rate / 50 // what the library is fed at a time: 20 ms
	lookEvery = speech.Rate / 10 // audio between two looks at the hypothesis: 100 ms
)

// errReaderLeft ends an utterance whose reader wants no more; nobody sees it.
var errReaderLeft = errors.New("reader left")

// utterance is the state of one transcript. All of it stays on the reader's goroutine.
type utterance struct {
	pool  *pool
	yield func(speech.Transcript, error) bool

	decoder decoder // nil before the first block and after release
	begun   bool    // the decoder is inside an utterance
	broken  bool    // the library reported an error: do not use this decoder again

	held   [block]int16 // audio that does not fill a block yet
	filled int
	unseen int    // samples since the last look
	shown  string // the text that the reader has
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
	u.filled = 0
	if u.unseen < lookEvery {
		return nil
	}
	u.unseen = 0
	return u.look()
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
	u.begun = true
	return u.library(u.decoder.start())
}

// look tells the reader what has changed.
func (u *utterance) look() error {
	text := plain(u.decoder.hypothesis())
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
	u.begun = false
	if err := u.library(u.decoder.end()); err != nil {
		return "", err
	}
	return plain(u.decoder.hypothesis()), nil
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
