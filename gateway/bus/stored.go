package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Stored is what is kept of one conversation.
type Stored struct {
	// Session goes on where Events end.
	Session *Session
	State   []byte // what was saved last
	// First is the number of the first of Events, which follow without gaps: the last 4,096 or 8 MiB of the conversation.
	First  uint64
	Events [][]byte
}

// Sessions yields all that is kept, in the order of the ids, for the start after a crash. It reads the store once from
// end to end before the first is yielded, and so holds everything in memory. Events without a state are what is left of
// conversations that are over; they are removed. The sequence ends after its first error.
func (b *Bus) Sessions(ctx context.Context) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		all, err := b.read(ctx)
		if err != nil {
			yield(Stored{}, fmt.Errorf("bus: read what is kept: %w", err))
			return
		}
		for _, id := range slices.Sorted(maps.Keys(all)) {
			one := all[id]
			delete(all, id) // it is the caller's now
			if !yield(one.stored(), nil) {
				return
			}
		}
	}
}

// reading is a conversation that is being read.
type reading struct {
	session *Session
	state   []byte
	events  [][]byte
	bytes   int
}

func (b *Bus) read(ctx context.Context) (map[string]*reading, error) {
	all := map[string]*reading{}
	of := func(subject string) *reading {
		id, _, _ := strings.Cut(strings.TrimPrefix(subject, "vela.session."), ".")
		if all[id] == nil {
			all[id] = &reading{session: b.Session(id)}
		}
		return all[id]
	}
	// The end of the events comes before the states, so that whose events are read had been saved by then.
	end, err := b.end(ctx, eventStream)
	if err != nil {
		return nil, err
	}
	endOfStates, err := b.end(ctx, stateStream)
	if err != nil {
		return nil, err
	}
	err = b.each(ctx, stateStream, endOfStates, func(m jetstream.Msg, _ uint64) error {
		of(m.Subject()).state = append([]byte{}, m.Data()...)
		if m.Headers().Get(endHeader) != "" {
			of(m.Subject()).state = nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = b.each(ctx, eventStream, end, func(m jetstream.Msg, place uint64) error {
		first, events, err := decodeBatch(m.Data())
		if err != nil {
			return fmt.Errorf("%w: %s, message %d", err, m.Subject(), place)
		}
		of(m.Subject()).add(first, events, place)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, r := range all {
		if r.state != nil {
			continue
		}
		delete(all, id)
		if len(r.events) > 0 {
			if err := b.nc.PublishMsg(purge(eventStream, eventSubject(id), 0)); err != nil {
				return nil, sendError(err)
			}
		}
	}
	return all, nil
}

// add takes one more message.
func (r *reading) add(first uint64, events [][]byte, place uint64) {
	s := r.session
	if first != s.last+1 { // it starts here, or some were lost: what comes before a gap is of no use to anybody
		r.events, r.bytes = nil, 0
	}
	size := 0
	for _, e := range events {
		size += len(e)
	}
	r.events, r.bytes = append(r.events, events...), r.bytes+size
	s.known, s.place, s.last = true, place, first+uint64(len(events))-1
	s.next = s.last + 1
	s.kept.add(place, len(events), size+len(events)*batchOverhead)
	for len(r.events) > maxEvents || r.bytes > maxEventBytes && len(r.events) > 1 {
		r.bytes -= len(r.events[0])
		r.events[0] = nil
		r.events = r.events[1:]
	}
}

func (r *reading) stored() Stored {
	st := Stored{Session: r.session, State: r.state, Events: r.events}
	if len(r.events) > 0 {
		st.First = r.session.last + 1 - uint64(len(r.events))
	}
	return st
}

// end is the place of a stream's last message.
func (b *Bus) end(ctx context.Context, stream string) (uint64, error) {
	if b.answers.closed() {
		return 0, ErrClosed
	}
	s, err := b.js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().State.Msgs == 0 {
		return 0, err
	}
	return s.CachedInfo().State.LastSeq, nil
}

// each hands over the messages of a stream up to a place.
func (b *Bus) each(ctx context.Context, stream string, end uint64, do func(m jetstream.Msg, place uint64) error) error {
	if end == 0 {
		return nil
	}
	s, err := b.js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().State.Msgs == 0 {
		return err
	}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := c.Messages(jetstream.PullMaxBytes(max(readAhead, 2*int(b.nc.MaxPayload()))), jetstream.PullHeartbeat(pulse))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return ended(ctx, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Stream <= end {
			if err := do(m, meta.Sequence.Stream); err != nil {
				return err
			}
		}
		if meta.Sequence.Stream >= end || meta.NumPending == 0 {
			return nil
		}
	}
}

const (
	// readAhead is how much the server sends before it is asked for more, in bytes.
	readAhead = 16 << 20
	// pulse is how often the server says that it is there while there is nothing to send. Once in a great while, under
	// load, it overlooks that it was asked; it is asked anew after two of them.
	pulse = time.Second
)

// ended is why reading ended: the reason of the context rather than what the client makes of it.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
