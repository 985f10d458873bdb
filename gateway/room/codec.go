package room

import "errors"

// encoder makes an Opus packet of samples, and decoder samples of a packet; both return how much they wrote. They are
// libopus's, in builds with the tag livekit. A build without it goes into rooms for text alone, and says so there.
type (
	encoder interface {
		Encode(pcm []int16, data []byte) (int, error)
	}
	decoder interface {
		Decode(data []byte, pcm []int16) (int, error)
	}
)

var errNoAudio = errors.New("room: this build has no sound in rooms: build it with libopus-dev installed and -tags 'livekit nolibopusfile'")
