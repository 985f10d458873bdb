// Package room is the gateway in LiveKit's rooms: an agent participant that hears whoever speaks there, is heard, and
// shows what the agent does. A room is a peer of a session as a socket is.
//
// Start at [Rooms]: it knows which rooms show which sessions, and has a goroutine for each room that the gateway is in. A
// [Room] (room.go) is one of them; each of its connections joins LiveKit and the session, and leaves both. livekit.go is
// that connection, worker.go how LiveKit sends us into rooms, and sweep.go how we go where it sends nobody; api.go makes
// tokens and reads webhooks, guests.go counts what those tokens allow, check.go looks whether all is well. phone.go is the
// other side: a participant as a phone is one.
//
// Inside a room: microphone.go is what is heard, player.go what is to be heard and how much of it was; peer.go is the
// room before the session, calls.go what participants may call by RPC, follow.go whose work they may have shown beside the
// agent's, chats.go what they may write, trace.go the span of all that. All else that is said goes through publisher.go, in
// order, as packets that render.go makes.
package room

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
)

// Config is what the rooms are made of. URL, Key, Secret and NewSession are required.
type Config struct {
	URL    string // of LiveKit's server, ws:// or wss://
	Key    string // the API key
	Secret string // what goes with it: never logged, never told
	Public string // the address that participants are told; default URL
	Behind bool   // participants reach LiveKit through the gateway: they are told no address, and Public counts for nothing

	// Agent is the name by which LiveKit dispatches us. Empty: into every room that begins.
	Agent string

	Hold time.Duration // after such a silence the agent leaves; 0: never

	// Empty is how long the agent stays after the last participant. Default 1 minute: LiveKit ends a room that only agents
	// are in before that, 20 s after, and sends us into it again when it begins anew. It does not into one that we left.
	Empty time.Duration

	NoContent   bool // send no content events beside the transcription
	Transcripts bool // also send agent_transcript and user_transcript, as clients without text streams read them
	MaxRooms    int  // how many rooms LiveKit may send us into; default 100

	// NewSession makes and runs a session with these settings. It is called with the name of a room in them: the session
	// then asks for that room by [Rooms.Mirror], through session.Config.Mirror.
	NewSession func(protocol.SessionStart) (*session.Session, error)
	Codec      speech.Codec // nil: rooms are served in writing alone
	Voice      bool         // sessions can speak
	HandsFree  bool         // a room's own session is to hear by itself where speech begins and ends

	// Guarded says that the gateway asks who comes: then only whom it let in itself, with the right to follow signals, has
	// any source followed (follow.go).
	Guarded bool
	Follow  []string                       // what a room's own session follows from the beginning, and everybody may choose among
	Sources func(context.Context) []Source // what there is to follow; nil: nothing

	Log     *slog.Logger        // nil discards
	Metrics *Metrics            // nil counts nothing
	Tracer  func() trace.Tracer // what takes a span for each stay in a room (trace.go); nil, or nil of it: nothing does
}

// Rooms knows which rooms there are. Its methods may be called from any goroutine. The lock guards the table, nothing
// else; each room's state is its goroutine's own.
type Rooms struct {
	cfg  Config
	log  *slog.Logger
	dial func(context.Context, *Room, ticket) (line, error)

	guests *guests
	ctx    context.Context // of every room; cancelled by Run's end
	stop   context.CancelCauseFunc

	mu     sync.Mutex
	places map[string]*place // by the room's name
	closed bool
	wg     sync.WaitGroup // rooms
}

// place is a room and the session that it shows.
type place struct {
	session *session.Session
	coming  bool                    // the session is being made
	room    *Room                   // nil while we are not there
	leave   context.CancelCauseFunc // ends it
	ticket  ticket                  // for the first connection, if LiveKit gave one
	over    []func(error)           // called when we have left; see Enter
	memory  memory                  // of the session
}

// ticket lets us into a room.
type ticket struct{ url, token string }

// New returns rooms in which nobody is yet.
func New(cfg Config) *Rooms {
	cfg.Empty = cmp.Or(cfg.Empty, time.Minute)
	cfg.MaxRooms = cmp.Or(cfg.MaxRooms, 100)
	cfg.Public = cmp.Or(cfg.Public, cfg.URL)
	if cfg.Behind {
		cfg.Public = ""
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Rooms{cfg: cfg, log: cfg.Log, dial: dial, places: map[string]*place{}, guests: &guests{table: map[stay]*guest{}}}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r
}

// Run waits for LiveKit to send us into rooms, until ctx is done. Then it leaves all rooms, and returns when it has.
func (r *Rooms) Run(ctx context.Context) {
	r.work(ctx)
	r.shut()
}

// shut leaves every room, and waits for that. Nobody enters another one.
func (r *Rooms) shut() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errShutdown)
	r.wg.Wait()
}

// ErrFull is returned when the gateway is in as many rooms as it may be.
var ErrFull = errors.New("room: the gateway is in as many rooms as it may be")

// Join brings an agent into a room, unless one of ours is there. A room that shows no session gets one of its own.
func (r *Rooms) Join(name string) error { return r.enter(name, ticket{}, nil) }

// enter is Join, with what LiveKit gave us for it; over is called when we have left, or are not needed.
func (r *Rooms) enter(name string, t ticket, over func(error)) error {
	r.mu.Lock()
	p := r.at(name)
	switch {
	case r.closed:
		r.mu.Unlock()
		return errShutdown
	case p.room != nil || p.coming:
		r.mu.Unlock()
		if over != nil {
			over(nil)
		}
		return nil
	case r.running() >= r.cfg.MaxRooms:
		if p.session == nil {
			delete(r.places, name) // nothing is remembered of what was only asked for
		}
		r.mu.Unlock()
		return ErrFull
	}
	p.ticket = t
	if over != nil {
		p.over = append(p.over, over)
	}
	if p.session != nil {
		r.attend(name, p)
		r.mu.Unlock()
		return nil
	}
	p.coming = true
	r.mu.Unlock()
	_, err := r.cfg.NewSession(r.settings(name)) // which calls Mirror
	if err != nil {
		r.mu.Lock()
		delete(r.places, name)
		r.mu.Unlock()
	}
	return err
}

// settings are those of a room's own session.
func (r *Rooms) settings(name string) protocol.SessionStart {
	ask := protocol.SessionStart{Turns: string(session.Agent), Room: name, Audio: &protocol.AudioFormats{
		Input: &protocol.Format{Encoding: "pcm16", Rate: speech.Rate, Framing: "binary"},
	}}
	if r.cfg.HandsFree {
		ask.TurnDetection = "vad"
	}
	if len(r.cfg.Follow) > 0 {
		ask.Follow = &r.cfg.Follow
	}
	if r.cfg.Voice && r.cfg.Codec != nil {
		ask.Audio.Output = &protocol.Format{Encoding: "pcm16", Rate: outRate, Framing: "binary"}
	}
	return ask
}

// Mirror has a room show a session, in place of the one that it showed before, and of the room that showed it. It is
// called from the session's goroutine, and does not wait.
func (r *Rooms) Mirror(s *session.Session, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	for other, p := range r.places {
		if other != name && p.session == s {
			p.session, p.memory = nil, memory{}
			if p.room != nil {
				p.leave(errMoved)
			}
		}
	}
	p := r.at(name)
	if p.session == s && p.room != nil {
		return
	}
	p.session, p.memory, p.coming = s, memory{}, false
	if p.room != nil {
		p.leave(errMoved) // run goes on with this one
		return
	}
	r.attend(name, p)
}

// at is a room's place; a session that has ended is forgotten. Call it with the lock held.
func (r *Rooms) at(name string) *place {
	for n, p := range r.places {
		if p.session != nil && p.room == nil && ended(p.session) {
			delete(r.places, n)
		}
	}
	p, ok := r.places[name]
	if !ok {
		p = &place{}
		r.places[name] = p
	}
	return p
}

func ended(s *session.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// running is how many rooms we are in. Call it with the lock held.
func (r *Rooms) running() (n int) {
	for _, p := range r.places {
		if p.room != nil {
			n++
		}
	}
	return n
}

// load is how full we are, from 0 to 1, and in how many rooms.
func (r *Rooms) load() (part float32, rooms int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.running()
	return float32(n) / float32(r.cfg.MaxRooms), n
}

// attend begins to be in a room. Call it with the lock held.
func (r *Rooms) attend(name string, p *place) {
	room := &Room{name: name, cfg: &r.cfg, metrics: r.cfg.Metrics, log: r.log.With("room", name), connect: r.dial, guests: r.guests}
	p.room = room
	r.wg.Go(func() { r.run(room, p) })
}

// run is a room's goroutine: it comes back when the connection was lost, or the room shows another session now, and ends
// when there is nothing to come back for.
func (r *Rooms) run(room *Room, p *place) {
	identity := "agent-" + random()
	for try := 0; ; {
		ctx, leave := context.WithCancelCause(r.ctx)
		r.mu.Lock()
		t := p.ticket
		p.ticket, p.leave = ticket{}, leave
		room.session, room.memory = p.session, p.memory
		r.mu.Unlock()
		if room.session == nil {
			leave(nil)
			r.gone(room, p, errMoved)
			return
		}
		var err error
		if t.token == "" {
			t, err = r.agentTicket(room.name, identity)
		}
		began := time.Now()
		if err == nil {
			err = room.attend(ctx, t)
		}
		leave(nil)
		room.log.Info("room left", "session", room.session.ID(), "reason", err)
		if time.Since(began) > time.Minute {
			try = 0
		}
		if r.gone(room, p, err) {
			return
		}
		if errors.Is(err, errMoved) || errors.Is(err, errBehind) {
			continue
		}
		if try++; !r.pause(try) {
			r.gone(room, p, errShutdown)
			return
		}
	}
}

// gone notes how a connection ended. It is true when the room's goroutine is to end, too.
func (r *Rooms) gone(room *Room, p *place, why error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.session == room.session {
		p.memory = room.memory
	}
	switch {
	case r.ctx.Err() != nil:
	case errors.Is(why, errMoved) && p.session != nil && p.session != room.session:
		return false
	case errors.Is(why, errLost), errors.Is(why, errBehind), errors.Is(why, errUnreachable):
		if !ended(room.session) {
			return false
		}
	}
	p.room = nil
	for _, over := range p.over {
		over(why)
	}
	p.over = nil
	if p.session != nil && ended(p.session) {
		p.session = nil
	}
	if p.session == nil {
		for name, other := range r.places {
			if other == p {
				delete(r.places, name)
			}
		}
	}
	return true
}

// The pauses before we come back.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

// pause waits before the next try. It is false when there is none.
func (r *Rooms) pause(try int) bool {
	d := lastPause
	if try < 6 {
		d = min(d, firstPause<<(try-1))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// random is 32 random bits in hexadecimal.
func random() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
