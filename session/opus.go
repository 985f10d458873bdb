package session

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"vela/protocol"
	"vela/session/speech"
)

// Sound comes and goes as PCM16, or as Opus where the gateway has a codec: then each message is one packet. Whatever a
// session does with sound it does with samples, so Opus is decoded where it comes in and encoded when it goes out.

// The encodings of a [protocol.Format].
const (
	encodingPCM16 = "pcm16"
	encodingOpus  = "opus"
)

// checkFormat says why sound cannot be written as a client asks for, at most so many Hz; setting names what it is for.
func (c *Config) checkFormat(setting string, f *protocol.Format, highest int) error {
	opus := f.Encoding == encodingOpus
	switch {
	case opus && c.Codec == nil:
		return unsupported(setting+".encoding", "pcm16; opus is in what make run builds, with libopus")
	case !opus && f.Encoding != encodingPCM16:
		return unsupported(setting+".encoding", strings.Join(c.encodings(), " or "))
	case opus && !slices.Contains(speech.CodecRates, f.Rate):
		return unsupported(setting+".rate", codecRates()+" for opus")
	case f.Rate < lowestRate || f.Rate > highest:
		return unsupported(setting+".rate", strconv.Itoa(lowestRate)+" to "+strconv.Itoa(highest))
	case f.Framing != "json" && f.Framing != "binary":
		return unsupported(setting+".framing", "json or binary")
	}
	return nil
}

func (c *Config) encodings() []string {
	if c.Codec == nil {
		return []string{encodingPCM16}
	}
	return []string{encodingPCM16, encodingOpus}
}

func codecRates() string {
	var rates []string
	for _, r := range speech.CodecRates {
		rates = append(rates, strconv.Itoa(r))
	}
	return strings.Join(rates, ", ")
}

// decode is what a peer says in one packet. The stream that it belongs to lasts as long as the peer keeps its seat.
func (s *Session) decode(p Peer, packet []byte) ([]int16, error) {
	if len(packet) > maxFrame {
		return nil, errPacket
	}
	stream := &s.streams[s.seatOf(p)]
	if *stream == nil {
		d, err := s.cfg.Codec.Decoder(s.settings.input.Rate)
		if err != nil {
			return nil, err
		}
		*stream = d
	}
	samples, err := (*stream).Decode(packet)
	if err != nil {
		return nil, errPacket // what the codec says of it helps nobody
	}
	return samples, nil
}

// encode is the sound of an event as it goes out.
func (v *voice) encode(pcm []int16) (chunk string, err error) {
	b := []byte(nil)
	if v.packets == nil {
		b = speech.Bytes(pcm)
	} else if b, err = v.packets.Encode(pcm); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// tail follows the last sentence that there is for now: a decoder hands its end out only with what comes after it.
func (v *voice) tail() {
	if v.packets != nil && len(v.spoken) == 0 {
		v.pcm = append(v.pcm, make([]int16, v.samples(speech.CodecDelay))...)
	}
}

// fill makes what remains of the sound whole packets: Opus has no shorter ones. The silence is part of the sound, so
// what is spoken later begins behind it.
func (v *voice) fill(n int) {
	if v.packets != nil && len(v.pcm) > 0 && len(v.pcm) < n {
		v.pcm = append(v.pcm, make([]int16, n-len(v.pcm))...)
	}
}

// fillPhrase makes whole packets of what is left of a phrase, which is the last of the sound there is: what follows it
// begins behind.
func (v *voice) fillPhrase() {
	n := v.samples(chunkLength)
	if over := v.filler.left % n; v.packets != nil && over > 0 {
		v.pcm = append(v.pcm, make([]int16, n-over)...)
		v.filler.left += n - over
	}
}
