package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"vela/session/speech"
)

// Synthesizer turns text into speech. It serves many sessions at a time: Synthesize may be called from several
// goroutines.
type Synthesizer interface {
	// Synthesize speaks one sentence and yields it as it is made, all of it at one rate; an error is the last thing. It
	// stops promptly once ctx is done or its reader leaves the loop, yields from the goroutine that ranges over it, and
	// leaves no goroutine or process behind.
	Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error]
}

// maxPiece bounds what a voice hands over at once, in samples: it has to fit into a line of the journal.
const maxPiece = 1 << 16

// piece is one thing that the synthesizer makes of a sentence, or that it has ended.
type piece struct {
	chunk speech.Chunk
	ended bool      // the sentence; with err: it broke off, some of it has been made
	err   error     // of the voice that spoke
	last  bool      // with err: there is no other voice
	at    time.Time // when it was made
}

// offered says that the synthesizer took the sentence that was offered to it.
type offered struct{}

// run synthesizes the sentences until there are no more. It is the child.
func (v *voice) run(ctx context.Context, voices []Synthesizer) {
	for {
		select {
		case sentence, more := <-v.say:
			if !more || !v.sentence(ctx, sentence.Spoken, &voices) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// sentence speaks one; a voice that fails is not used again in this answer, and the next one says the whole sentence. It is false once nobody listens.
func (v *voice) sentence(ctx context.Context, text string, voices *[]Synthesizer) bool {
	for len(*voices) > 0 {
		begun, err := v.speak(ctx, (*voices)[0], text)
		if err == nil {
			return v.hand(ctx, piece{ended: true})
		}
		if ctx.Err() != nil {
			return false
		}
		*voices = (*voices)[1:]
		if !v.hand(ctx, piece{err: err, last: len(*voices) == 0, ended: begun}) {
			return false
		}
	}
	return v.hand(ctx, piece{ended: true})
}

var (
	errVoiceSilent = errors.New("session: the voice makes no sound")
	errVoiceLong   = errors.New("session: the voice does not come to an end")
)

// speak lets one voice speak. A voice that panics has failed, and so has one that makes nothing for too long, or too much.
func (v *voice) speak(ctx context.Context, with Synthesizer, text string) (begun bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("session: synthesizer panicked: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	silent := time.AfterFunc(voiceSilent, func() { stop(errVoiceSilent) })
	defer silent.Stop()
	length := time.Duration(0)
	for chunk, err := range with.Synthesize(ctx, text) {
		if err != nil {
			return begun, err
		}
		if chunk.Rate < speech.MinRate || chunk.Rate > speech.MaxRate {
			return begun, fmt.Errorf("session: a voice of %d Hz: they go from %d to %d", chunk.Rate, speech.MinRate, speech.MaxRate)
		}
		if length += chunk.Duration(); length > longSpeech {
			return begun, errVoiceLong
		}
		for samples := range slices.Chunk(chunk.Samples, maxPiece) {
			if !v.hand(ctx, piece{chunk: speech.Chunk{Samples: samples, Rate: chunk.Rate}}) {
				return begun, context.Cause(ctx)
			}
			begun = true
			silent.Reset(voiceSilent)
		}
	}
	return begun, context.Cause(ctx) // who was silent for too long may just have stopped
}

func (v *voice) hand(ctx context.Context, p piece) bool {
	p.at = time.Now()
	select {
	case v.pieces <- p:
		return true
	case <-ctx.Done():
		return false
	}
}
