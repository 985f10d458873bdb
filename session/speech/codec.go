package speech

import "time"

// Codec is Opus (RFC 6716), mono: it makes the two ends of a stream. It may be used from any goroutine; what it makes
// belongs to one at a time. The package vela/session/opus has one, where its library is in the build.
type Codec interface {
	// Encoder begins a stream of sound at one of [CodecRates].
	Encoder(rate int) (Encoder, error)
	// Decoder begins to read a stream, as sound at one of [CodecRates], whatever rate it was encoded at.
	Decoder(rate int) (Decoder, error)
}

// Encoder encodes one stream.
type Encoder interface {
	// Encode makes one packet of exactly [PacketLength] of sound. The packet is the caller's to keep.
	Encode(samples []int16) ([]byte, error)
}

// Decoder decodes one stream. After lost packets it takes some ms to sound right again; there is nothing to be done.
type Decoder interface {
	// Decode makes at most 120 ms of sound of one packet, or says that it is none. The sound is the caller's to keep.
	Decode(packet []byte) ([]int16, error)
}

// CodecRates are the rates that Opus knows, in Hz.
var CodecRates = []int{8000, 12000, 16000, 24000, 48000}

const (
	// PacketLength is how much sound one packet holds that is made here.
	PacketLength = 40 * time.Millisecond
	// CodecDelay is how much later an encoder's sound comes out of a decoder: RFC 7845, section 4.2, has 312 samples of 48 kHz
	// for libopus.
	CodecDelay = 6500 * time.Microsecond
)
