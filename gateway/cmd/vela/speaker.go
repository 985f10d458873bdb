package main

import (
	"encoding/base64"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// spoken asks for answers that are spoken.
func spoken(encoding string) *protocol.Format {
	return &protocol.Format{Encoding: encoding, Rate: answerRate, Framing: "json"}
}

const (
	ackEvery = 100 * time.Millisecond // while something is played
	// behind is how long sound takes from a player's pipe to the loudspeaker, about: a word that is not out yet has not
	// been heard.
	behind = 100 * time.Millisecond
)

// speaker makes answers heard, and tells the gateway by the clock how much of them has been. A goroutine of its own does,
// from newSpeaker to close; the methods may be called from any one goroutine.
type speaker struct {
	sink  sink
	pcm   func([]byte) []int16            // the sound of an event
	ack   func(protocol.PlaybackAck) bool // tells the gateway; false where it could not be
	in    chan any                        // events, and cutting
	notes chan string                     // for a person; what does not fit is dropped
	gone  chan struct{}

	// Owned by the goroutine.
	id     string        // of the answer that is heard
	end    time.Duration // where its sound ends that has come
	dry    time.Time     // when all of that will have been heard
	acked  time.Duration
	over   string // the answer of which nothing more is heard
	broken bool   // the sink takes no more: it counts as heard, so that the answer goes on
}

// cutting asks for silence, and for how much was heard.
type cutting struct{ heard chan protocol.PlaybackAck }

// waiting bounds the events on their way to the speaker; a full one makes whoever receives wait.
const waiting = 256

// newSpeaker is for sound that decode makes samples of, at answerRate.
func newSpeaker(to sink, decode func([]byte) []int16, ack func(protocol.PlaybackAck) bool) *speaker {
	s := &speaker{sink: to, pcm: decode, ack: ack, in: make(chan any, waiting), notes: make(chan string, 4), gone: make(chan struct{})}
	go s.run()
	return s
}

// hear takes an event of the gateway's, whatever it is. A nil speaker makes nothing heard.
func (s *speaker) hear(m protocol.Message) {
	if s == nil {
		return
	}
	switch m.(type) {
	case protocol.ResponseAudioDelta, protocol.ResponseCompleted, protocol.ResponseCancelled:
		s.in <- m
	}
}

// cut falls silent, and says how much was heard of which answer, if one runs; that one is not heard any more.
func (s *speaker) cut() protocol.PlaybackAck {
	if s == nil {
		return protocol.PlaybackAck{}
	}
	c := cutting{make(chan protocol.PlaybackAck, 1)}
	s.in <- c
	return <-c.heard
}

// notice is what a person should know.
func (s *speaker) notice() <-chan string {
	if s == nil {
		return nil
	}
	return s.notes
}

// close ends the speaker. The sink stays open: what it has is still heard.
func (s *speaker) close() {
	close(s.in)
	<-s.gone
}

func (s *speaker) run() {
	defer close(s.gone)
	ticks := time.NewTicker(ackEvery)
	defer ticks.Stop()
	for {
		tick := ticks.C
		if s.acked >= s.end {
			tick = nil
		}
		select {
		case m, ok := <-s.in:
			if !ok {
				return
			}
			s.take(m)
		case <-tick:
			s.tell()
		}
	}
}

func (s *speaker) take(m any) {
	switch m := m.(type) {
	case protocol.ResponseAudioDelta:
		s.sound(m)
	case protocol.ResponseCompleted:
		s.sink.end()
		s.over, s.acked = m.ResponseID, s.end
	case protocol.ResponseCancelled:
		if m.ResponseID == s.id && s.over != s.id {
			s.silence()
		}
	case cutting:
		heard := protocol.PlaybackAck{}
		if s.id != "" && s.over != s.id {
			heard = protocol.PlaybackAck{ResponseID: s.id, PlayedMs: s.heard().Milliseconds()}
		}
		s.silence()
		m.heard <- heard
	}
}

// sound plays a piece of an answer. A phrase for a silence is for who listens, and stands in no record.
func (s *speaker) sound(m protocol.ResponseAudioDelta) {
	chunk, err := base64.StdEncoding.DecodeString(m.Chunk)
	if err != nil || m.ResponseID == s.over {
		return
	}
	if m.ResponseID != s.id {
		s.sink.end()
		s.id, s.end, s.acked, s.dry = m.ResponseID, 0, 0, time.Time{}
	}
	samples := s.pcm(chunk)
	long := speech.Duration(len(samples), answerRate)
	s.end = time.Duration(m.StartMs)*time.Millisecond + long
	if now := time.Now(); s.dry.Before(now) {
		s.dry = now.Add(behind)
	}
	s.dry = s.dry.Add(long)
	if !s.broken && !(m.Filler && s.sink.atOnce()) {
		note, ok := s.sink.write(samples)
		s.broken = !ok
		if note != "" {
			s.say(note)
		}
	}
	if s.atOnce() {
		s.tell()
	}
}

func (s *speaker) atOnce() bool { return s.broken || s.sink.atOnce() }

// heard is how much has been.
func (s *speaker) heard() time.Duration {
	if s.atOnce() {
		return s.end
	}
	return max(s.acked, s.end-max(0, time.Until(s.dry)))
}

// tell acknowledges what has been heard since. What could not be told is told again.
func (s *speaker) tell() {
	heard := s.heard()
	ms := heard.Milliseconds()
	if heard >= s.end {
		ms = (s.end + time.Millisecond - 1).Milliseconds() // startMs is rounded down
	}
	if heard > s.acked && s.ack(protocol.PlaybackAck{ResponseID: s.id, PlayedMs: ms}) {
		s.acked = heard
	}
}

func (s *speaker) silence() {
	s.sink.cut()
	s.over, s.acked = s.id, s.end
}

func (s *speaker) say(note string) {
	select {
	case s.notes <- note:
	default:
	}
}

// packetsOf decodes Opus. In the place of a packet that is none there is nothing: the next one says where it belongs.
func packetsOf(d speech.Decoder) func([]byte) []int16 {
	return func(packet []byte) []int16 {
		samples, err := d.Decode(packet)
		if err != nil {
			return nil
		}
		return samples
	}
}
