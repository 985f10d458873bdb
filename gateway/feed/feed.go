// Package feed hands each signal to whoever follows the pipeline now: sockets, sessions, the webhook. Start at [Feed]:
// [Feed.Offer] takes a signal, [Feed.Subscribe] follows.
//
// Nothing is kept for anybody who comes later; that is the log's. What a subscriber has not taken yet waits in a ring of its
// own, which is bounded: when it is full its oldest signal goes, and is counted. So nobody slows a source down, or anybody
// else.
package feed

import (
	"cmp"
	"context"
	"sync"

	"vela/protocol/signal"
)

// Signal is one signal on its way round. It is shared: nobody changes it.
type Signal struct {
	signal.Raw
	Through string // id of the source that it came through; empty if it came through none
	Text    []byte // its JSON, on one line
}

// Name is what to call the source: the id of the one that the signal came through, or what the signal says.
func (s Signal) Name() string { return cmp.Or(s.Through, s.Source) }

// Feed is where signals go round. Its zero value works; all of it may be called from any goroutine.
type Feed struct {
	metrics *Metrics

	mu   sync.RWMutex
	subs map[*Subscription]struct{}
}

// New returns a feed that counts; metrics may be nil.
func New(m *Metrics) *Feed { return &Feed{metrics: m} }

// Offer hands a signal to all who want it. It never waits for any of them.
func (f *Feed) Offer(s Signal) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for sub := range f.subs {
		if sub.take(s) && sub.wake != nil {
			sub.wake()
		}
	}
}

// Followed says whether anybody follows, so that a signal is not made for nobody.
func (f *Feed) Followed() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.subs) > 0
}

// Bounds are of what waits for one subscriber. One signal may always wait, however long.
type Bounds struct {
	Signals int
	Bytes   int // of their JSON
}

// Subscribe follows the feed, with no filter yet: nothing comes. wake, if it is not nil, is called when there is something
// to take and was nothing before; it must not wait, nor call the subscription or the feed. The subscription is closed by
// whoever made it.
func (f *Feed) Subscribe(b Bounds, wake func()) *Subscription {
	s := &Subscription{feed: f, bounds: b, wake: wake, some: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		f.subs = map[*Subscription]struct{}{}
	}
	f.subs[s] = struct{}{}
	f.metrics.subscribers(len(f.subs))
	return s
}

// Subscription is one subscriber's. Next and Wait are for one goroutine at a time, the rest for any.
type Subscription struct {
	feed   *Feed
	bounds Bounds
	wake   func()
	some   chan struct{} // holds one when there may be something to take

	mu      sync.Mutex // between those who offer and who takes
	filters []filter
	ring    []Signal // grows by doubling up to the bound, so that who keeps up costs nothing
	start   int      // where the oldest one lies
	n       int
	bytes   int
	missed  uint64 // since Next was last called
}

// take keeps a signal, if it is wanted, and says whether there was none before.
func (s *Subscription) take(g Signal) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !wanted(s.filters, g) {
		return false
	}
	for s.n > 0 && (s.n >= s.bounds.Signals || s.bytes+len(g.Text) > s.bounds.Bytes) {
		s.pop()
		s.missed++
		s.feed.metrics.miss()
	}
	if s.n == len(s.ring) {
		s.grow()
	}
	s.ring[(s.start+s.n)%len(s.ring)] = g
	s.n++
	s.bytes += len(g.Text)
	select {
	case s.some <- struct{}{}:
	default: // one is there already
	}
	return s.n == 1
}

// grow makes room. mu is held.
func (s *Subscription) grow() {
	bigger := make([]Signal, max(4, min(2*len(s.ring), s.bounds.Signals)))
	for i := range s.n {
		bigger[i] = s.ring[(s.start+i)%len(s.ring)]
	}
	s.ring, s.start = bigger, 0
}

// pop takes the oldest one out. mu is held, and there is one.
func (s *Subscription) pop() Signal {
	g := s.ring[s.start]
	s.ring[s.start] = Signal{}
	s.start = (s.start + 1) % len(s.ring)
	s.n--
	s.bytes -= len(g.Text)
	return g
}

// Next takes the oldest signal that waits, and says how many before it were lost; false if none waits.
func (s *Subscription) Next() (g Signal, missed uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return Signal{}, 0, false
	}
	missed, s.missed = s.missed, 0
	return s.pop(), missed, true
}

// Wait is [Subscription.Next] that waits until there is one. The error is the context's cause.
func (s *Subscription) Wait(ctx context.Context) (g Signal, missed uint64, err error) {
	for {
		if ctx.Err() != nil {
			return Signal{}, 0, context.Cause(ctx)
		}
		if g, missed, ok := s.Next(); ok {
			return g, missed, nil
		}
		select {
		case <-s.some:
		case <-ctx.Done():
		}
	}
}

// Waiting is how many signals wait.
func (s *Subscription) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Close follows no more. What waits is still there to be taken.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.subs, s)
	s.feed.metrics.subscribers(len(s.feed.subs))
}
