package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"vela/protocol"
)

// ConversationOptions is how to hold a conversation. Its zero value works.
type ConversationOptions struct {
	Options // Subprotocols is not looked at: it takes version 2

	Settings protocol.SessionStart // what to begin with
	Backoff  Backoff               // how it tries again when the connection is lost
	// Watch is told of the connection, from the goroutine that receives. It must not call Receive or Close.
	Watch func(Status)

	dial func(context.Context) (connection, error) // for tests; nil is Dial
}

// Status is a change of the connection.
type Status struct {
	Phase   Phase
	Err     error         // with Away: how the connection, or the last attempt at one, ended
	Wait    time.Duration // with Away: until the next attempt
	Attempt int           // with Away: which one that is, from 1
}

// Phase says what has become of the connection.
type Phase string

// The phases.
const (
	Away   Phase = "away"   // it is lost; one more attempt follows
	Back   Phase = "back"   // the session goes on in a new one, and nothing was missed
	Missed Phase = "missed" // the session goes on, but events are missing for good
)

// Errors of a conversation.
var (
	// ErrAway is returned to who sends while there is no connection. Nothing was sent.
	ErrAway = errors.New("the gateway is not connected at the moment: try again when it is back")
	// ErrClosed follows [Conversation.Close].
	ErrClosed = errors.New("the conversation is closed")
)

// EndedError is the end of a conversation whose session is over: session.ended was its last event.
type EndedError struct {
	Reason protocol.EndReason
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("the gateway ended the session (%s)", e.Reason)
}

// connection is what a conversation needs of a [Client].
type connection interface {
	Start(context.Context, protocol.SessionStart) (protocol.SessionReady, error)
	Resume(ctx context.Context, token string, after uint64) (protocol.SessionReady, error)
	SendEnvelope(context.Context, protocol.Envelope) error
	SendAudio(context.Context, []int16) error
	ReceiveEnvelope(context.Context) (protocol.Envelope, error)
	Ping(context.Context) error
	Close() error
	Drop()
}

// Conversation is a session of version 2 that outlives its connections. Make it with [Converse].
//
// [Conversation.Receive] hands out the session's events, each once, in order. When the connection is lost, it waits
// ([Backoff]), connects again and resumes, for as long as the gateway keeps the session: there is no goroutine of the
// conversation's own, so nothing comes back, and no ping is answered, while nobody receives. It comes back after 1001,
// 1006 (no close frame), 1011 and 4003, and when the gateway cannot be reached; anything else ends the conversation,
// and so does session.ended.
//
// What is sent while the connection is away is refused with [ErrAway], and nothing is kept for later: when the
// conversation is back, the session may have gone on, and a turn that was typed for one moment may interrupt an answer
// in another. After any other error of sending, what was sent may or may not have arrived. The session.ready of the
// resume settles it: whatever the session took from the old connection has made events up to its LastSeq; what it had
// not taken by then, it never will. So when all events up to there have come and none tells of what was sent, it is
// time to send it again.
//
// What is followed with signal.subscribe ends with its connection, so it is asked for again on the next one; the signals between
// are missed.
//
// Send, SendAudio, Drop and Close may be called from any goroutine; Receive and the rest from one at a time.
type Conversation struct {
	o    ConversationOptions
	ctx  context.Context // done once the conversation is closed
	stop context.CancelFunc

	mu      sync.Mutex                 // guards the handover of the connection from who receives to who sends
	conn    connection                 // nil while away
	ids     uint64                     // given to what was sent
	filters []protocol.SignalSubscribe // what is followed
	closed  bool

	// Owned by whoever receives.
	ready  *protocol.SessionReady // to be handed out before anything else; nil once it has been
	id     string
	terms  protocol.Terms
	state  protocol.State
	seq    uint64    // of the last event handed out
	lost   time.Time // when the connection went
	since  time.Time // when it came
	failed int       // attempts at a new one
	why    error     // how the last one, or the last attempt, ended
	over   error     // why nothing more comes; nil while it may
}

// Converse connects and begins a session. Its errors are those of [Dial] and [Client.Start], and [ErrVersion1]: the first
// connection is not tried twice. ctx is for that connection alone.
func Converse(ctx context.Context, address string, o ConversationOptions) (*Conversation, error) {
	o.Subprotocols = []string{Version2, Version1}
	if o.dial == nil {
		o.dial = func(ctx context.Context) (connection, error) { return dial2(ctx, address, o.Options) }
	}
	if o.Watch == nil {
		o.Watch = func(Status) {}
	}
	conn, err := o.dial(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := conn.Start(ctx, o.Settings)
	if err != nil {
		conn.Drop()
		return nil, err
	}
	c := &Conversation{o: o}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.welcome(ready)
	c.take(conn)
	return c, nil
}

func dial2(ctx context.Context, address string, o Options) (connection, error) {
	c, err := Dial(ctx, address, o)
	if err != nil {
		return nil, err
	}
	if c.Version() != 2 {
		c.Drop()
		return nil, ErrVersion1
	}
	return c, nil
}

// SessionID is the session's id, the same for as long as the conversation lasts.
func (c *Conversation) SessionID() string { return c.id }

// Terms is what the gateway last said to be in force.
func (c *Conversation) Terms() protocol.Terms { return c.terms }

// State is the session's phase as last received, empty before that.
func (c *Conversation) State() protocol.State { return c.state }

// Seq is the number of the last event that was received.
func (c *Conversation) Seq() uint64 { return c.seq }

// Receive waits for the next event, through as many connections as it takes. First, and after every resume, it is
// session.ready. A message that is no event at all is an error which the conversation survives; so does it the end of
// ctx, after which the next call resumes. Any other error is the conversation's end, and returned again.
func (c *Conversation) Receive(ctx context.Context) (protocol.Envelope, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for {
		if c.ready != nil {
			e := protocol.Envelope{Message: *c.ready}
			c.ready = nil
			return e, nil
		}
		conn, err := c.connected(ctx)
		switch {
		case err != nil && c.ctx.Err() != nil:
			return protocol.Envelope{}, ErrClosed
		case err != nil:
			return protocol.Envelope{}, err
		}
		if conn == nil {
			continue // it is back, and session.ready is there
		}
		e, err := read(ctx, conn)
		switch {
		case err == nil && c.takes(e):
			return e, nil
		case err == nil:
		case ctx.Err() != nil:
			c.lose(conn, context.Cause(ctx), true)
		case !isEnd(err):
			return e, err
		default:
			c.lose(conn, err, again(err))
		}
	}
}

// isEnd says whether an error of receiving is the connection's end.
func isEnd(err error) bool {
	var closed *CloseError
	return errors.As(err, &closed)
}

// takes says whether an event is to be handed out.
func (c *Conversation) takes(e protocol.Envelope) bool {
	switch {
	case e.Seq != 0 && e.Seq <= c.seq:
		return false // it has been
	case e.Seq > c.seq+1:
		c.o.Watch(Status{Phase: Missed})
	}
	if e.Seq != 0 {
		c.seq, c.failed = e.Seq, 0
	}
	switch m := e.Message.(type) {
	case protocol.SessionReady:
		c.know(m)
	case protocol.SessionState:
		c.state = m.Value
	case protocol.SessionEnded:
		c.over = &EndedError{m.Reason}
	}
	return true
}

// welcome keeps the answer to session.start or session.resume, to be handed out.
func (c *Conversation) welcome(ready protocol.SessionReady) {
	c.ready = &ready
	c.since = time.Now()
	c.know(ready)
}

func (c *Conversation) know(ready protocol.SessionReady) {
	c.id = ready.SessionID
	if ready.Terms != nil {
		c.terms = *ready.Terms
	}
}

// lose lets go of a connection; more says whether there may be another one.
func (c *Conversation) lose(conn connection, why error, more bool) {
	conn.Drop()
	c.mu.Lock()
	c.conn = nil
	c.mu.Unlock()
	c.lost, c.why = time.Now(), why
	if c.lost.Sub(c.since) > c.o.Backoff.longest(manyFailed) {
		c.failed = 0 // it was a good one
	}
	if c.over == nil && !more {
		c.over = why
	}
}

// manyFailed is when waiting longer makes no difference any more.
const manyFailed = 62

// connected returns the connection. Without one it makes an attempt, and then returns nil, or why there are no more.
func (c *Conversation) connected(ctx context.Context) (connection, error) {
	c.mu.Lock()
	conn, closed := c.conn, c.closed
	c.mu.Unlock()
	switch {
	case conn != nil: // after session.ended, too: its close frame follows
		return conn, nil
	case closed:
		c.over = ErrClosed
	}
	switch {
	case c.over != nil:
		return nil, c.over
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, c.comeBack(ctx)
}

// comeBack makes one attempt at a new connection. Its error is that ctx is done.
func (c *Conversation) comeBack(ctx context.Context) error {
	left := time.Until(c.lost.Add(time.Duration(c.terms.ResumeWindowMs) * time.Millisecond))
	if left <= 0 {
		c.over = fmt.Errorf("the session could not be taken up again in time: %w", c.why)
		return nil
	}
	wait := min(c.o.Backoff.wait(c.failed), left)
	c.failed++
	c.o.Watch(Status{Phase: Away, Err: c.why, Wait: wait, Attempt: c.failed})
	if !sleep(ctx, wait) {
		return context.Cause(ctx)
	}
	conn, ready, err := c.resume(ctx)
	switch {
	case err == nil:
		c.back(conn, ready)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case again(err):
		c.why = err
	default:
		c.over = err
	}
	return nil
}

// attempt bounds how long a connection and the answer to session.resume may take.
const attempt = 10 * time.Second

func (c *Conversation) resume(ctx context.Context) (connection, protocol.SessionReady, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	conn, err := c.o.dial(ctx)
	if err != nil {
		return nil, protocol.SessionReady{}, err
	}
	ready, err := conn.Resume(ctx, c.terms.ResumeToken, c.seq)
	if err == nil && ready.Terms == nil {
		err = ErrVersion1
	}
	if err == nil {
		err = c.followAgain(ctx, conn)
	}
	if err != nil {
		conn.Drop()
	}
	return conn, ready, err
}

// back goes on in a new connection.
func (c *Conversation) back(conn connection, ready protocol.SessionReady) {
	c.welcome(ready)
	phase := Back
	if !ready.Recovered {
		phase, c.seq = Missed, ready.LastSeq
	}
	c.take(conn)
	c.o.Watch(Status{Phase: phase})
}

// take makes a connection the one to send on, unless the conversation has been closed meanwhile.
func (c *Conversation) take(conn connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Drop()
		return
	}
	c.conn = conn
}

// Send sends one event and returns the id that it gave it; the error that the event causes names it in its Ref.
func (c *Conversation) Send(ctx context.Context, m protocol.Message) (id string, err error) {
	conn, n, err := c.sender()
	if err != nil {
		return "", err
	}
	c.note(m)
	id = "c" + strconv.FormatUint(n, 10)
	return id, conn.SendEnvelope(ctx, protocol.Envelope{ID: id, Message: m})
}

// note keeps what is followed.
func (c *Conversation) note(m protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case protocol.SignalSubscribe:
		if !slices.ContainsFunc(c.filters, func(f protocol.SignalSubscribe) bool { return same(f, m) }) {
			c.filters = append(c.filters, m)
		}
	case protocol.SignalUnsubscribe:
		gone := protocol.SignalSubscribe(m)
		c.filters = slices.DeleteFunc(c.filters, func(f protocol.SignalSubscribe) bool {
			return same(f, gone) || len(gone.Types)+len(gone.Sources) == 0
		})
	}
}

// same says whether two filters have the same names, in any order.
func same(a, b protocol.SignalSubscribe) bool {
	set := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	return slices.Equal(set(a.Types), set(b.Types)) && slices.Equal(set(a.Sources), set(b.Sources))
}

// followAgain asks for what is followed on a new connection, before anybody else sends on it.
func (c *Conversation) followAgain(ctx context.Context, conn connection) error {
	c.mu.Lock()
	filters := slices.Clone(c.filters)
	c.mu.Unlock()
	for _, f := range filters {
		if err := conn.SendEnvelope(ctx, protocol.Envelope{Message: f}); err != nil {
			return err
		}
	}
	return nil
}

// SendAudio is [Client.SendAudio].
func (c *Conversation) SendAudio(ctx context.Context, samples []int16) error {
	conn, _, err := c.sender()
	if err != nil {
		return err
	}
	return conn.SendAudio(ctx, samples)
}

func (c *Conversation) sender() (connection, uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, 0, ErrClosed
	case c.conn == nil:
		return nil, 0, ErrAway
	}
	c.ids++
	return c.conn, c.ids, nil
}

// Drop cuts the present connection without a word, as a lost network does. Whoever receives comes back.
func (c *Conversation) Drop() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.Drop()
	}
}

// Close ends the session for good, and the connection with the close handshake, and wakes whoever receives. While the
// conversation is away the gateway cannot be told; it keeps the session for as long as it said.
func (c *Conversation) Close() error {
	c.mu.Lock()
	conn := c.conn
	first := !c.closed
	c.conn, c.closed = nil, true
	c.mu.Unlock()
	defer c.stop()
	if !first || conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	_ = conn.SendEnvelope(ctx, protocol.Envelope{Message: protocol.SessionClose{}}) // a lost one is closed already
	return conn.Close()
}

// How often a connection is asked for a sign of life while nothing is received, and how long that may take.
const (
	pingEvery = 20 * time.Second
	pongIn    = 10 * time.Second
)

// read receives; a connection that shows no sign of life meanwhile is cut.
func read(ctx context.Context, conn connection) (protocol.Envelope, error) {
	pings, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	timer := time.AfterFunc(pingEvery, func() {
		defer close(stopped)
		for ping(pings, conn) && sleep(pings, pingEvery) {
		}
	})
	defer func() {
		cancel()
		if !timer.Stop() {
			<-stopped
		}
	}()
	return conn.ReceiveEnvelope(ctx)
}

func ping(ctx context.Context, conn connection) bool {
	pong, cancel := context.WithTimeout(ctx, pongIn)
	defer cancel()
	if conn.Ping(pong) == nil {
		return true
	}
	if ctx.Err() == nil {
		conn.Drop()
	}
	return false
}
