package client

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"vela/session/speech"
)

// packer encodes what one connection sends, as one stream.
type packer struct {
	codec speech.Codec // nil: there is none

	mu     sync.Mutex // SendAudio may be called from any goroutine
	stream speech.Encoder
	rate   int
}

var errNoCodec = errors.New("client: Opus was agreed on, and Options.Codec is missing")

// pack makes samples into packets.
func (p *packer) pack(samples []int16, rate int) (packets [][]byte, err error) {
	if p.codec == nil {
		return nil, errNoCodec
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == nil || p.rate != rate {
		if p.stream, err = p.codec.Encoder(rate); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		p.rate = rate
	}
	size := speech.Count(speech.PacketLength, rate)
	for piece := range slices.Chunk(samples, size) {
		if missing := size - len(piece); missing > 0 {
			piece = append(slices.Clone(piece), make([]int16, missing)...)
		}
		packet, err := p.stream.Encode(piece)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		packets = append(packets, packet)
	}
	return packets, nil
}
