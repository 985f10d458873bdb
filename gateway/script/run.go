package script

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"vela/gateway/client"
)

// Result is what became of a script.
type Result struct {
	Name string
	Line int // of the step that failed, from 1; 0 when all passed
	Took time.Duration
	Err  error // why it failed, over several lines; nil when all passed
}

// Passed says whether the gateway did all that the script expects.
func (r Result) Passed() bool { return r.Err == nil }

// String is one line for a script that passed, and for one that failed all that a person needs to see why.
func (r Result) String() string {
	if r.Passed() {
		return fmt.Sprintf("PASS %s (%d ms)", r.Name, r.Took.Milliseconds())
	}
	return fmt.Sprintf("FAIL %s: line %d\n%s", r.Name, r.Line, indent(r.Err.Error()))
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// Gateway is where scripts are played.
type Gateway struct {
	Address string // as [client.ParseAddress] takes it
	Token   string // says who we are, where the gateway asks; goes with every connection
}

// Run plays a script against a gateway. It takes as long as the script
// waits and the gateway needs, ends early with ctx, and closes every connection.
func Run(ctx context.Context, s *Script, g Gateway) Result {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	p := &player{gateway: g, limit: defaultLimit, conns: map[string]*conn{}, bound: map[string]any{}}
	defer p.close()
	defer cancel()
	p.ctx = ctx
	for _, step := range s.steps {
		if err := step.do(ctx, p); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("stopped   %w", context.Cause(ctx))
			}
			return Result{s.Name, step.line, time.Since(began), p.explain(step, err)}
		}
	}
	return Result{Name: s.Name, Took: time.Since(began)}
}

// defaultLimit is how long an expectation may take before the first within. Only tests set it.
var defaultLimit = 2 * time.Second

// player is a script being played. One goroutine owns it; each connection has another, which only receives.
type player struct {
	ctx     context.Context // of the connections
	gateway Gateway
	limit   time.Duration // for each expectation
	conns   map[string]*conn
	bound   map[string]any // named values
	pass    []*pattern     // what may come at any place
	past    []string       // the last few messages
}

// conn is one connection. All but inbox belong to the player.
type conn struct {
	client   *client.Client
	tcp      net.Conn
	inbox    chan arrival
	received chan struct{} // closed when the receiver has ended
	end      error         // why nothing more arrives, once that has been taken from the inbox
	count    *count        // of the events; nil in version 1
}

// arrival is a message, or the end of the connection.
type arrival struct {
	raw      client.Raw
	envelope bool // of version 2
	err      error
}

// inboxSize bounds what waits for the script to look at it. When it is full the connection is not read any further.
const inboxSize = 4096

// attach makes a connection one of the script's and starts its receiver; close waits for it.
func (p *player) attach(name string, c *client.Client, tcp net.Conn) {
	if old := p.conns[name]; old != nil {
		<-old.received
	}
	k := &conn{client: c, tcp: tcp, inbox: make(chan arrival, inboxSize), received: make(chan struct{})}
	if c.Version() == 2 {
		k.count = new(count)
	}
	p.conns[name] = k
	go func() {
		defer close(k.received)
		k.receive(p.ctx)
	}()
}

// receive moves what arrives into the inbox until the connection ends.
func (k *conn) receive(ctx context.Context) {
	for {
		raw, err := k.client.ReceiveRaw(ctx)
		select {
		case k.inbox <- arrival{raw, k.count != nil, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// close ends what the script left open. The context of the receivers is done by now.
func (p *player) close() {
	for _, k := range p.conns {
		k.client.Drop()
		<-k.received
	}
}

// patience is how long what is no expectation may take: a short within is about the gateway's answers.
func (p *player) patience() time.Duration { return max(p.limit, defaultLimit) }

// conn is the connection of that name, which is missing only when the handshake was refused.
func (p *player) conn(name string) (*conn, error) {
	if k := p.conns[name]; k != nil {
		return k, nil
	}
	return nil, errors.New("there is no connection")
}

// next waits for the next arrival on a connection. It is false when nothing comes within the time.
func (p *player) next(ctx context.Context, name string, d time.Duration) (a arrival, ok bool) {
	k, err := p.conn(name)
	if err != nil {
		return arrival{err: err}, true
	}
	if k.end != nil {
		return arrival{err: k.end}, true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case a = <-k.inbox:
	case <-timer.C:
		return arrival{}, false
	case <-ctx.Done():
		return arrival{err: context.Cause(ctx)}, true
	}
	k.end = a.err
	p.note(name, "< "+a.String())
	if a.err == nil && k.count != nil {
		a.err = k.count.add(a.raw)
	}
	return a, true
}

// await is next, but for what may come at any place and is not wanted here.
func (p *player) await(ctx context.Context, name string, d time.Duration, wanted func(arrival) bool) (a arrival, ok bool) {
	for end := time.Now().Add(d); ; {
		a, ok = p.next(ctx, name, time.Until(end))
		if !ok || wanted != nil && wanted(a) || a.err != nil || !p.passes(a) {
			return a, ok
		}
	}
}

// passes says whether a message may come at any place.
func (p *player) passes(a arrival) bool {
	return slices.ContainsFunc(p.pass, func(pass *pattern) bool { return a.compare(pass, maps.Clone(p.bound)) == nil })
}

// send sends on a connection. An error there is how it ended, if that has arrived.
func (p *player) send(ctx context.Context, name string, how func(context.Context, *conn) error) error {
	k, err := p.conn(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	if err := how(ctx, k); err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return nil
}

// onWire writes bytes past the WebSocket library. A gateway may hang up in the middle of what it refuses, so an error is
// none of the script's; what the gateway does next is.
func (p *player) onWire(name, note string, data []byte) error {
	k, err := p.conn(name)
	if err != nil {
		return err
	}
	a, err := client.ParseAddress(p.gateway.Address)
	if err != nil {
		return err
	}
	if strings.HasPrefix(a.HTTP(""), "https") {
		return errors.New("bytes cannot be put on an encrypted wire: run this script against the gateway's http address")
	}
	p.note(name, note)
	_ = k.tcp.SetWriteDeadline(time.Now().Add(p.patience()))
	_, _ = k.tcp.Write(data)
	_ = k.tcp.SetWriteDeadline(time.Time{})
	return nil
}
