package room

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/livekit/media-sdk/jitter"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"

	"vela/protocol"
	"vela/session/speech"
)

const (
	reorder    = 60 * time.Millisecond  // how long a packet waits for one that is missing before it
	drain      = 150 * time.Millisecond // how long after a mute what is still under way belongs to the utterance
	rtpRate    = 48000                  // of Opus, whatever it holds (RFC 7587 section 4.1)
	breath     = 500 * time.Millisecond // of silence, after which somebody who was not heard may begin
	quietLevel = -50.0                  // dBFS: what is below is no speech
	maxGap     = rtpRate                // a second: what a sender left out in silence is filled in up to here
)

// microphone is one participant's track. The room opens, mutes and closes it; its packets are read, put in order and
// decoded in a goroutine of the connection's.
type microphone struct {
	who
	sid     string
	packets packets
	muted   atomic.Bool
	closed  atomic.Bool

	isMuted func() bool // as LiveKit has it now; nil: never

	// Owned by the room.
	loud    bool          // some of what it says now was more than silence
	refused bool          // what it says now began while somebody else had the floor: it is not heard to its end
	silence time.Duration // how long it has been silent

	// Owned by run.
	next  uint32 // RTP time that the next packet begins at
	going bool   // next holds
}

// packets are a track's, as pion reads them.
type packets interface {
	read() (*rtp.Packet, error)
	SetReadDeadline(time.Time) error
}

// mute ends an utterance, or lets the next one begin.
func (m *microphone) mute(on bool) {
	m.muted.Store(on)
	deadline := time.Time{}
	if on {
		deadline = time.Now().Add(drain)
	}
	_ = m.packets.SetReadDeadline(deadline) // it fails on a track that is gone: run ends then
}

// close ends run.
func (m *microphone) close() {
	m.closed.Store(true)
	_ = m.packets.SetReadDeadline(time.Now())
}

// mayBegin says whether a microphone may take the floor now: not in the middle of what was not heard from its beginning.
func (m *microphone) mayBegin(samples []int16) bool {
	if m.refused && m.breathes(samples) {
		m.refused = false
	}
	return !m.refused
}

// breathes counts silence, and says when it was long enough for somebody to begin anew.
func (m *microphone) breathes(samples []int16) bool {
	if speech.Level(samples) > quietLevel {
		m.silence = 0
		return false
	}
	m.silence += speech.Duration(len(samples), speech.Rate)
	if m.silence < breath {
		return false
	}
	m.silence = 0
	return true
}

// end is what the session is told at the end of what was said: of nothing but silence it is to know nothing.
func (m *microphone) end() protocol.Message {
	loud := m.loud
	m.loud = false
	if loud {
		return protocol.InputAudioCommit{}
	}
	return protocol.InputAudioClear{}
}

// run reads until the track is gone, closed or ctx is done.
func (m *microphone) run(ctx context.Context, dec speech.Decoder, post func(input) bool, metrics *Metrics) {
	stop := context.AfterFunc(ctx, m.close)
	defer stop()
	defer post(fell{m})
	lost := uint64(0)
	buffer := jitter.NewBuffer(&codecs.OpusPacket{}, reorder, func(ps []jitter.ExtPacket) {
		for _, p := range ps {
			if samples := m.decode(dec, p.Packet); len(samples) > 0 {
				post(frame{m, samples})
			}
		}
	}, jitter.WithPacketLossHandler(func(missing, late uint64) {
		metrics.lostIn(missing + late - lost)
		lost = missing + late
	}))
	defer buffer.Close()
	drained := m.muted.Load()
	for {
		p, err := m.packets.read()
		var timeout net.Error
		switch {
		case m.closed.Load():
			return
		case errors.As(err, &timeout) && timeout.Timeout():
			if m.muted.Load() && !drained {
				drained = true
				post(fell{m})
			}
			_ = m.packets.SetReadDeadline(time.Time{})
			continue
		case err != nil:
			return
		}
		metrics.packetIn(len(p.Payload))
		if !m.muted.Load() {
			drained = false
		}
		if !drained {
			buffer.Push(p)
		}
	}
}

// decode makes samples of a packet, behind silence for what its sender left out.
func (m *microphone) decode(dec speech.Decoder, p *rtp.Packet) []int16 {
	samples, err := dec.Decode(p.Payload)
	if err != nil {
		return nil // no Opus, or an empty packet
	}
	const ratio = rtpRate / speech.Rate
	gap := p.Timestamp - m.next
	if !m.going || gap > maxGap {
		gap = 0
	}
	m.next, m.going = p.Timestamp+uint32(len(samples)*ratio), true
	return append(make([]int16, gap/ratio, int(gap/ratio)+len(samples)), samples...)
}
