package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"vela/protocol/signal"
)

// maxTurns bounds how many turns one client has at a time, those that wait for a connection included.
const maxTurns = 256

// Times that an owner looks after, once a second.
const (
	lookEvery   = time.Second
	stopWithin  = 2 * time.Second // until OpenClaw has said that it stopped a run
	clearWithin = 10 * time.Second
)

// Run keeps the connection until ctx is done, then stops the runs that are left, and returns the context's cause. It is
// called once. A connection that is lost is tried again by itself, ten times; after that, and after a refusal that trying
// again does not mend, it takes a turn that asks.
func (c *Client) Run(ctx context.Context) error {
	if !c.runs.CompareAndSwap(false, true) {
		return errors.New("openclaw: Run was called twice")
	}
	o := &owner{
		client:  c,
		runs:    map[string]*run{},
		pending: map[string]pending{},
		look:    time.NewTicker(lookEvery),
	}
	defer close(c.over)
	defer o.end()
	o.connect()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r := <-c.asks:
			o.ask(r)
		case r := <-c.ends:
			o.leave(r)
		case e := <-o.events():
			o.linked(e)
		case <-o.retry:
			o.connect()
		case now := <-o.look.C:
			o.check(now)
		}
	}
}

// ask hands a turn to the owner, which then tells r how it goes.
func (c *Client) ask(ctx context.Context, r *run) error {
	late := time.NewTimer(c.cfg.ConnectWithin)
	defer late.Stop()
	select {
	case c.asks <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.over:
		return errClosed
	case <-late.C:
		return errNotTaken
	}
}

// leave tells the owner that nobody listens to r any more. The owner never waits for long, so this does not, either.
func (c *Client) leave(r *run) {
	select {
	case c.ends <- r:
	case <-c.over:
	}
}

// owner is the state of a running client. It belongs to the goroutine of [Client.Run], which never waits for a socket.
type owner struct {
	client  *Client
	link    *link // nil between two tries
	up      bool  // the link has said hello
	hello   hello
	backoff Backoff
	retry   <-chan time.Time // nil unless a try is due
	timer   *time.Timer      // behind retry

	waiting    []*run          // turns that wait for the connection
	runs       map[string]*run // turns that were sent, by run id
	pending    map[string]pending
	lastID     int
	orphans    []stopped // runs to be stopped once there is a connection again
	translator Translator

	look   *time.Ticker
	heard  time.Time // when anything came last
	seq    int64     // of the last event
	missed int64
}

// pending is a request that OpenClaw has not answered.
type pending struct {
	run   *run    // of a question or a clearing; nil of a stop
	clear bool    // of a clearing: the question is asked again after it
	stop  stopped // of a stop
	left  bool    // nobody listens to the run any more: it is to be stopped as soon as it is taken
	until time.Time
}

// stopped is a run that nobody listens to.
type stopped struct{ key, id string }

// maxOrphans bounds how many runs are remembered to be stopped later.
const maxOrphans = 2 * maxTurns

func (o *owner) events() <-chan linkEvent {
	if o.link == nil {
		return nil // never ready
	}
	return o.link.events
}

// connect begins a try.
func (o *owner) connect() {
	o.calm()
	if o.link == nil {
		o.link = o.client.startLink()
		o.show(Connecting, o.client.Status().Why)
	}
}

// calm takes back a try that is due.
func (o *owner) calm() {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.timer, o.retry = nil, nil
}

// show makes a new [Status].
func (o *owner) show(phase Phase, why string) {
	o.client.status.Store(&Status{Phase: phase, Why: why, Version: o.hello.Server.Version, Protocol: o.hello.Protocol, Missed: o.missed})
}

// ask begins a turn, or has it wait for the connection. A turn does not wait for a try that is due later: it is made now.
func (o *owner) ask(r *run) {
	switch {
	case len(o.waiting)+len(o.runs) >= maxTurns:
		r.fail(errBusy)
	case o.up:
		o.send(r)
	default:
		o.waiting = append(o.waiting, r)
		if o.retry == nil && o.link == nil {
			o.backoff = 0 // it had given up
		}
		o.connect()
	}
}

// leave forgets a turn, and stops its run unless that is over.
func (o *owner) leave(r *run) {
	for i, w := range o.waiting {
		if w == r {
			o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
			return
		}
	}
	if o.runs[r.id] != r {
		return // it is over
	}
	o.forget(r)
	if r.taken {
		o.stop(stopped{r.key, r.id})
		return
	}
	for id, p := range o.pending {
		if p.run == r {
			p.left = true // OpenClaw may serve requests out of order: a stop now could come before the run
			o.pending[id] = p
		}
	}
}

// linked takes what a link has to say.
func (o *owner) linked(e linkEvent) {
	switch {
	case e.hello != nil:
		o.welcome(*e.hello)
	case e.frame != nil:
		o.frame(*e.frame)
	case e.down != nil:
		o.lost(e.down)
	}
}

// welcome: the connection is there.
func (o *owner) welcome(h hello) {
	o.up, o.hello, o.backoff = true, h, 0
	o.heard, o.seq, o.missed = time.Now(), 0, 0
	o.show(Connected, "")
	o.client.log.Info("connected to OpenClaw", "version", h.Server.Version, "protocol", h.Protocol)
	for _, s := range o.orphans {
		o.stop(s)
	}
	waiting := o.waiting
	o.orphans, o.waiting = nil, nil
	for _, r := range waiting {
		o.send(r)
	}
}

// lost: the connection is gone, or did not come about. The runs on it are not to be had any more, since OpenClaw repeats
// nothing, but they may go on there: they are stopped when it is back.
func (o *owner) lost(why error) {
	for range o.link.events { // its goroutines are about to end
	}
	o.link, o.up = nil, false
	for _, p := range o.pending {
		switch {
		case p.run == nil:
			o.abandon(p.stop)
		case p.left:
			o.abandon(stopped{p.run.key, p.run.id})
		}
	}
	clear(o.pending)
	for _, r := range o.runs {
		o.abandon(stopped{r.key, r.id})
		o.drop(r, errLost.because(why))
	}
	for _, r := range o.waiting {
		r.fail(why)
	}
	o.waiting = nil
	o.later(why)
}

func (o *owner) abandon(s stopped) {
	if len(o.orphans) < maxOrphans {
		o.orphans = append(o.orphans, s)
	}
}

// later sets the next try, if there is to be one.
func (o *owner) later(why error) {
	var f *failure
	lasts := errors.As(why, &f) && f.lasts
	wait, more := o.backoff.Next()
	if lasts || !more {
		o.show(Idle, why.Error())
		o.client.log.Warn("no connection to OpenClaw until a turn asks for it", "reason", why.Error(), "error", logged(why))
		return
	}
	o.show(Waiting, why.Error())
	o.client.log.Info("no connection to OpenClaw", "again in", wait, "error", logged(why))
	o.timer = time.NewTimer(wait)
	o.retry = o.timer.C
}

// frame takes one frame.
func (o *owner) frame(f frame) {
	o.heard = time.Now()
	o.count(f.Seq)
	if f.Type == "res" {
		o.answered(f)
		return
	}
	ev, ok := f.run()
	if !ok {
		return
	}
	if r := o.runs[ev.RunID]; r != nil {
		o.tell(r, ev)
	}
}

// count notices events that never came: OpenClaw leaves some out for a slow reader. Texts mend themselves, since each
// event has all that there was before.
func (o *owner) count(seq int64) {
	if seq <= 0 {
		return
	}
	if missed := seq - o.seq - 1; o.seq > 0 && missed > 0 {
		if o.missed == 0 {
			o.client.log.Warn("OpenClaw leaves events out, as it does for a slow reader", "missed", missed, "after", o.seq)
		}
		o.missed += missed
		o.show(Connected, "")
	}
	o.seq = seq
}

// tell passes on what one event says about a run.
func (o *owner) tell(r *run, ev runEvent) {
	o.taken(r)
	if !r.heard && ev.State == "final" && len(ev.Message.Content) == 0 {
		o.clear(r)
		return
	}
	if !r.heard {
		r.heard = true
		r.give(sign{heard: true})
	}
	for _, s := range o.translator.next(ev) {
		if !r.give(sign{payload: s.Payload, size: sizeOf(s.Payload)}) {
			o.client.log.Warn("a run was stopped because its answer came faster than it was taken", "run", r.id)
			o.drop(r, errBehind)
			o.stop(stopped{r.key, r.id})
			return
		}
		if f, failed := s.Payload.(signal.Error); failed {
			o.client.log.Warn("a run of OpenClaw's failed", "run", r.id, "reason", f.Code, "error", shorten(f.Message))
		}
		if ends(s.Payload) {
			o.forget(r)
		}
	}
}

// clear is for a question that OpenClaw has put behind other work in its session: the run is over before it was heard of,
// and the answer would come in one whose id nobody knows. That work is left over from us, even if OpenClaw took it up by
// itself, as it does when it was killed in the middle of it. So it is stopped, the queue emptied, and the question asked
// once more.
func (o *owner) clear(r *run) {
	if r.again || o.hello.Protocol < 4 {
		o.drop(r, errStillBusy)
		return
	}
	r.again = true
	o.request("sessions.abort", sessionsAbort{r.key, true}, pending{run: r, clear: true, until: time.Now().Add(clearWithin)})
}

func (o *owner) forget(r *run) {
	delete(o.runs, r.id)
	o.translator.forget(r.id)
}

func (o *owner) taken(r *run) {
	if !r.taken {
		r.taken = true
		r.give(sign{})
	}
}

// drop ends a turn with an error.
func (o *owner) drop(r *run, err error) {
	o.forget(r)
	r.fail(err)
}

// answered takes a response.
func (o *owner) answered(f frame) {
	p, ok := o.pending[f.ID]
	if !ok {
		return // too late, or the second response to one request
	}
	delete(o.pending, f.ID)
	switch {
	case p.run == nil && !f.OK:
		o.client.log.Warn("OpenClaw did not stop a run", "run", p.stop.id, "error", f.Error)
	case p.run == nil:
	case p.clear && o.runs[p.run.id] == p.run:
		o.forget(p.run)
		o.send(p.run)
	case p.clear: // nobody listens any more
	case p.left && f.OK:
		o.stop(stopped{p.run.key, p.run.id})
	case o.runs[p.run.id] != p.run: // it is over already
	case f.OK:
		o.taken(p.run)
	default:
		o.client.log.Warn("OpenClaw refused a question", "run", p.run.id, "error", f.Error)
		o.drop(p.run, notSent(f.Error))
	}
}

// notSent says in words why a question was refused.
func notSent(r *reason) *failure {
	switch {
	case r.is("MISSING_SCOPE", "FORBIDDEN"):
		return errNoRights.because(r)
	case r.is("UNAVAILABLE"):
		return errStillBusy.because(r)
	}
	return errNotSent.because(r)
}

// chatSend are the parameters of a question.
type chatSend struct {
	SessionKey     string `json:"sessionKey"`
	Message        string `json:"message"`
	IdempotencyKey string `json:"idempotencyKey"`
	Thinking       string `json:"thinking,omitempty"`
	QueueMode      string `json:"queueMode,omitempty"`
}

// chatAbort are those of a stop.
type chatAbort struct {
	SessionKey string `json:"sessionKey"`
	RunID      string `json:"runId"`
}

// sessionsAbort are those of a clearing.
type sessionsAbort struct {
	Key         string `json:"key"`
	ClearQueued bool   `json:"clearQueued"`
}

// send asks the question. OpenClaw's usual way with a question for a session that is still busy is to give it to the run
// before, which would leave this one without an answer; whatever still runs in a session of ours is left over, so it is
// interrupted. Version 3 of the protocol does not know that word.
func (o *owner) send(r *run) {
	r.id = uuid.NewString() // never one that was used before: OpenClaw answers a key only once
	o.runs[r.id] = r
	params := chatSend{SessionKey: r.key, Message: r.text, IdempotencyKey: r.id, Thinking: r.thinking}
	if o.hello.Protocol >= 4 {
		params.QueueMode = "interrupt"
	}
	o.request("chat.send", params, pending{run: r, until: time.Now().Add(o.client.cfg.ConnectWithin + stopWithin)})
}

func (o *owner) stop(s stopped) {
	if !o.up {
		o.abandon(s)
		return
	}
	o.request("chat.abort", chatAbort{s.key, s.id}, pending{stop: s, until: time.Now().Add(stopWithin)})
}

// request sends one. A queue that is full is that of a connection which takes nothing any more.
func (o *owner) request(method string, params any, p pending) {
	o.lastID++
	id := strconv.Itoa(o.lastID)
	message, err := json.Marshal(request{"req", id, method, params})
	if err != nil {
		o.client.log.Error("a request to OpenClaw could not be written", "method", method, "error", err)
		return
	}
	o.pending[id] = p
	select {
	case o.link.out <- message:
	default:
		o.link.cancel()
	}
}

// check looks for what did not happen in time.
func (o *owner) check(now time.Time) {
	if !o.up {
		return
	}
	for id, p := range o.pending {
		if now.Before(p.until) {
			continue
		}
		delete(o.pending, id)
		switch {
		case p.run == nil:
			o.client.log.Warn("OpenClaw did not say that it stopped a run", "run", p.stop.id)
		case p.clear && o.runs[p.run.id] == p.run:
			o.drop(p.run, errStillBusy)
		case p.left:
			o.stop(stopped{p.run.key, p.run.id})
		}
	}
	if quiet := now.Sub(o.heard); quiet > 2*o.hello.tick() {
		o.client.log.Warn("OpenClaw has gone silent", "for", quiet.Round(time.Second))
		o.link.cancel()
	}
}

// end stops what runs and waits for the link.
func (o *owner) end() {
	o.look.Stop()
	o.calm()
	for _, r := range o.runs {
		o.stop(stopped{r.key, r.id})
		r.fail(errClosed)
	}
	for _, r := range o.waiting {
		r.fail(errClosed)
	}
	if o.link != nil && !o.up {
		o.link.cancel()
	}
	if o.link != nil {
		o.link.end()
	}
	o.show(Closed, errClosed.words)
}
