package pocketsphinx

import (
	"context"
	"errors"
	"iter"

	"vela/session/speech"
)

// Recognizer turns speech into text. Its methods may be called from any goroutine; utterances run side by side, each on its own decoder.
type Recognizer struct{ pool *pool }

// New finds the model and loads one decoder, which takes about 0.3 s. Close it to have the memory back.
//
// It returns [ErrNotBuilt] in a build without the library and an error that wraps [ErrNoModel] where the model is missing.
func New(cfg Config) (*Recognizer, error) {
	if err := Available(cfg); err != nil {
		return nil, err
	}
	files, err := findModel(cfg.Model)
	if err != nil {
		return nil, err
	}
	return newRecognizer(cfg, func() (decoder, error) { return loadDecoder(files) })
}

func newRecognizer(cfg Config, load func() (decoder, error)) (*Recognizer, error) {
	p, err := newPool(cfg.withDefaults(), load)
	if err != nil {
		return nil, err
	}
	return &Recognizer{pool: p}, nil
}

// Transcribe recognises one utterance: mono samples at [speech.Rate] in pieces of any length, read until audio ends. The pieces are not kept.
//
// It yields a partial transcript whenever the text has changed, then exactly one final one, which is empty when nothing was said. An error
// comes last instead of the final one: [ErrBusy], [ErrClosed], or the cause of ctx. The decoder is taken when the first audio comes, and given
// back when the sequence ends, however it ends: the reader leaves, ctx is done (audio must end then, too), or the loop's body panics.
// Everything happens on the reader's goroutine.
//
// The speaker is a stranger each time, so what one person said never colours the words of the next; [Recognizer.Speaker] is for one who stays.
func (r *Recognizer) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return r.transcribe(ctx, audio, nil)
}

func (r *Recognizer) transcribe(ctx context.Context, audio iter.Seq[[]int16], who *Speaker) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		u := utterance{pool: r.pool, speaker: who, yield: yield}
		if err := u.run(ctx, audio); err != nil && !errors.Is(err, errReaderLeft) {
			yield(speech.Transcript{}, err)
		}
	}
}

// Close refuses new utterances, waits for those under way, and frees the decoders. It always returns nil.
func (r *Recognizer) Close() error {
	r.pool.close()
	return nil
}
