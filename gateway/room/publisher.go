package room

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/livekit/protocol/livekit"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/session"
)

// carrier takes packets to everybody in the room: each once, whole, and in the order of the calls. LiveKit's reliable
// data packets are one; its data tracks may be another once the Go SDK has them.
type carrier interface {
	// carry returns once the packet is on its way. It waits while too much is, or the connection is being made again, and
	// returns an error when the packet cannot be carried any more.
	carry(ctx context.Context, p *livekit.DataPacket) error
	// describe sets attributes of the agent's own: whoever joins later knows them too.
	describe(attributes map[string]string)
}

// The bounds of what waits to be carried. Past either, the room leaves and comes back, and asks the session for what it
// missed, as a socket that is too slow does.
const (
	maxWaiting      = 8192
	maxWaitingBytes = 32 << 20
)

// publisher is the one way out of the gateway into a room, so that nothing overtakes what was said before it: not a
// later event the chunks of an earlier one, not an artifact the transcript. The session puts events in and never waits;
// one goroutine takes them out, renders and carries them.
type publisher struct {
	renderer *renderer
	metrics  *Metrics
	behind   func()        // called once, when too much waits
	wake     chan struct{} // of size 1

	described map[string]string // the agent's attributes, as last set; owned by run

	mu      sync.Mutex
	waiting []waiting
	bytes   int
	full    bool
	carried memory
	idle    chan struct{} // closed when nothing waits; nil while nobody asks
}

// waiting is an event, and who it is of if it is of the user's; or an object of ganglia-events, and for whom if it is not for
// all; or what another peer has had changed; or a restart.
type waiting struct {
	event   session.Event
	from    who
	object  any
	to      string
	terms   *protocol.Terms
	restart bool
}

func newPublisher(r *renderer, before memory, m *Metrics, behind func()) *publisher {
	return &publisher{renderer: r, carried: before, metrics: m, behind: behind, wake: make(chan struct{}, 1)}
}

// put puts an event behind those that wait.
func (p *publisher) put(e session.Event, from who) { p.add(waiting{event: e, from: from}) }

// say puts an object of ganglia-events behind the events that wait.
func (p *publisher) say(object any) { p.add(waiting{object: object}) }

// tell puts an error for one participant behind the events that wait.
func (p *publisher) tell(identity string, e *callError) {
	p.add(waiting{object: ganglia.SystemEvent{Severity: ganglia.SeverityError, Title: title(e.code), Message: e.words}, to: identity})
}

// agreed puts what another peer has had changed behind the events that wait.
func (p *publisher) agreed(terms protocol.Terms) { p.add(waiting{terms: &terms}) }

// restart says again what participants who come anew cannot know: the agent's state, and what it has said so far.
func (p *publisher) restart() { p.add(waiting{restart: true}) }

func (p *publisher) add(w waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full {
		return
	}
	p.waiting = append(p.waiting, w)
	p.bytes += weight(w.event.Message)
	if len(p.waiting) > maxWaiting || p.bytes > maxWaitingBytes {
		p.full, p.waiting = true, nil
		p.behind()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// weight is about what an event takes in memory, in bytes.
func weight(m protocol.Message) int {
	const base = 256
	switch m := m.(type) {
	case ganglia.Artifact:
		n := base + len(m.Content) + len(m.Diff)
		for _, r := range m.Results {
			n += 48 + len(r.File) + len(r.Content)
		}
		return n
	case protocol.ToolResult:
		return base + len(m.Output)
	case protocol.ToolCall:
		return base + len(m.Input)
	case protocol.ResponseTextDelta:
		return base + len(m.Text)
	}
	return base
}

// run carries until ctx is done or the line cannot carry any more.
func (p *publisher) run(ctx context.Context, to carrier) error {
	p.described = map[string]string{attrState: stateBegin}
	to.describe(p.described)
	for {
		for {
			w, more := p.next()
			if !more {
				break
			}
			if err := p.carry(ctx, to, w); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *publisher) next() (waiting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		if p.idle != nil {
			close(p.idle)
			p.idle = nil
		}
		return waiting{}, false
	}
	w := p.waiting[0]
	p.waiting[0] = waiting{}
	p.waiting = p.waiting[1:]
	p.bytes -= weight(w.event.Message)
	return w, true
}

func (p *publisher) carry(ctx context.Context, to carrier, w waiting) error {
	packets := p.renderer.render(w)
	if w.restart {
		p.described = nil
	}
	if now := p.renderer.attributes(); !maps.Equal(now, p.described) {
		to.describe(now)
		p.described = now
	}
	for _, packet := range packets {
		if err := to.carry(ctx, packet); err != nil {
			return err
		}
		p.metrics.sent(packet)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.carried.any, p.carried.state = true, p.renderer.state
	p.carried.last = max(p.carried.last, w.event.Seq)
	return nil
}

// shown is what has been carried, whole.
func (p *publisher) shown() memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried
}

// flush waits until nothing waits, for at most so long.
func (p *publisher) flush(most time.Duration) {
	p.mu.Lock()
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
	}
}
