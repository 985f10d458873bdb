// Package session runs one conversation: it hears, has an engine answer, and tells its peers what happens.
//
// Start at [New] and [Session.Run]: the goroutine in Run owns all state and takes one input at a time. The package
// does no IO and knows no transport. Whoever shows the session to a client is a [Peer]; speech is turned into text by
// a [Transcriber]; answers come from a [turn.Engine]. A peer joins, sends what its client sent, and leaves:
//
//	s := session.New(cfg)
//	go s.Run(ctx)                        // by whoever waits for it
//	s.Join(ctx, peer)                    // session.ready and session.state go to the peer
//	s.Receive(ctx, peer, message)        // any number of times
//	s.Leave(peer)                        // Run returns once the last peer has left
//
// The files: mailbox.go is the one way in, fsm.go the table of phases, client.go what clients ask for, hearing.go and
// answer.go the two halves of a turn, events.go the numbered events on their way out, errors.go the one place where an
// error becomes words for a client.
package session

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"vela/protocol"
	"vela/turn"
)

// Turns says what a session does with a user's turn.
type Turns string

// The two kinds of turns.
const (
	Deterministic Turns = "deterministic" // placeholder transcripts and the fixed answer
	Agent         Turns = "agent"         // recognised speech, answered by Config.Agent
)

// Config is what a session is made of. Everything but ID, NewID and Mock has a zero value that works.
type Config struct {
	ID    string
	NewID func() string // for turns; unique within the process

	Turns       Turns
	Mock        Mock        // the fixed turn; required
	Agent       turn.Engine // nil: agent-backed turns say agent_unavailable
	Transcriber Transcriber // nil: speech says speech_unavailable
	Allowance   Allowance   // what the audio of agent-backed turns is taken from; nil is without limit

	MaxAudio    time.Duration // of one turn; default 10 minutes
	Recognise   time.Duration // how long the final transcript may take after the commit; default 30 s
	AgentSilent time.Duration // how long an agent may say nothing before its turn ends; default 2 minutes
	Idle        time.Duration // without anything from a client; default 10 minutes

	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts nothing
}

// Peer shows the session's events to one client. The session calls it from its own goroutine only: neither method may
// block or call the session.
type Peer interface {
	// Send hands over one event, in order. A peer that cannot keep up ends its own connection.
	Send(Event)
	// Close says that nothing follows, and why.
	Close(code protocol.CloseCode, reason string)
}

// Mock is the fixed turn: an engine, and the words of the user it answers.
type Mock interface {
	turn.Engine
	Question() string          // what a triggered turn says for the user
	Partial(chunks int) string // the transcript after so many chunks, from 1
	Final(chunks int) string   // the same at the commit, from 0
}

// Session is one conversation. Join, Receive, Reject and Leave may be called from any goroutine, Run once.
type Session struct {
	cfg     Config
	log     *slog.Logger
	mailbox chan input
	done    chan struct{} // closed when Run has returned

	// Owned by Run.
	machine  *machine
	peers    []Peer
	joined   bool // somebody was here: the session ends when nobody is
	history  []turn.Message
	events   eventLog
	chunks   int        // appended to the deterministic turn that is being listened to
	hearing  *utterance // nil unless speech is being heard or recognised
	answer   *answer    // nil unless an engine runs
	now      time.Time  // when the present input was taken: the only clock behind the mailbox
	lastSeen time.Time  // when a client last sent something
	timer    *time.Timer
	children sync.WaitGroup // engines and recognisers; Run waits for them
}

// New returns a session that is idle and has no peer. Nothing runs before [Session.Run].
func New(cfg Config) *Session {
	cfg.MaxAudio = cmp.Or(cfg.MaxAudio, 10*time.Minute)
	cfg.Recognise = cmp.Or(cfg.Recognise, 30*time.Second)
	cfg.AgentSilent = cmp.Or(cfg.AgentSilent, 2*time.Minute)
	cfg.Idle = cmp.Or(cfg.Idle, 10*time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Session{
		cfg:     cfg,
		log:     cfg.Log.With("session", cfg.ID),
		mailbox: make(chan input, mailboxSize),
		done:    make(chan struct{}),
		machine: newMachine(),
	}
}

// ID is the session's id, as in session.ready.
func (s *Session) ID() string { return s.cfg.ID }

// Run runs the session until its last peer has left, it has been idle for too long, or ctx is done, and closes the
// peers that are still there: with 1001 when ctx was cancelled because of [ErrShutdown]. It returns once every
// goroutine of the session has ended.
func (s *Session) Run(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer close(s.done)
	defer s.children.Wait()
	defer cancel(errSessionEnded)

	s.lastSeen = time.Now()
	s.timer = time.NewTimer(s.cfg.Idle)
	defer s.timer.Stop()
	for {
		in, ok := s.take(ctx)
		if !ok {
			s.closePeers(context.Cause(ctx))
			return
		}
		if end := s.step(ctx, in); end != nil {
			s.closePeers(end)
			return
		}
	}
}

// step applies one input. It returns why the session ends, nil while it goes on.
func (s *Session) step(ctx context.Context, in input) error {
	switch in := in.(type) {
	case fromClient:
		s.lastSeen = s.now
		s.handle(ctx, in.peer, in.message)
	case malformed:
		s.lastSeen = s.now
		s.tell(in.peer, s.wireError(in.err, protocol.CodeInvalidMessage))
	case heard:
		s.hear(ctx, in)
	case said:
		s.say(in)
	case taken:
		s.hearing.sent()
	case joined:
		s.join(in.peer)
	case left:
		return s.leave(in.peer)
	case tick:
		return s.tick()
	}
	return nil
}

func (s *Session) join(p Peer) {
	s.peers = append(s.peers, p)
	s.joined = true
	s.greet(p)
}

// greet tells one peer who and where the session is.
func (s *Session) greet(p Peer) {
	s.tell(p, protocol.SessionReady{SessionID: s.cfg.ID})
	s.tell(p, protocol.SessionState{Value: s.machine.state()})
}

func (s *Session) leave(p Peer) error {
	for i := range s.peers {
		if s.peers[i] == p {
			s.peers = append(s.peers[:i], s.peers[i+1:]...)
			break
		}
	}
	if s.joined && len(s.peers) == 0 {
		s.stopTurn(errSessionEnded)
		return errSessionEnded
	}
	return nil
}

// tick ends whatever has waited for too long, and sets the timer for the next that might.
func (s *Session) tick() error {
	if u := s.hearing; u != nil && u.committed && s.since(u.ended) >= s.cfg.Recognise {
		s.goDeaf(errNoFinal)
	}
	if a := s.answer; a != nil && s.since(a.heardFrom) >= s.cfg.AgentSilent {
		s.failAnswer(errAgentSilent)
	}
	if s.since(s.lastSeen) >= s.cfg.Idle && !s.inFlight() {
		return errIdle
	}
	s.timer.Reset(s.nextTick())
	return nil
}

func (s *Session) since(t time.Time) time.Duration { return s.now.Sub(t) }

// nextTick is when something may have waited for too long.
func (s *Session) nextTick() time.Duration {
	next := s.cfg.Idle - s.since(s.lastSeen)
	if s.inFlight() && next <= 0 {
		next = s.cfg.Idle // the turn's own limits come first
	}
	if u := s.hearing; u != nil && u.committed {
		next = min(next, s.cfg.Recognise-s.since(u.ended))
	}
	if a := s.answer; a != nil {
		next = min(next, s.cfg.AgentSilent-s.since(a.heardFrom))
	}
	return max(next, time.Millisecond)
}

func (s *Session) closePeers(cause error) {
	code, reason := closing(cause)
	for _, p := range s.peers {
		p.Close(code, reason)
	}
	s.peers = nil
}
