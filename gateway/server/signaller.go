package server

import (
	"sync"
	"time"

	"vela/protocol"
)

// How many signals a client may emit: so many at once, and then so many a second.
const (
	emitAtOnce = 100
	emitRate   = 50
)

// signaller is what one connection has to do with signals: those that it follows, and those that it emits.
type signaller struct {
	signals      Signals
	follow, emit bool // what its client may
	out          *outbox

	session string // emits; set before the first signal

	// Owned by the session's goroutine.
	emitted int       // that count against emitAtOnce
	since   time.Time // when that was true

	mu    sync.Mutex   // between the session's goroutine and the connection's end
	sub   Subscription // nil before the first signal.subscribe
	ended bool
}

// signaller is nil where the gateway has no signals, or the caller none of their rights.
func (s *Server) signaller(k *socket, who *caller) *signaller {
	follow, emit := who.follows(), who.emits()
	if s.cfg.Signals == nil || !follow && !emit {
		return nil
	}
	return &signaller{signals: s.cfg.Signals, follow: follow, emit: emit, out: &k.out}
}

// begin says which session the connection is of.
func (g *signaller) begin(session string) {
	if g != nil {
		g.session = session
	}
}

// end follows no more. It may be called before begin.
func (g *signaller) end() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	if g.sub != nil {
		g.sub.Close()
	}
}

var (
	errNoSignals = wrong{protocol.CodeUnsupported, "This gateway has no signals for you. Ask its operator for a token with that right. Nothing changed."}
	errEmitRate  = wrong{protocol.CodeRateLimited, "Signals come faster than 50 a second. This one was dropped: slow down."}
)

// take does what a client's message asks for. It is called by the session's goroutine, and never waits. The error knows its
// code.
func (g *signaller) take(m protocol.Message) error {
	if g == nil {
		return errNoSignals
	}
	switch m := m.(type) {
	case protocol.SignalSubscribe:
		if !g.follow {
			return errNoSignals
		}
		return g.subscribe(m)
	case protocol.SignalUnsubscribe:
		if !g.follow {
			return errNoSignals
		}
		return g.unsubscribe(m)
	case protocol.SignalEmit:
		if !g.emit {
			return errNoSignals
		}
		if !g.mayEmit(time.Now()) {
			return errEmitRate
		}
		return g.signals.Emit(g.session, m)
	}
	return errNoSignals
}

func (g *signaller) subscribe(m protocol.SignalSubscribe) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil // nobody is there to be sent anything
	}
	if g.sub == nil {
		g.sub = g.signals.Subscribe(g.out.signalled)
		g.out.follow(g.sub)
	}
	return g.sub.Add(m)
}

func (g *signaller) unsubscribe(m protocol.SignalUnsubscribe) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sub == nil || g.ended {
		return nil
	}
	return g.sub.Remove(m)
}

// mayEmit takes one signal of what the client may emit.
func (g *signaller) mayEmit(now time.Time) bool {
	const one = time.Second / emitRate
	if passed := int(now.Sub(g.since) / one); passed >= g.emitted {
		g.emitted, g.since = 0, now
	} else {
		g.emitted, g.since = g.emitted-passed, g.since.Add(time.Duration(passed)*one)
	}
	if g.emitted >= emitAtOnce {
		return false
	}
	g.emitted++
	return true
}
