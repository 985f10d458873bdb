//go:build !livekit

package room

// HasAudio says whether this build can hear and speak in rooms.
const HasAudio = false

func newDecoder(int) (decoder, error) { return nil, errNoAudio }

func newEncoder(int) (encoder, error) { return nil, errNoAudio }
