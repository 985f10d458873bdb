package server

import (
	"context"
	"errors"
	"sync"

	"vela/session"
)

var errDraining = errors.New("the gateway is stopping")

// sessions knows how many sessions run, holds their goroutines, and ends them. It is shared by all requests: its lock
// guards the count and the switch to draining, nothing else.
type sessions struct {
	max     int
	metrics *metrics

	ctx  context.Context // of every session; cancelled with session.ErrShutdown
	stop context.CancelCauseFunc
	hard context.Context // of every socket; cancelled when goodbye has taken too long
	cut  context.CancelFunc

	mu      sync.Mutex
	running int
	closed  bool
	wg      sync.WaitGroup // sockets and sessions
}

func newSessions(most int, m *metrics) *sessions {
	ctx, stop := context.WithCancelCause(context.Background())
	hard, cut := context.WithCancel(context.Background())
	return &sessions{max: most, metrics: m, ctx: ctx, stop: stop, hard: hard, cut: cut}
}

// enter counts one socket, unless the server is draining. Whoever entered exits.
func (s *sessions) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Add(1)
	}
	return !s.closed
}

func (s *sessions) exit() { s.wg.Done() }

// run runs a session made by newSession, unless as many run as may, and calls ended after it. It is called by somebody
// who has entered.
func (s *sessions) run(newSession func() *session.Session, ended func()) (*session.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.max {
		return nil, false
	}
	s.running++
	s.metrics.sessions.Inc()
	sess := newSession()
	s.wg.Go(func() {
		sess.Run(s.ctx)
		ended()
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
		s.metrics.sessions.Dec()
	})
	return sess, true
}

func (s *sessions) draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// drain ends every session and waits for them; when ctx is done first, their sockets are cut.
func (s *sessions) drain(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(session.ErrShutdown)
	stop := context.AfterFunc(ctx, s.cut)
	s.wg.Wait()
	stop()
	s.cut()
}
