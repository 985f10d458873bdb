// Package session runs one conversation: it hears, has an engine answer, and tells its peers what happens.
//
// Start at [New] and [Session.Run]: the goroutine in Run owns all state and takes one input at a time. The package
// does no IO and knows no transport. Whoever shows the session to a client is a [Peer]; speech is turned into text by
// a [Transcriber]; answers come from a [turn.Engine]. A peer joins, sends what its client sent, and leaves:
//
//	s := session.New(cfg)
//	go s.Run(ctx)                        // by whoever waits for it
//	s.Join(ctx, peer, session.Hello{})   // session.ready and session.state go to the peer
//	s.Receive(ctx, peer, id, message)    // any number of times; id is the message's own, or empty
//	s.Leave(peer)                        // in version 1, Run returns once the last peer has left
//
// In version 2 of the protocol a session outlives its peers for a while, and a peer may resume it.
//
// The files: mailbox.go is the one way in, peers.go who sits where, fsm.go the table of phases, settings.go what is in
// force, client.go what clients ask for, hearing.go and answer.go the two halves of a turn, voice.go the sound of an
// answer, synthesis.go who makes it, playback.go when it goes out and what of it was heard, filler.go what is said while
// there is none, handsfree.go how speech begins and ends by itself, hold.go what it does to an answer, opus.go how sound may
// be written, tools.go and approvals.go what an agent does and may do on the way, activity.go what is seen of that and
// follow.go of other agents, observe.go who else is shown a turn, history.go what is remembered, events.go the numbered
// events on their way out, errors.go the one place where an error becomes words for a client. store.go keeps a session beyond
// its process, journal.go writes down what the mailbox took and replay.go runs that again; allowance.go is how much a client
// may say, times.go, metrics.go and trace.go say where the time went.
package session

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"vela/protocol"
	"vela/session/speech"
	"vela/turn"
)

// Turns says what a session does with a user's turn.
type Turns string

// The two kinds of turns.
const (
	Deterministic Turns = "deterministic" // placeholder transcripts and the fixed answer
	Agent         Turns = "agent"         // recognised speech, answered by Config.Agent
)

// Config is what a session is made of. Everything but ID and Mock has a zero value that works.
type Config struct {
	ID string // names the session in events, logs and the store; unique while it is kept

	// Version is that of the protocol, 1 unless given. In version 1 a session ends with its last peer, and its clients
	// see nothing of version 2.
	Version int
	Token   string        // resumes the session; version 2 tells it to the client
	Window  time.Duration // how long a session of version 2 outlives its last peer; default 2 minutes

	Turns       Turns         // what a client gets that does not ask
	Only        []Turns       // what a client may ask for; empty for both kinds
	Mock        Mock          // the fixed turn; required
	Agents      []NamedEngine // a client may ask for any of them and gets the first if it does not; none: agent-backed turns say agent_unavailable
	Transcriber Transcriber   // nil: speech says speech_unavailable

	// Detector makes a detector of one stream of sound; nil: clients say themselves when a turn begins and ends. VAD is how
	// it is used where clients do not say; what is zero has a default.
	Detector func() VoiceDetector
	VAD      protocol.VAD

	// Voices speak the answers of clients that want to hear them: the first one, and the next when one fails.
	// None: answers are text alone.
	Voices    []NamedVoice
	Codec     speech.Codec // for clients that want Opus; nil: they are told that there is none
	Allowance Allowance    // what the audio of agent-backed turns is taken from; nil is without limit

	MaxAudio    time.Duration // of one turn; default 10 minutes
	Recognise   time.Duration // how long the final transcript may take after the commit; default 30 s
	AgentSilent time.Duration // how long an agent may say nothing before its turn ends; default 2 minutes
	ToolSilent  time.Duration // the same while a tool of its runs; default 15 minutes
	Approve     time.Duration // how long a person may take to answer an agent's question before it is a no; default 1 minute
	Idle        time.Duration // without anything from a client; default 10 minutes

	// Mirror has a room show the session as well, instead of the room before it. It is called from the session's
	// goroutine: it neither blocks nor calls the session. Nil: there are no rooms.
	Mirror func(s *Session, room string)

	// Follow is how the session follows what other agents do; nil: its clients may not. Version 2 only.
	Follow Follow
	Emits  bool // its clients may emit signals; a peer sees to it ([Signaller])

	// Store keeps the session beyond the process; nil: it ends with it. Version 2 only.
	Store Store

	// Journal opens what takes the session's journal, a line at a time; it is closed when Run ends. Nil, or one that
	// returns nil, writes none.
	Journal func() io.WriteCloser

	// Observe is shown each turn as signals. It is called from the session's goroutine and must not wait. Nil: nobody
	// looks.
	Observe func(Observed)

	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts nothing
	Tracer  trace.Tracer // takes a span a turn (trace.go); nil: none
}

// NamedVoice is a voice as clients know it.
type NamedVoice struct {
	Name        string      // what session.start asks for
	Synthesizer Synthesizer // serves all sessions at once
}

// NamedEngine is an agent as clients know it.
type NamedEngine struct {
	Name   string      // what session.start asks for
	Engine turn.Engine // serves all sessions at once

	// Ponder is what is shown in turn while the agent is silent, as a status: the first phrase at once, another every
	// 3 s. None: nothing is shown.
	Ponder []string

	// Filler is what is said in turn, where the answer is spoken, while nothing else is to be heard: the first phrase
	// after FillerAfter, another 15 s later, then ever more rarely. None: nothing is said.
	Filler      []string
	FillerAfter time.Duration // default 4 s
}

// Peer shows the session's events to one client. The session calls it from its own goroutine only: neither method may
// block or call the session.
type Peer interface {
	// Send hands over one event, in order. A peer that cannot keep up ends its own connection.
	Send(Event)
	// Resend hands over all that a client has missed, before anything else. However many they are, they do not make it
	// slow.
	Resend([]Event)
	// Close says that nothing follows, and why.
	Close(code protocol.CloseCode, reason string)
}

// Listener is a [Peer] that goes by what is in force, whoever asked for it. Other peers keep to what they were told.
type Listener interface {
	Peer
	// Agreed is what another peer has had changed. It is called like Send.
	Agreed(protocol.Terms)
}

// Traced is a [Peer] that is a span itself: the turns that it is there for link to it.
type Traced interface {
	Peer
	// SpanContext does not change. It is called like Send.
	SpanContext() trace.SpanContext
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
	machine   *machine
	settings  settings
	seats     [seats]Peer   // nil where nobody sits
	orders    [seats]uint64 // when their connections were made
	floor     Seat          // who speaks: from the first audio to the final transcript; nobody otherwise
	joined    bool          // somebody was here: the session ends when nobody is
	alone     time.Time     // since when nobody is
	history   []turn.Message
	events    eventLog
	items     int                   // utterances and typed turns so far: they make the ids
	turns     int                   // answers so far: they make the ids
	chunks    int                   // appended to the deterministic turn that is being listened to
	streams   [seats]speech.Decoder // of the peers that have sent Opus
	following following             // sources whose tools are shown
	hearing   *utterance            // nil unless speech is being heard or recognised
	cut       *cut                  // the last answer that ended before all of its sound was acknowledged
	answer    *answer               // nil unless an engine runs
	standing  map[agentTool]bool    // what the person answered for good
	pays      Allowance             // of who speaks now, where that is not the session's
	spoken    recognised            // how what is about to be asked was heard
	now       time.Time             // when the present input was taken: the only clock behind the mailbox
	lastSeen  time.Time             // when a client last sent something, or an answer ended: then it is the user's turn
	timer     *time.Timer
	children  sync.WaitGroup // engines and recognisers; Run waits for them
	kept      Store          // nil once it fails, too
	restored  *restoring     // until Run runs
	tokenHash tokenHash      // of a restored session whose client has not come back
	storeBuf  []byte
	movesOn   bool // the session has ended here, and goes on in another process
	journal   *journal
	trace     turnTrace              // of the present turn
	counted   counted                // in the metrics
	asked     *protocol.SessionStart // what Configure was last asked for before Run
	replayed  func(Event)            // takes the events of a replay; nil in a session that runs

	mics [seats]*microphone // of a session that is hands-free; nil before the first sound
}

// New returns a session that is idle and has no peer. Nothing runs before [Session.Run].
func New(cfg Config) *Session {
	cfg.MaxAudio = cmp.Or(cfg.MaxAudio, 10*time.Minute)
	cfg.Recognise = cmp.Or(cfg.Recognise, 30*time.Second)
	cfg.AgentSilent = cmp.Or(cfg.AgentSilent, 2*time.Minute)
	cfg.ToolSilent = cmp.Or(cfg.ToolSilent, 15*time.Minute)
	cfg.Approve = cmp.Or(cfg.Approve, time.Minute)
	cfg.Idle = cmp.Or(cfg.Idle, 10*time.Minute)
	cfg.Window = cmp.Or(cfg.Window, 2*time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.VAD = withDefaults(cfg.VAD)
	cfg.Version = max(cfg.Version, 1)
	cfg.Tracer = tracerOf(cfg.Tracer)
	return &Session{
		cfg:       cfg,
		log:       cfg.Log.With("session", cfg.ID),
		mailbox:   make(chan input, mailboxSize),
		done:      make(chan struct{}),
		machine:   newMachine(),
		floor:     nobody,
		settings:  defaults(&cfg),
		tokenHash: HashToken(cfg.Token),
	}
}

// ID is the session's id, as in session.ready.
func (s *Session) ID() string { return s.cfg.ID }

// Done is closed once Run has returned.
func (s *Session) Done() <-chan struct{} { return s.done }

// Run runs the session until its last peer has left, it has been idle for too long, or ctx is done, and closes the
// peers that are still there: with 1001 when ctx was cancelled because of [ErrShutdown]. It returns once every
// goroutine of the session has ended.
func (s *Session) Run(ctx context.Context) {
	// What the session runs ends when the session says so. Were it to end with ctx, an engine's error about that could
	// arrive here before ctx's end does, and be told as the agent's.
	children, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.turnAway()
	defer close(s.done)
	defer s.children.Wait()
	defer cancel(errSessionEnded)

	s.now = time.Now()
	s.lastSeen = s.now
	s.startJournal()
	defer s.journal.close()
	s.open(children)
	s.timer = time.NewTimer(s.nextTick())
	defer s.timer.Stop()
	for {
		in, ok := s.take(ctx)
		if !ok {
			s.now = time.Now()
			s.journal.input(s.now, ended{context.Cause(ctx)})
			s.end(context.Cause(ctx))
			return
		}
		s.journal.input(s.now, in)
		if why := s.step(children, in); why != nil {
			s.end(why)
			return
		}
	}
}

// open is the first thing that Run does.
func (s *Session) open(ctx context.Context) {
	s.kept = s.cfg.Store
	s.beginCounting()
	s.save()
	s.interrupted()
	s.mirror("")
	s.follow(ctx)
}

// step applies one input. It returns why the session ends, nil while it goes on.
func (s *Session) step(ctx context.Context, in input) error {
	switch in := in.(type) {
	case fromClient:
		return s.fromClient(ctx, in)
	case malformed:
		s.malformed(in)
	case heard:
		s.hear(ctx, in)
	case said:
		s.say(in)
	case piece:
		s.sound(in)
	case filled:
		s.filled(in)
	case offered:
		s.taken()
	case Followed:
		s.see(in)
	case taken:
		s.hearing.sent()
	case joined:
		s.join(in.peer, in.hello)
	case left:
		return s.leave(in.peer)
	case tick:
		return s.tick()
	}
	return nil
}

// turnAway closes whoever came too late to be seated, but too early to be told [ErrEnded].
func (s *Session) turnAway() {
	for {
		select {
		case in := <-s.mailbox:
			if late, ok := in.(joined); ok {
				s.tooLate(late.peer)
			}
		default:
			return
		}
	}
}

// tooLate tells a peer that there is no session any more, or that it will be there again.
func (s *Session) tooLate(p Peer) {
	if s.movesOn {
		code, reason := closing(ErrShutdown)
		p.Close(code, reason)
		return
	}
	if s.cfg.Version >= 2 {
		s.tell(p, s.wireError(errGone, protocol.CodeInternal))
	}
	p.Close(protocol.CloseSessionGone, "the session has ended")
}

// end is the last thing that a session does.
func (s *Session) end(why error) {
	if s.cfg.Version >= 2 {
		s.lastWords(why)
	}
	s.stopTurn(why)
	s.movesOn = s.survives(why)
	s.endStore(why)
	s.countAlone(false)
	code, reason := closing(why)
	for i, p := range s.seats {
		if p != nil {
			p.Close(code, reason)
		}
		s.seats[i] = nil
	}
}

// lastWords ends the turn and, unless it goes on in another process, the session.
func (s *Session) lastWords(why error) {
	s.cancelAnswer(cancelReason(why))
	if s.survives(why) {
		s.forget()
		if s.machine.can(evCancel) {
			s.enter(evCancel)
		}
		return
	}
	s.emit(protocol.SessionEnded{Reason: endReason(why)})
}

// tick ends whatever has waited for too long, and sets the timer for the next that might.
func (s *Session) tick() error {
	if u := s.hearing; u != nil && u.committed && s.since(u.asked) >= s.cfg.Recognise {
		s.goDeaf(errNoFinal)
	}
	s.micSilent()
	s.expire()
	s.play()
	s.ponder()
	if a := s.answer; a != nil && !a.ended && len(a.open) == 0 && s.since(a.heardFrom) >= s.silentLimit() {
		s.failAnswer(errAgentSilent)
	}
	if s.isAlone() && s.since(s.alone) >= s.cfg.Window {
		return errAbandoned
	}
	if s.since(s.lastSeen) >= s.cfg.Idle && !s.inFlight() && !s.isAlone() {
		return errIdle
	}
	s.wake()
	return nil
}

// wake sets the timer for whatever may have waited for too long.
func (s *Session) wake() {
	if s.replayed == nil {
		s.timer.Reset(s.nextTick())
	}
}

// spawn runs an engine or a recogniser beside the session; in a replay, what they said stands in the journal.
func (s *Session) spawn(child func()) {
	if s.replayed == nil {
		s.children.Go(child)
	}
}

func (s *Session) since(t time.Time) time.Duration { return s.now.Sub(t) }

// nextTick is when something may have waited for too long.
func (s *Session) nextTick() time.Duration {
	next := s.cfg.Idle - s.since(s.lastSeen)
	if s.isAlone() {
		next = s.cfg.Window - s.since(s.alone)
	}
	if s.inFlight() && next <= 0 {
		next = s.cfg.Idle // the turn's own limits come first
	}
	if u := s.hearing; u != nil && u.committed {
		next = min(next, s.cfg.Recognise-s.since(u.asked))
	}
	next = min(next, s.nextMic())
	if a := s.answer; a != nil {
		next = min(next, a.nextTick(s.now, s.silentLimit(), s.isAlone()))
	}
	return max(next, time.Millisecond)
}
