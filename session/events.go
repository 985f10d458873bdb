package session

import (
	"time"

	"vela/protocol"
	"vela/protocol/ganglia"
)

// Event is one thing that a peer shows.
type Event struct {
	Seq     uint64 // from 1 without gaps; 0 for what concerns only one peer and is not kept
	At      int64  // Unix ms
	Message protocol.Message
}

// emit numbers an event of the session, keeps it and hands it to every peer.
func (s *Session) emit(m protocol.Message) {
	e := s.events.add(s.now, m)
	s.store(e)
	s.journal.event(e)
	if s.replayed != nil {
		s.replayed(e)
	}
	for _, p := range s.seats {
		if p != nil {
			p.Send(e)
		}
	}
}

// emit2 emits what only version 2 has.
func (s *Session) emit2(m protocol.Message) {
	if s.cfg.Version >= 2 {
		s.emit(m)
	}
}

// tell hands one peer what concerns nobody else.
func (s *Session) tell(p Peer, m protocol.Message) { p.Send(Event{At: s.now.UnixMilli(), Message: m}) }

// refuse tells a peer why its client's message did nothing.
func (s *Session) refuse(p Peer, ref string, err error) {
	e := s.wireError(err, protocol.CodeInternal)
	e.Ref = ref
	s.tell(p, e)
}

// enter moves the machine and says so. A step that the table does not have is a fault of ours: it is logged, and the
// session stays where it is.
func (s *Session) enter(event string) {
	if s.fire(event) {
		s.emit(protocol.SessionState{Value: s.machine.state()})
	}
}

// fire moves the machine and says nothing.
func (s *Session) fire(event string) bool {
	err := s.machine.fire(event)
	if err != nil {
		s.log.Error("no such transition", "error", err)
	}
	return err == nil
}

// The bounds of what a session keeps of its events. Sound that was played counts among all of them alone: of that the
// log keeps no more than where it was and what it spoke.
const (
	maxEvents     = 4096
	maxAllEvents  = 8 * maxEvents // 20 minutes of an answer that is spoken
	maxEventBytes = 8 << 20
)

// eventLog is the last events of a session, in order, oldest dropped first.
type eventLog struct {
	ring  []Event // grows by doubling up to maxAllEvents, so that an idle session costs nothing
	start int     // where the oldest one lies
	n     int
	spent int // of n, sound that was played
	bytes int
	last  uint64
}

func (l *eventLog) add(at time.Time, m protocol.Message) Event {
	l.last++
	e := Event{Seq: l.last, At: at.UnixMilli(), Message: m}
	for l.n-l.spent >= maxEvents || l.n == maxAllEvents {
		l.drop()
	}
	if l.n == len(l.ring) {
		l.grow()
	}
	l.ring[(l.start+l.n)%len(l.ring)] = e
	l.n++
	l.bytes += weight(m)
	for l.bytes > maxEventBytes && l.n > 1 {
		l.drop()
	}
	return e
}

// spend lets go of the sound of an event that was played: the event itself stays.
func (l *eventLog) spend(seq uint64) {
	first := l.last - uint64(l.n) + 1
	if seq < first || seq > l.last {
		return // it has been dropped
	}
	e := &l.ring[(l.start+int(seq-first))%len(l.ring)]
	m, ok := e.Message.(protocol.ResponseAudioDelta)
	if !ok || m.Chunk == "" {
		return
	}
	l.bytes -= weight(m)
	m.Chunk = ""
	e.Message = m
	l.bytes += weight(m)
	l.spent++
}

func isSpent(m protocol.Message) bool {
	sound, ok := m.(protocol.ResponseAudioDelta)
	return ok && sound.Chunk == ""
}

func (l *eventLog) drop() {
	if isSpent(l.ring[l.start].Message) {
		l.spent--
	}
	l.bytes -= weight(l.ring[l.start].Message)
	l.ring[l.start] = Event{}
	l.start = (l.start + 1) % len(l.ring)
	l.n--
}

func (l *eventLog) grow() {
	bigger := make([]Event, max(16, min(2*len(l.ring), maxAllEvents)))
	for i := range l.n {
		bigger[i] = l.ring[(l.start+i)%len(l.ring)]
	}
	l.ring, l.start = bigger, 0
}

// after returns the events that follow number seq, each once; it is false when they are not all there any more, or
// when seq has not been reached.
func (l *eventLog) after(seq uint64) ([]Event, bool) {
	first := l.last - uint64(l.n) + 1
	if seq > l.last || seq+1 < first {
		return nil, false
	}
	var events []Event
	for i := int(seq + 1 - first); i < l.n; i++ {
		events = append(events, l.ring[(l.start+i)%len(l.ring)])
	}
	return events, true
}

func artifactWeight(a ganglia.Artifact) int {
	n := 256 + len(a.Content) + len(a.Diff) + len(a.Message)
	for _, r := range a.Results {
		n += 48 + len(r.File) + len(r.Content)
	}
	return n
}

// weight is about what an event holds in memory beside its place in the ring, in bytes.
func weight(m protocol.Message) int {
	const base = 32
	switch m := m.(type) {
	case protocol.TranscriptPartial:
		return base + len(m.Text)
	case protocol.TranscriptFinal:
		return base + len(m.Text)
	case protocol.ResponseTextDelta:
		return base + len(m.Text)
	case protocol.Error:
		return base + len(m.Message)
	case protocol.ResponseCompleted:
		return base + len(m.HeardText)
	case protocol.ResponseCancelled:
		return base + len(m.HeardText)
	case protocol.ThinkingDelta:
		return base + len(m.Text)
	case protocol.ToolCall:
		return base + len(m.Input)
	case protocol.ToolResult:
		return base + len(m.Output)
	case protocol.ResponseAudioDelta:
		return 3*base + len(m.Chunk) + len(m.Text)
	case protocol.ApprovalRequest:
		return base + len(m.Summary)
	case ganglia.Artifact:
		return base + artifactWeight(m)
	}
	return base
}
