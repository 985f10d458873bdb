package room

import (
	"context"
	"errors"
	"net"
	"sync"
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
	patience   = 100 * time.Millisecond // how long sound may be late before it is silence that its sender leaves out
	silentStep = 20 * time.Millisecond  // of which there is a whole number then
	maxDTX     = 2                      // bytes: no packet with sound is as short as that (RFC 6716 section 3.1, RFC 7587 section 3.1.3)
)

// microphone is one participant's track. The room opens, mutes and closes it; its packets are read, put in order and
// decoded in a goroutine of the connection's.
type microphone struct {
	who
	sid     string
	packets packets
	muted   atomic.Bool
	until   atomic.Int64 // Unix ns: what is under way after a mute belongs to the utterance up to here
	closed  atomic.Bool

	isMuted func() bool // as LiveKit has it now; nil: never

	// Owned by the room.
	pressed bool          // it was unmuted, and nothing has come since: whatever comes next begins what its owner says
	loud    bool          // some of what it says now was more than silence
	refused bool          // what it says now began while somebody else had the floor: it is not heard to its end
	silence time.Duration // how long it has been silent

	// What was heard so far. The lock is held until it is on its way: packets come from run or from its buffer, silence from run.
	mu    sync.Mutex
	next  uint32    // RTP time that the next packet begins at
	going bool      // next holds
	at    time.Time // when that was heard which ends at next
	left  int       // samples of silence that may be filled in before the next packet; 0 while there is speech
}

// packets are a track's, as pion reads them.
type packets interface {
	read() (*rtp.Packet, error)
	SetReadDeadline(time.Time) error
}

// mute ends an utterance, or lets the next one begin.
func (m *microphone) mute(on bool) {
	wake := time.Now()
	if on {
		wake = wake.Add(drain)
		m.until.Store(wake.UnixNano())
	}
	m.muted.Store(on)
	m.pressed = !on
	_ = m.packets.SetReadDeadline(wake) // it fails on a track that is gone: run ends then
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
			m.heard(dec, p.Packet, post)
		}
	}, jitter.WithPacketLossHandler(func(missing, late uint64) {
		metrics.lostIn(missing + late - lost)
		lost = missing + late
	}))
	defer buffer.Close()
	drained := m.muted.Load()
	for armed := false; ; armed = m.arm(armed, drained) {
		p, err := m.packets.read()
		var timeout net.Error
		switch {
		case m.closed.Load():
			return
		case errors.As(err, &timeout) && timeout.Timeout():
			armed = true
			switch {
			case !m.muted.Load():
				m.fill(post)
			case !drained && time.Now().UnixNano() >= m.until.Load():
				drained = true
				m.forget()
				post(fell{m})
			}
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

// arm has the next read end when there is something to do without a packet. It returns whether there is; armed says that
// the last read had such an end. A mute and a close have reads end, too, and it may not undo that.
func (m *microphone) arm(armed, drained bool) bool {
	for {
		muted, closed := m.muted.Load(), m.closed.Load()
		var wake time.Time
		switch {
		case closed:
			wake = time.Now()
		case muted && !drained:
			wake = time.Unix(0, m.until.Load())
		case !muted:
			wake = m.due()
		}
		if wake.IsZero() && !armed {
			return false
		}
		_ = m.packets.SetReadDeadline(wake) // as in mute
		if m.muted.Load() == muted && m.closed.Load() == closed {
			return !wake.IsZero()
		}
	}
}

// ratio is how many steps of RTP time a sample takes.
const ratio = rtpRate / speech.Rate

// heard posts the samples of a packet, behind silence for what its sender left out and nobody filled in meanwhile.
func (m *microphone) heard(dec speech.Decoder, p *rtp.Packet, post func(input) bool) {
	samples, err := dec.Decode(p.Payload)
	if err != nil || len(samples) == 0 {
		return // no Opus, or an empty packet
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	gap := p.Timestamp - m.next
	if !m.going || gap > maxGap {
		gap = 0
	}
	m.next, m.going, m.at, m.left = p.Timestamp+uint32(len(samples)*ratio), true, time.Now(), 0
	if len(p.Payload) <= maxDTX || speech.Level(samples) <= quietLevel {
		m.left = maxGap / ratio
	}
	post(frame{m, append(make([]int16, gap/ratio, int(gap/ratio)+len(samples)), samples...)})
}

// fill posts the silence that a sender has left out up to now, as it passes: whoever waits for the end of speech is not to
// wait for the next packet, which comes 400 ms later. Packets that are late in the middle of speech are waited for.
func (m *microphone) fill(post func(input) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := time.Since(m.at) - patience
	n := min(m.left, speech.Count(passed.Truncate(silentStep), speech.Rate))
	if n <= 0 {
		return
	}
	m.next, m.at, m.left = m.next+uint32(n*ratio), m.at.Add(speech.Duration(n, speech.Rate)), m.left-n
	post(frame{m, make([]int16, n)})
}

// due is when there is silence to fill in; zero where there is none.
func (m *microphone) due() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		return time.Time{}
	}
	return m.at.Add(patience + silentStep)
}

// forget is for what is over: the next that is heard follows nothing.
func (m *microphone) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.going, m.left = false, 0
}
