package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync"

	"vela/session"
)

var errDraining = errors.New("the gateway is stopping")

// tokenHash stands for a resume token: see [session.HashToken].
type tokenHash = [sha256.Size]byte

// newResumeToken is 256 random bits in base64url: nobody guesses it.
func newResumeToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// sessions knows how many sessions run, holds their goroutines, and ends them. It is shared by all requests: its lock
// guards the count, the table and the switch to draining, nothing else.
type sessions struct {
	max     int
	metrics *metrics

	ctx  context.Context // of every session; cancelled with session.ErrShutdown
	stop context.CancelCauseFunc
	hard context.Context // of every socket; cancelled when goodbye has taken too long
	cut  context.CancelFunc

	mu        sync.Mutex
	running   int
	resumable map[tokenHash]*session.Session // by the hash of what resumes them: a guess takes as long as a token, however close
	closed    bool
	wg        sync.WaitGroup // sockets and sessions
}

func newSessions(most int, m *metrics) *sessions {
	ctx, stop := context.WithCancelCause(context.Background())
	hard, cut := context.WithCancel(context.Background())
	return &sessions{max: most, metrics: m, ctx: ctx, stop: stop, hard: hard, cut: cut, resumable: map[tokenHash]*session.Session{}}
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
// who has entered. Version 2 sessions can be found by their token's hash until they end; the zero hash finds none.
func (s *sessions) run(token tokenHash, newSession func() *session.Session, ended func()) (*session.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.max {
		return nil, false
	}
	s.running++
	s.metrics.sessions.Inc()
	sess := newSession()
	if token != (tokenHash{}) {
		s.resumable[token] = sess
	}
	s.wg.Go(func() {
		sess.Run(s.ctx)
		ended()
		s.mu.Lock()
		s.running--
		delete(s.resumable, token)
		s.mu.Unlock()
		s.metrics.sessions.Dec()
	})
	return sess, true
}

// find returns the session that the token resumes.
func (s *sessions) find(token string) (*session.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, ok := s.resumable[session.HashToken(token)]
	return sess, ok
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
