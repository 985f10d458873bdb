package speech

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Chunk is a piece of synthesized speech: mono, in the order that it is to be played in.
type Chunk struct {
	Samples []int16
	Rate    int // Hz, from [MinRate] to [MaxRate]; the same in all chunks of a sentence
}

// Duration is how long it plays.
func (c Chunk) Duration() time.Duration { return Duration(len(c.Samples), c.Rate) }

// LongestChunk is the most that [StreamPCM] and [StreamWAV] put into one chunk: who plays it can stop this soon.
const LongestChunk = 40 * time.Millisecond

// ErrRate is wrapped by errors of [StreamPCM] and [StreamWAV] for speech at a rate that no [Resampler] takes.
var ErrRate = errors.New("a rate that is not taken")

// StreamPCM yields PCM16 little-endian, mono, at rate Hz, as it arrives, to the end of r: a chunk for each read, of [LongestChunk] at most. Half a
// sample waits for its other half, and is left out at the end. A chunk is the reader's to keep.
//
// Past limit it yields what came before and then [ErrTooLong]. Other errors wrap [ErrRate] or come from r; after one there is nothing more.
func StreamPCM(r io.Reader, rate int, limit time.Duration) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		f := wavFormat{tag: tagPCM, channels: 1, rate: rate, bits: 8 * BytesPerSample}
		if err := f.stream(r, limit, yield); err != nil {
			yield(Chunk{}, fmt.Errorf("speech: read PCM: %w", err))
		}
	}
}

// StreamWAV yields the sound of a WAV file as it arrives, in the chunks of [StreamPCM] and with its errors, and takes the files of [ReadWAV] as that
// takes them: a length of 0 or one that is too large does not count, a smaller one ends the sound. The rest of r is left unread.
// What is no WAV file that is read gets an error that wraps [ErrNotWAV] or [ErrNotPCM].
func StreamWAV(r io.Reader, limit time.Duration) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		f, size, err := readHeader(r)
		if err == nil {
			err = f.stream(dataOf(r, size), limit, yield)
		}
		if err != nil {
			yield(Chunk{}, fmt.Errorf("speech: read WAV: %w", err))
		}
	}
}

// stream yields chunks until r ends, the limit is reached or nobody wants more.
func (f wavFormat) stream(r io.Reader, limit time.Duration, yield func(Chunk, error) bool) error {
	if f.rate < MinRate || f.rate > MaxRate {
		return fmt.Errorf("%w: %d Hz", ErrRate, f.rate)
	}
	buf := make([]byte, Count(LongestChunk, f.rate)*f.align())
	held, room := 0, Count(limit, f.rate) // bytes of a sample that is not whole yet; samples that may still come
	for {
		n, err := r.Read(buf[held:])
		n += held
		whole := n / f.align()
		if take := min(whole, room); take > 0 {
			room -= take
			if !yield(Chunk{f.mix(make([]int16, 0, take), buf[:take*f.align()]), f.rate}, nil) {
				return nil
			}
			whole -= take
		}
		switch {
		case whole > 0:
			return ErrTooLong
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		held = copy(buf, buf[n-n%f.align():n])
	}
}
