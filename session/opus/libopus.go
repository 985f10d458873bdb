//go:build cgo && opus

package opus

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	libopus "gopkg.in/hraban/opus.v2"

	"vela/session/speech"
)

// New returns the codec.
func New() (speech.Codec, error) { return codec{}, nil }

type codec struct{}

// complexity is how hard the encoder tries, of 10: what is more costs twice the time, and speech sounds the same.
const complexity = 5

// Encoder implements [speech.Codec].
func (codec) Encoder(rate int) (speech.Encoder, error) {
	e, err := libopus.NewEncoder(rate, 1, libopus.AppVoIP)
	if err != nil {
		return nil, fmt.Errorf("opus: an encoder for %d Hz: %w", rate, err)
	}
	if err := e.SetComplexity(complexity); err != nil {
		return nil, fmt.Errorf("opus: %w", err)
	}
	return &encoder{lib: e, size: speech.Count(speech.PacketLength, rate)}, nil
}

// Decoder implements [speech.Codec].
func (codec) Decoder(rate int) (speech.Decoder, error) {
	d, err := libopus.NewDecoder(rate, 1)
	if err != nil {
		return nil, fmt.Errorf("opus: a decoder for %d Hz: %w", rate, err)
	}
	return &decoder{lib: d, pcm: make([]int16, speech.Count(longest, rate))}, nil
}

// longest is how much sound a packet can hold: RFC 6716, section 3.2.5, requirement R5.
const longest = 120 * time.Millisecond

// maxFrame bounds what one frame is encoded to, in bytes: RFC 6716, section 3.2.1. A packet made here holds one frame of at
// most 20 ms for each half of it, and three bytes about them.
const maxFrame = 1275

type encoder struct {
	lib  *libopus.Encoder
	size int
	out  [2*maxFrame + 3]byte
}

func (e *encoder) Encode(samples []int16) ([]byte, error) {
	if len(samples) != e.size {
		return nil, fmt.Errorf("opus: %d samples are no packet: it takes %d", len(samples), e.size)
	}
	n, err := e.lib.Encode(samples, e.out[:])
	if err != nil {
		return nil, fmt.Errorf("opus: encode: %w", err)
	}
	return bytes.Clone(e.out[:n]), nil
}

type decoder struct {
	lib *libopus.Decoder
	pcm []int16
}

func (d *decoder) Decode(packet []byte) ([]int16, error) {
	if len(packet) == 0 {
		return nil, ErrPacket // the library would make up what was lost
	}
	n, err := d.lib.Decode(packet, d.pcm)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPacket, err)
	}
	return slices.Clone(d.pcm[:n]), nil
}
