package room

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/session"
	"vela/session/speech"
)

// inputs bounds what waits for a room's goroutine. When it is full, whoever brings more waits: a microphone's packets
// then wait in the SDK, which drops the oldest, and the data channel slows its sender down.
const inputs = 128

// Room is the gateway in one LiveKit room, and the peer of a session there: a run of it is one connection. Its state is
// owned by the goroutine in attend; the SDK's callbacks, the microphones and the session hand it values.
type Room struct {
	name    string
	cfg     *Config
	metrics *Metrics
	log     *slog.Logger
	session *session.Session
	in      chan input
	end     chan error // of size 1: why the connection ends
	connect func(context.Context, *Room, ticket) (line, error)
	guests  *guests

	// Owned by attend.
	line   line
	peer   *peer
	people map[string]person      // by identity: who is here, without agents
	mics   map[string]*microphone // by the track's SID
	holder *microphone            // who speaks, until the final transcript
	most   int                    // people at once
	refs   int                    // so far: they make the ids of messages to the session
	empty  *time.Timer            // runs when everybody has left
	hold   *time.Timer            // runs while nobody says anything
	memory
}

// person is somebody who is here.
type person struct {
	pays    session.Allowance // for what they say; nil: nobody counts it
	refused bool              // there was no place for them: they may hear, and no more
	follows bool              // they may have any source followed
}

// memory is what a room was shown of its session by the connections before this one.
type memory struct {
	any   bool           // there was one
	last  uint64         // the last event
	state protocol.State // as of that event
}

// line is a room's connection to LiveKit, as far as the room needs it.
type line interface {
	carrier
	// present is who was here before us.
	present() []came
	// listen begins to read a microphone; what it hears comes as inputs.
	listen(ctx context.Context, m *microphone)
	// play is where the answer's sound goes; nil where this build has none.
	play() speaker
	// excuse tells LiveKit why the agent leaves these people on purpose, so that no other one follows.
	excuse(identities []string, why string)
	close()
}

// What ends a connection.
var (
	errEmpty    = errors.New("room: nobody is here any more")
	errHold     = errors.New("room: nobody said anything for too long")
	errAgent    = errors.New("room: another agent is here")
	errRemoved  = errors.New("room: closed, or the agent was removed")
	errLost     = errors.New("room: the connection was lost")
	errBehind   = errors.New("room: too much was waiting to be sent")
	errEnded    = errors.New("room: a participant ended it")
	errSession  = errors.New("room: the session ended")
	errMoved    = errors.New("room: the room shows another session now")
	errShutdown = errors.New("room: the gateway is stopping")
)

// label is why a connection ended, in a word for the metrics.
func label(why error) string {
	for _, known := range []struct {
		why  error
		word string
	}{
		{errEmpty, "empty"}, {errHold, "hold"}, {errAgent, "other_agent"}, {errRemoved, "removed"}, {errBehind, "behind"},
		{errEnded, "ended"}, {errSession, "session"}, {errMoved, "moved"}, {errShutdown, "shutdown"},
	} {
		if errors.Is(why, known.why) {
			return known.word
		}
	}
	return "lost"
}

// input is one thing that happens to a room.
type input interface{}

type (
	// came and left say who is here; an agent is not counted.
	came struct {
		identity string
		agent    bool
		first    bool // it was here before us
	}
	left struct{ identity string }

	// opened and closed are a microphone's track; muted is what its owner does with it.
	opened struct{ mic *microphone }
	closed struct{ sid string }
	muted  struct {
		sid string
		on  bool
	}

	// frame is what a microphone heard; fell says that it fell silent after it was muted, or is gone.
	frame struct {
		mic     *microphone
		samples []int16
	}
	fell struct{ mic *microphone }

	// typed is what somebody wrote; command is an object of ganglia-events that a client sent.
	typed struct {
		identity, text string
	}
	command struct {
		identity string
		object   []byte
	}

	// again says that the connection is a new one: what was under way is lost.
	again struct{}

	// played is how much of an answer the track has played.
	played struct {
		response string
		at       time.Duration
	}
)

// post hands the room an input. It waits while the room is behind, and gives up with ctx.
func (r *Room) post(ctx context.Context, in input) bool {
	select {
	case r.in <- in:
		return true
	case <-ctx.Done():
		return false
	}
}

// attend is one connection's life: it joins the room and the session, and returns why it left.
func (r *Room) attend(parent context.Context, t ticket) (why error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	r.in, r.end = make(chan input, inputs), make(chan error, 1)
	r.people, r.mics, r.holder = map[string]person{}, map[string]*microphone{}, nil
	defer func() {
		for identity := range r.people {
			r.guests.left(stay{r.name, identity})
		}
	}()
	r.empty, r.hold = stopped(), stopped()
	defer r.empty.Stop()
	defer r.hold.Stop()

	l, err := r.connect(ctx, r, t)
	if err != nil {
		return err
	}
	r.line = l
	span := r.startSpan(ctx)
	r.most = 0
	defer func() { endSpan(span, why, r.most) }()
	r.peer = newPeer(r, span)
	children := r.peer.start(ctx, l)
	defer func() {
		r.session.Leave(r.peer)
		cancel(why)
		l.close()
		children.Wait()
		r.memory = r.peer.publisher.shown()
		r.peer.abandon()
	}()
	hello := session.Hello{Seat: session.Room, Resume: r.memory.any, After: r.memory.last}
	if err := r.session.Join(ctx, r.peer, hello); err != nil {
		return errors.Join(errSession, err)
	}
	r.log.Info("room joined", "session", r.session.ID(), "resumed", hello.Resume)
	r.waitHold()
	r.metrics.connected()
	defer func() { r.metrics.disconnected(label(why)) }()
	for _, p := range l.present() {
		if why := r.came(p); why != nil {
			return why
		}
	}
	for {
		select {
		case in := <-r.in:
			if why := r.step(ctx, in); why != nil {
				return r.leave(why)
			}
		case p := <-r.peer.player.progress:
			r.send(ctx, protocol.PlaybackAck{ResponseID: p.response, PlayedMs: p.at.Milliseconds()})
		case <-r.peer.changed:
			r.waitHold()
		case why := <-r.end:
			return r.leave(why)
		case <-r.empty.C:
			return r.leave(errEmpty)
		case <-r.hold.C:
			return r.leave(errHold)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// leave says goodbye where there is somebody to say it to.
func (r *Room) leave(why error) error {
	if errors.Is(why, errHold) {
		r.peer.publisher.say(ganglia.SessionHold{Reason: ganglia.HoldIdle})
		r.peer.publisher.flush(goodbye)
	}
	if errors.Is(why, errHold) || errors.Is(why, errEnded) || errors.Is(why, errRemoved) {
		r.line.excuse(slices.Sorted(maps.Keys(r.people)), label(why))
	}
	return why
}

// goodbye is how long the last words have to leave before the connection ends.
const goodbye = 500 * time.Millisecond

// step applies one input. It returns why the connection ends, nil while it goes on.
func (r *Room) step(ctx context.Context, in input) error {
	switch in := in.(type) {
	case came:
		return r.came(in)
	case left:
		r.guests.left(stay{r.name, in.identity})
		delete(r.people, in.identity)
		if len(r.people) == 0 {
			r.empty.Reset(r.cfg.Empty)
		}
	case opened:
		r.opened(ctx, in.mic)
	case closed:
		if m := r.mics[in.sid]; m != nil {
			m.close()
			delete(r.mics, in.sid)
		}
	case muted:
		if m := r.mics[in.sid]; m != nil {
			m.mute(in.on)
		}
	case frame:
		r.heard(ctx, in)
	case fell:
		in.mic.refused = false
		if r.holder == in.mic && r.speaks() {
			r.send(ctx, in.mic.end())
		}
		r.peer.fell(in.mic)
	case typed:
		r.typed(ctx, in)
	case command:
		return r.command(ctx, in)
	case *call:
		r.call(ctx, in)
	case again:
		r.peer.publisher.restart()
	}
	return nil
}

// over ends the connection. It never waits; the first reason counts. Anybody may call it.
func (r *Room) over(why error) {
	select {
	case r.end <- why:
	default:
	}
}

// came counts who is here. Of two agents the one that came later leaves.
func (r *Room) came(in came) error {
	if in.agent {
		if in.first {
			return errAgent
		}
		return nil
	}
	who := person{}
	pass, invited, err := r.guests.came(stay{r.name, in.identity})
	who.follows = r.cfg.follows(invited, pass)
	switch {
	case err != nil:
		who.refused = true
		r.peer.publisher.tell(in.identity, errNoPlace)
	case pass != nil:
		who.pays = pass
	}
	r.people[in.identity] = who
	r.most = max(r.most, len(r.people))
	r.empty.Stop()
	r.waitHold()
	return nil
}

// opened begins to listen to a microphone, in a goroutine of the connection's.
func (r *Room) opened(ctx context.Context, m *microphone) {
	if old := r.mics[m.sid]; old != nil {
		old.close()
	}
	r.mics[m.sid] = m
	if m.isMuted != nil && m.isMuted() {
		m.mute(true) // what was said of it before now went to nobody
	}
	r.line.listen(ctx, m)
}

// heard passes on what the one says who has the floor: whoever spoke first, until the final transcript.
func (r *Room) heard(ctx context.Context, in frame) {
	if r.people[in.mic.identity].refused {
		return
	}
	free := r.peer.handsFree()
	pressed := in.mic.pressed && !free
	in.mic.pressed = false
	if !pressed && !r.peer.listens(in.mic) && speech.Level(in.samples) <= quietLevel {
		in.mic.mayBegin(in.samples)
		return // an open microphone takes no floor with its silence: it would break off what somebody wrote
	}
	if !in.mic.mayBegin(in.samples) || !r.peer.takeFloor(in.mic) {
		in.mic.refused = true
		r.metrics.talkedOver(speech.Duration(len(in.samples), speech.Rate))
		return
	}
	r.holder = in.mic
	in.mic.loud = in.mic.loud || speech.Level(in.samples) > quietLevel
	if free && in.mic.breathes(in.samples) {
		r.peer.yield(in.mic)
	}
	r.waitHold()
	for _, m := range r.peer.audio(in.samples, r.people[in.mic.identity].pays) {
		r.send(ctx, m)
	}
}

// command does what a client asks for on ganglia-events. Every object of the channel shows that somebody is there; what is
// no command is passed over.
func (r *Room) command(ctx context.Context, in command) error {
	if r.people[in.identity].refused {
		return nil
	}
	r.waitHold()
	asked, err := ganglia.DecodeCommand(in.object)
	if err != nil {
		return nil
	}
	switch c := asked.(type) {
	case ganglia.TTSMode:
		r.peer.speak(c.On())
	case ganglia.TextMessage:
		if text := strings.TrimSpace(c.Text); text != "" {
			r.typed(ctx, typed{in.identity, text})
		}
	case ganglia.EndVoiceSession:
		return errEnded
	}
	return nil
}

// typed is a turn in writing. Its writer has the floor until the session has it.
func (r *Room) typed(ctx context.Context, in typed) {
	if r.people[in.identity].refused {
		return
	}
	r.waitHold()
	r.refs++
	id := "t" + strconv.Itoa(r.refs)
	r.writes(in.identity, id)
	r.sendAs(ctx, id, protocol.InputTextSubmit{Text: in.text})
}

// call hands the session what somebody asks for by RPC. That the session.start behind it is answered says that the
// call has been taken; a session.start of the caller's own is answered itself.
func (r *Room) call(ctx context.Context, c *call) {
	if r.people[c.identity].refused {
		c.reply(errNoPlace)
		return
	}
	r.waitHold()
	switch m := c.message.(type) {
	case protocol.InputAudioClear:
		if r.speaks() && r.holder.identity != c.identity {
			c.reply(errNotYours)
			return
		}
	case protocol.SessionStart:
		if m.Follow != nil && !r.mayFollow(r.people[c.identity], *m.Follow) {
			c.reply(errNoFollow)
			return
		}
	case sourcesGet:
		c.finish = r.followable(r.people[c.identity].follows)
		c.reply(nil)
		return
	}
	r.refs++
	c.id = "c" + strconv.Itoa(r.refs)
	r.peer.await(c)
	switch c.message.(type) {
	case protocol.InputTextSubmit:
		r.writes(c.identity, c.id)
	case protocol.SessionStart:
		r.sendAs(ctx, c.id, c.message)
		return
	case protocol.InputAudioClear:
		r.drop()
	}
	r.sendAs(ctx, c.id, c.message)
	r.send(ctx, protocol.SessionStart{})
}

// speaks says whether somebody says something that is still to be ended.
func (r *Room) speaks() bool { return r.holder != nil && r.peer.listens(r.holder) }

// writes gives the floor to who writes. What was being said at a button is over with it: the rest of it may not break off the
// answer. Hands-free, the session itself hears whether that is speech.
func (r *Room) writes(identity, id string) {
	if !r.peer.handsFree() {
		r.drop()
	}
	r.peer.writes(identity, id)
}

// drop lets go of what is being said: the rest of it is not heard either, up to a mute or a silence.
func (r *Room) drop() {
	if r.speaks() {
		r.holder.refused = true
	}
}

// send hands the session a message, as a client would. A session that is over ends the connection.
func (r *Room) send(ctx context.Context, m protocol.Message) { r.sendAs(ctx, "", m) }

func (r *Room) sendAs(ctx context.Context, id string, m protocol.Message) {
	if err := r.session.Receive(ctx, r.peer, id, m); errors.Is(err, session.ErrEnded) {
		r.over(errSession)
	}
}

// waitHold begins to wait for somebody to say something, where the room is to be left if nobody does.
func (r *Room) waitHold() {
	r.hold.Stop()
	if r.cfg.Hold > 0 && r.peer.isIdle() {
		r.hold.Reset(r.cfg.Hold)
	}
}
