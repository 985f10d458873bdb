package session

import (
	"vela/protocol"
)

// Seat is one of the places that a session has for peers.
type Seat int

// The seats. A session has at most one socket and at most one room.
const (
	Socket Seat = iota
	Room
	seats  // how many there are
	nobody // whose the floor is while nobody speaks
)

// Hello is how a peer comes. Its zero value is a socket that begins.
type Hello struct {
	Seat   Seat
	Resume bool
	Token  string // of a resume: what the client resumed with, which the session may not know after a restart
	After  uint64 // of a resume: the last event that the client has

	// Order is when the peer's connection was made, among all of the process: a later one is higher. A client that has lost
	// a connection and resumes in another one must not be thrown out by what still arrives from the first. 0: just now.
	Order uint64

	Allowance Allowance // of a resume: what the client's audio is taken from now
}

// join gives a peer its seat. Whoever sat there is told that the session went on elsewhere; a peer that comes late is told
// so itself.
func (s *Session) join(p Peer, h Hello) {
	if old := s.seats[h.Seat]; old != nil {
		if h.Order != 0 && h.Order < s.orders[h.Seat] {
			p.Close(protocol.CloseTakenOver, "the session went on in another connection")
			return
		}
		s.cfg.Metrics.takenOver()
		old.Close(protocol.CloseTakenOver, "the session went on in another connection")
	}
	if a := s.answer; s.isAlone() && a != nil && a.voice != nil && a.hold == nil {
		a.voice.resume(s.since(s.alone))
	}
	s.returned()
	s.seats[h.Seat], s.orders[h.Seat], s.streams[h.Seat] = p, h.Order, nil
	first := !s.joined
	s.joined = true
	s.countAlone(false)
	s.lastSeen = s.now
	switch {
	case s.cfg.Version == 1:
		s.greet(p)
	case h.Resume:
		if s.cfg.Token == "" {
			s.cfg.Token = h.Token
		}
		if h.Allowance != nil {
			s.cfg.Allowance = h.Allowance
		}
		s.resume(p, h.After)
	case first:
		s.tell(p, s.ready(false, false))
		s.emit(protocol.SessionState{Value: s.machine.state()})
	default:
		s.greet(p)
	}
	s.wake()
	s.play()
}

// tellTerms tells the other peers, as far as they ask for it, what one of them has changed.
func (s *Session) tellTerms(by Peer) {
	for _, p := range s.seats {
		if other, asks := p.(Listener); asks && p != by {
			other.Agreed(s.settings.terms)
		}
	}
}

// greet tells one peer who and where the session is.
func (s *Session) greet(p Peer) {
	s.tell(p, s.ready(false, false))
	s.tell(p, protocol.SessionState{Value: s.machine.state()})
}

// resume gives a peer exactly the events that it has missed, or none.
func (s *Session) resume(p Peer, after uint64) {
	missed, ok := s.events.after(after)
	s.cfg.Metrics.resumed(ok)
	s.tell(p, s.ready(true, ok))
	if ok {
		p.Resend(missed)
		return
	}
	s.tell(p, protocol.SessionState{Value: s.machine.state()})
}

func (s *Session) ready(resumed, recovered bool) protocol.SessionReady {
	r := protocol.SessionReady{SessionID: s.cfg.ID}
	if s.cfg.Version >= 2 {
		t := s.settings.terms
		t.Resumed, t.Recovered, t.ResumeToken = resumed, recovered, s.cfg.Token
		t.ResumeWindowMs, t.LastSeq = s.cfg.Window.Milliseconds(), s.events.last
		r.Terms = &t
	}
	return r
}

// leave takes a peer away. A session of version 1 ends with its last one; in version 2 it waits to be resumed.
func (s *Session) leave(p Peer) error {
	seat := s.seatOf(p)
	if seat == nobody {
		return nil // it was taken over: whoever did that decides how long the session lasts
	}
	s.seats[seat] = nil
	if !s.isAlone() {
		return nil
	}
	if s.cfg.Version == 1 {
		return errSessionEnded
	}
	s.alone = s.now
	s.countAlone(true)
	s.wake()
	return nil
}

// isAlone says whether everybody who was here has left.
func (s *Session) isAlone() bool {
	return s.joined && s.seats[Socket] == nil && s.seats[Room] == nil
}

// seatOf is where a peer sits, nobody if it has been taken over.
func (s *Session) seatOf(p Peer) Seat {
	for i := range s.seats {
		if s.seats[i] == p {
			return Seat(i)
		}
	}
	return nobody
}

// takeFloor lets a peer speak unless another one does. A seat that nobody sits on speaks no more: what was said from it
// is forgotten.
func (s *Session) takeFloor(p Peer) bool {
	seat := s.seatOf(p)
	if s.floor != nobody && s.floor != seat {
		if s.seats[s.floor] != nil {
			return false
		}
		s.forget()
	}
	s.floor = seat
	return true
}
