//go:build livekit

package room

import (
	"fmt"

	"gopkg.in/hraban/opus.v2"
)

// HasAudio says whether this build can hear and speak in rooms.
const HasAudio = true

func newDecoder(rate int) (decoder, error) {
	d, err := opus.NewDecoder(rate, 1)
	if err != nil {
		return nil, fmt.Errorf("room: opus: %w", err)
	}
	return d, nil
}

// newEncoder is set to speech at 32 kbit/s, with what a receiver needs to conceal a packet that was lost.
func newEncoder(rate int) (encoder, error) {
	e, err := opus.NewEncoder(rate, 1, opus.AppVoIP)
	if err != nil {
		return nil, fmt.Errorf("room: opus: %w", err)
	}
	for _, set := range []error{e.SetBitrate(32000), e.SetInBandFEC(true), e.SetPacketLossPerc(5), e.SetComplexity(5)} {
		if set != nil {
			return nil, fmt.Errorf("room: opus: %w", set)
		}
	}
	return e, nil
}
