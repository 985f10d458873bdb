package room

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn/deterministic"
)

// marks is a codec whose packets are the rate in kHz and the first sample, and whose decoder makes a packet's length of its
// first byte.
type marks struct{ rate int }

func (marks) Encoder(rate int) (speech.Encoder, error) { return marks{rate}, nil }
func (marks) Decoder(rate int) (speech.Decoder, error) { return marks{rate}, nil }
func (m marks) Encode(s []int16) ([]byte, error)       { return []byte{byte(m.rate / 1000), byte(s[0])}, nil }
func (m marks) Decode(p []byte) ([]int16, error) {
	return slices.Repeat([]int16{int16(p[0])}, speech.Count(speech.PacketLength, m.rate)), nil
}

// agreeing is the peer of a room whose session was made elsewhere, with these formats.
func agreeing(in, out *protocol.Format) *peer {
	r := &Room{cfg: &Config{Codec: marks{}}, session: session.New(session.Config{ID: "12345678", Version: 2, Mock: deterministic.Engine{}}), end: make(chan error, 1)}
	p := newPeer(r, noop.Span{})
	p.Agreed(protocol.Terms{Audio: protocol.AudioFormats{Input: in, Output: out}})
	return p
}

// What a room hears goes to the session in the format that its maker wanted, and what the session says in it is read.
func TestARoomSpeaksTheSessionsFormats(t *testing.T) {
	second := slices.Repeat([]int16{7}, speech.Rate)
	p := agreeing(&protocol.Format{Encoding: "pcm16", Rate: 8000}, nil)
	samples := 0
	for range 3 {
		for _, a := range p.audio(second, nil) {
			samples += len(a.PCM) / 2
		}
	}
	if samples < 23_000 || samples > 24_000 {
		t.Errorf("3 s at 8 kHz are %d samples", samples)
	}
	p = agreeing(&protocol.Format{Encoding: "opus", Rate: 16000}, nil)
	var packets [][]byte
	for piece := range slices.Chunk(second, 100) {
		for _, a := range p.audio(piece, nil) {
			packets = append(packets, a.PCM)
		}
	}
	if want := int(time.Second / speech.PacketLength); len(packets) != want || !slices.Equal(packets[0], []byte{16, 7}) {
		t.Errorf("%d packets, the first is %v", len(packets), packets[0])
	}
	p = agreeing(nil, &protocol.Format{Encoding: "opus", Rate: 24000})
	for range 2 {
		p.Send(session.Event{Message: protocol.ResponseAudioDelta{ResponseID: "r", Chunk: base64.StdEncoding.EncodeToString([]byte{9, 9})}})
	}
	if n := p.player.ready(); n != 2*frameSize || p.player.waiting[0] != 9 {
		t.Errorf("%d samples of two packets", n)
	}
}

// Sound that nobody wants to hear counts as played, also what waits already.
func TestAnswersThatAreNotToBeHeard(t *testing.T) {
	p := agreeing(nil, &protocol.Format{Encoding: "pcm16", Rate: outRate})
	say := func() {
		p.Send(session.Event{Message: protocol.ResponseAudioDelta{ResponseID: "r", Chunk: base64.StdEncoding.EncodeToString(make([]byte, 2*outRate))}})
	}
	heard := func() time.Duration {
		select {
		case now := <-p.player.progress:
			return now.at
		default:
			return -1
		}
	}
	say()
	p.speak(false)
	if at := heard(); p.player.ready() != 0 || at != time.Second {
		t.Errorf("%d samples wait, and %s were played", p.player.ready(), at)
	}
	say()
	if at := heard(); p.player.ready() != 0 || at != 2*time.Second {
		t.Errorf("%d samples wait, and %s were played", p.player.ready(), at)
	}
	p.speak(true)
	say()
	if p.player.ready() != outRate {
		t.Errorf("%d samples wait", p.player.ready())
	}
}
