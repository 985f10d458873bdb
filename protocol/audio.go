package protocol

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
)

// flagFiller is the bit of a binary message's fourth number that says [ResponseAudioDelta]'s Filler.
const flagFiller = 1

// audioHeader is the length of what stands before the sound of a binary message, in bytes.
const audioHeader = 16

// AppendAudio appends response.audio.delta as the binary message that a client gets which has asked for binary framing,
// and returns the extended dst. Before the sound, PCM16 little-endian and mono or one Opus packet, stand four numbers of 32 bits
// each, little-endian: that of the response (12 for r12), where the sound begins in it in ms, the low bits of seq, and 1 for a
// phrase (Filler), else 0. It
// returns dst as it was for a message that the gateway does not make: one whose chunk is no base64.
func AppendAudio(dst []byte, seq uint64, m ResponseAudioDelta) []byte {
	before := len(dst)
	number, _ := strconv.ParseUint(m.ResponseID[min(1, len(m.ResponseID)):], 10, 32)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(number))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(m.StartMs))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(seq))
	flags := uint32(0)
	if m.Filler {
		flags = flagFiller
	}
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst, err := base64.StdEncoding.AppendDecode(dst, []byte(m.Chunk))
	if err != nil {
		return dst[:before]
	}
	return dst
}

// Audio is the sound of a binary message.
type Audio struct {
	Response uint32 // the number of the response: 12 for r12
	StartMs  uint32 // where the sound begins in it
	Seq      uint32 // the low bits of the event's number
	Filler   bool   // it is of a phrase for a silence
	Sound    []byte // PCM16 little-endian and mono, or one Opus packet, as agreed; part of the frame
}

// DecodeAudio reads a binary message of the gateway's. Its error is a [*DecodeError]: the frame is too short.
func DecodeAudio(frame []byte) (Audio, error) {
	if len(frame) < audioHeader {
		return Audio{}, invalid("A binary message begins with a header of %d bytes; this one has %d bytes.", audioHeader, len(frame))
	}
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(frame[4*i:]) }
	return Audio{number(0), number(1), number(2), number(3)&flagFiller != 0, frame[audioHeader:]}, nil
}
