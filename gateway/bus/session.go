package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// The bounds of what is kept of a conversation, and of what may wait to be. Protocol version 2 names them.
const (
	maxEvents     = 4096
	maxEventBytes = 8 << 20
)

// maxBatch is about what one message carries, in bytes, where single events are smaller.
const maxBatch = 256 << 10

func eventSubject(id string) string { return "vela.session." + id + ".event" }
func stateSubject(id string) string { return "vela.session." + id + ".state" }

// Session is one conversation's place on the bus. It has one writer: of two Sessions with the same id the later takes
// the conversation over, and the earlier meets [ErrConflict].
type Session struct {
	bus *Bus
	id  string

	// telling is held while answers are told, and taken before mu, so that they are told in order.
	telling sync.Mutex

	mu     sync.Mutex
	gone   bool
	lost   error  // why nothing can be appended any more: somebody else has
	known  bool   // whether last and place are what the store has
	doubt  bool   // the store refused the first of the queue, as something else was there; found says whether it is ours
	last   uint64 // the last event that is stored for all we know; 0 for none
	place  uint64 // where the stream has the message with it
	next   uint64 // the event that has to come next; 0 for any
	queue  []pending
	queued int // bytes in queue
	flight *flight
	idle   chan struct{} // closed when flight becomes nil; nil while nobody waits for that
	kept   tail
}

// pending is an event that is not stored yet.
type pending struct {
	seq   uint64
	event []byte
	done  func(error)
}

// flight is the one message of a session whose answer is awaited: events to store, or, with none, the question what the
// store has.
type flight struct {
	events []pending
	bytes  int
	timer  *time.Timer
	forget func()
}

// Session returns the place of a conversation, be it new or kept. Nothing is asked before the first append.
func (b *Bus) Session(id string) *Session { return &Session{bus: b, id: id} }

// ID is the conversation's id.
func (s *Session) ID() string { return s.id }

// Next is the number of the event that has to be appended next: the one after the last that is stored or on its way. It
// is 0 when any may be the first. After an error it says where to take up again.
func (s *Session) Next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Append stores an event, which survives the process being killed once Append has returned nil. Numbers have no gaps;
// the first event of a conversation of which nothing is kept may have any. The same event under the same number may be
// appended again after an error. When ctx ends first, the event is still on its way.
func (s *Session) Append(ctx context.Context, seq uint64, event []byte) error {
	done := make(chan error, 1)
	if err := s.AppendAsync(seq, event, func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("bus: append event %d: %w", seq, context.Cause(ctx))
	}
}

// AppendAsync is Append without the wait. It calls done once the event is stored, or is known not to be stored or not
// to be known, in the order of the events; after a failure all later ones that wait fail as well, and [Session.Next] is
// the first of them. Events that are appended while one is on its way travel together. done is called by a goroutine of
// the bus, must not wait, and may append; it is not called when AppendAsync returns an error. event belongs to the bus
// until then.
func (s *Session) AppendAsync(seq uint64, event []byte, done func(error)) error {
	if err := s.check(); err != nil {
		return err
	}
	if int64(len(event)+batchOverhead) > s.bus.nc.MaxPayload()-headerRoom {
		return fmt.Errorf("%w: event %d has %d bytes", ErrTooLarge, seq, len(event))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
		return ErrClosed
	case s.lost != nil:
		return s.lost
	case seq == 0 || s.next != 0 && seq != s.next:
		return fmt.Errorf("%w: %d, and %d has to come", ErrOrder, seq, max(s.next, 1))
	case len(s.queue) >= maxEvents || s.queued+len(event) > maxEventBytes && len(s.queue) > 0:
		return ErrBehind
	}
	s.queue = append(s.queue, pending{seq, event, done})
	s.queued += len(event)
	s.next = seq + 1
	if s.flight == nil {
		if err := s.send(); err != nil {
			s.drop()
			return err
		}
	}
	return nil
}

// Save stores the conversation's state in place of the one before. It returns as Append does, and comes before the
// first Append: events without a state are taken for the rest of a conversation that is over. Of two Saves at the same
// time either may be the last.
func (s *Session) Save(ctx context.Context, state []byte) error {
	if err := s.check(); err != nil {
		return err
	}
	if int64(len(state)) > s.bus.nc.MaxPayload()-headerRoom {
		return fmt.Errorf("%w: the state has %d bytes", ErrTooLarge, len(state))
	}
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	if gone {
		return ErrClosed
	}
	if err := s.bus.ready(); err != nil {
		return err
	}
	m, err := s.bus.answers.wait(ctx, &nats.Msg{
		Subject: stateSubject(s.id),
		Header:  nats.Header{"Nats-Rollup": {"sub"}}, // the one before goes
		Data:    state,
	})
	if err == nil {
		_, err = stored(m)
	}
	if err != nil {
		return fmt.Errorf("bus: save state: %w", err)
	}
	return nil
}

// The mark of an end takes the place of the state. The server notes at the end of a stream what is deleted, and loses
// such notes when it is killed at a bad moment after some others, so that messages come back: the older ones of a
// subject, but never after a newer one that is still there. Once the mark expires what it covers has long been written
// over.
const (
	endHeader = "Vela-Ended"
	endKept   = "24h"
)

// Delete ends the conversation and closes the Session: what waits fails with [ErrClosed]. Nothing of it is left but a
// mark with its id, for a day. The mark comes first, so that a process that is killed meanwhile leaves no conversation.
// After an error Delete may be called again.
func (s *Session) Delete(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.land(ctx); err != nil {
		return fmt.Errorf("bus: delete: %w", err)
	}
	for _, m := range []*nats.Msg{
		{Subject: stateSubject(s.id), Header: nats.Header{"Nats-Rollup": {"sub"}, "Nats-TTL": {endKept}, endHeader: {"1"}}},
		purge(eventStream, eventSubject(s.id), 0),
	} {
		m, err := s.bus.answers.wait(ctx, m)
		if err == nil {
			_, err = stored(m)
		}
		if err != nil {
			return fmt.Errorf("bus: delete: %w", err)
		}
	}
	return nil
}

// purge removes the messages of a subject before a place in the stream, or all with 0.
func purge(stream, subject string, before uint64) *nats.Msg {
	return &nats.Msg{
		Subject: "$JS.API.STREAM.PURGE." + stream,
		Data:    fmt.Appendf(nil, `{"filter":%q,"seq":%d}`, subject, before),
	}
}

// land ends appending and waits until nothing is on its way.
func (s *Session) land(ctx context.Context) error {
	s.telling.Lock()
	s.mu.Lock()
	s.gone = true
	waiting := s.drop()
	var idle chan struct{}
	if s.flight != nil {
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		idle = s.idle
	}
	s.mu.Unlock()
	tell(waiting, ErrClosed)
	s.telling.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Session) check() error {
	if s.id == "" || len(s.id) > 128 || strings.ContainsFunc(s.id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) {
		return fmt.Errorf("%w: %q", ErrID, s.id)
	}
	return nil
}

// drop empties the queue; what comes next is what was first in it. mu is held.
func (s *Session) drop() []pending {
	dropped := s.queue
	s.queue, s.queued = nil, 0
	switch {
	case s.flight != nil && len(s.flight.events) > 0:
		s.next = s.flight.events[len(s.flight.events)-1].seq + 1
	case s.last > 0:
		s.next = s.last + 1
	default:
		s.next = 0
	}
	return dropped
}

// headerRoom is more than the header of a message takes.
const headerRoom = 256

// send starts the next flight: the question where the conversation stands, unless that is known, or else the events
// that wait, as many as go into a message. mu is held, nothing is in flight, and the queue is not empty.
func (s *Session) send() error {
	if err := s.bus.ready(); err != nil {
		return err
	}
	f := &flight{}
	m := &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + eventStream, Data: []byte(`{"last_by_subj":"` + eventSubject(s.id) + `"}`)}
	if s.known {
		n, limit := 0, min(maxBatch, int(s.bus.nc.MaxPayload())-headerRoom)
		for n < len(s.queue) && (n == 0 || f.bytes+len(s.queue[n].event)+batchOverhead <= limit) {
			f.bytes += len(s.queue[n].event) + batchOverhead
			n++
		}
		f.events = s.queue[:n:n]
		m = &nats.Msg{
			Subject: eventSubject(s.id),
			Header:  nats.Header{"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(s.place, 10)}},
			Data:    encodeBatch(f.events),
		}
	}
	// The answer cannot overtake this: whoever brings it waits for mu.
	forget, err := s.bus.answers.ask(m, func(m *nats.Msg, err error) { s.answer(f, m, err) })
	if err != nil {
		return err
	}
	f.forget = forget
	f.timer = time.AfterFunc(ackWait, func() {
		f.forget()
		s.bus.lost()
		s.answer(f, nil, fmt.Errorf("%w within %v", ErrUnavailable, ackWait))
	})
	s.flight = f
	s.queue = s.queue[len(f.events):]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	for _, e := range f.events {
		s.queued -= len(e.event)
	}
	return nil
}

// answer ends a flight, starts the next, and tells those whose events it decided.
func (s *Session) answer(f *flight, m *nats.Msg, err error) {
	s.telling.Lock()
	defer s.telling.Unlock()
	good, bad, err := s.decide(f, m, err)
	tell(good, nil)
	tell(bad, err)
}

func tell(events []pending, err error) {
	for _, e := range events {
		e.done(err)
	}
}

// decide says which events are stored by the answer to a flight and which ones failed, and why.
func (s *Session) decide(f *flight, m *nats.Msg, err error) (good, bad []pending, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != f {
		return nil, nil, nil // it came too late
	}
	f.timer.Stop()
	s.flight = nil
	defer func() {
		if s.flight == nil && s.idle != nil {
			close(s.idle)
			s.idle = nil
		}
	}()
	if err == nil && len(f.events) > 0 {
		good, err = s.landed(f, m)
	} else if err == nil {
		good, err = s.found(m)
	} else {
		s.known = false
	}
	if err == nil && len(s.queue) > 0 {
		err = s.send()
	}
	if err == nil {
		return good, nil, nil
	}
	if errors.Is(err, ErrConflict) {
		s.lost = err
	}
	if len(good) == 0 {
		bad = f.events
	}
	return good, append(bad, s.drop()...), err
}

// landed takes the answer to events. mu is held.
func (s *Session) landed(f *flight, m *nats.Msg) ([]pending, error) {
	place, err := stored(m)
	if errors.Is(err, ErrConflict) {
		// Something else is there. It may be these very events, sent before a connection broke and stored since.
		s.queue = append(slices.Clone(f.events), s.queue...)
		for _, e := range f.events {
			s.queued += len(e.event)
		}
		f.events = nil
		s.known, s.doubt = false, true
		return nil, nil
	}
	if err != nil {
		s.known = false
		return nil, err
	}
	s.place, s.last = place, f.events[len(f.events)-1].seq
	if before := s.kept.add(place, len(f.events), f.bytes); before > 0 {
		s.trim(before)
	}
	return f.events, nil
}

// found takes the answer to the question what the store has: its last message, which may hold events that wait here
// because their own answer was lost. mu is held.
func (s *Session) found(m *nats.Msg) (good []pending, err error) {
	doubt := s.doubt
	s.doubt = false
	var answer struct {
		Message struct {
			Seq  uint64 `json:"seq"`
			Data []byte `json:"data"`
		} `json:"message"`
		Error *apiError `json:"error"`
	}
	if err := readAnswer(m, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil && answer.Error.Code != codeNoMessage {
		return nil, answer.Error.err()
	}
	if answer.Error != nil {
		if doubt {
			return nil, fmt.Errorf("%w: it has been deleted", ErrConflict)
		}
		s.known, s.place, s.last = true, 0, 0
		return nil, nil
	}
	first, events, err := decodeBatch(answer.Message.Data)
	if err != nil {
		return nil, err
	}
	s.known, s.place, s.last = true, answer.Message.Seq, first+uint64(len(events))-1
	n := 0
	for ; n < len(s.queue) && s.queue[n].seq <= s.last; n++ {
		e := s.queue[n]
		if e.seq < first || !bytes.Equal(events[e.seq-first], e.event) {
			return nil, fmt.Errorf("%w: event %d is there already, with other words", ErrConflict, e.seq)
		}
		s.queued -= len(e.event)
	}
	if doubt && n == 0 {
		return nil, ErrConflict
	}
	good, s.queue = s.queue[:n:n], s.queue[n:]
	if n > 0 && s.last >= s.next { // the rest of them is still to come: it is compared by then
		s.known, s.last = false, s.next-1
	}
	if len(s.queue) > 0 && s.queue[0].seq != s.last+1 {
		return good, fmt.Errorf("%w: %d, and %d has to come", ErrOrder, s.queue[0].seq, s.last+1)
	}
	return good, nil
}

// trim removes the messages before a place in the stream. Nobody waits for it: what it leaves, the next one removes.
func (s *Session) trim(before uint64) {
	if err := s.bus.nc.PublishMsg(purge(eventStream, eventSubject(s.id), before)); err != nil {
		s.bus.log.Warn("bus: trim", "session", s.id, "error", err)
	}
}

// tail knows where the last events of a conversation begin in the stream, roughly: it counts them in stretches.
type tail struct {
	stretches []stretch
	events    int
	bytes     int
}

type stretch struct {
	place         uint64 // of its first message
	events, bytes int
}

const (
	stretchEvents = maxEvents / 8
	stretchBytes  = maxEventBytes / 8
)

// add counts a message. It returns the place before which nothing is needed any more, once that is worth a purge, or 0.
func (t *tail) add(place uint64, events, bytes int) (before uint64) {
	if n := len(t.stretches); n == 0 || t.stretches[n-1].events >= stretchEvents || t.stretches[n-1].bytes >= stretchBytes {
		t.stretches = append(t.stretches, stretch{place: place})
	}
	now := &t.stretches[len(t.stretches)-1]
	now.events, now.bytes = now.events+events, now.bytes+bytes
	t.events, t.bytes = t.events+events, t.bytes+bytes
	for len(t.stretches) > 1 && (t.events-t.stretches[0].events >= maxEvents || t.bytes-t.stretches[0].bytes >= maxEventBytes) {
		t.events, t.bytes = t.events-t.stretches[0].events, t.bytes-t.stretches[0].bytes
		t.stretches = t.stretches[1:]
		before = t.stretches[0].place
	}
	return before
}
