package source

import (
	"context"
	"time"
	"unicode/utf8"

	"vela/protocol/signal"
)

// maxPrompts bounds how many prompts a source answers at a time.
const maxPrompts = 8

// child is one source at work: its connection and its prompts, each with a goroutine. The last thing that each of these
// does is to say that it has ended.
type child struct {
	id      string
	sources *Sources
	gate    *gate
	ctx     context.Context
	cancel  context.CancelFunc
	gone    chan struct{} // closed when all have ended

	// Owned by the keeper.
	working        int // goroutines that have not ended
	leaving        bool
	again          bool // another one is to follow
	prompts        map[string]context.CancelFunc
	why            string // what it says of itself
	taken, dropped uint64 // that the keeper knows of
}

// newChild connects in the background.
func newChild(ctx context.Context, s *Sources, id string) *child {
	c := &child{id: id, sources: s, gate: newGate(), gone: make(chan struct{}), working: 1, prompts: map[string]context.CancelFunc{}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		c.listen()
		s.tell(func(k *keeper) {
			c.end()
			k.ended(c)
		})
	}()
	return c
}

// end has everything end. It belongs to the keeper.
func (c *child) end() {
	c.leaving = true
	c.cancel()
}

// listen keeps the connection.
func (c *child) listen() {
	d := &dialer{sources: c.sources, child: c}
	Link{
		Dial: d.dial,
		Hear: func(message []byte) {
			bad := !utf8.Valid(message)
			for _, r := range d.feed.Parse(message) {
				bad = bad || r.Source == signal.SourceRaw
				c.take(r)
			}
			if bad {
				c.gate.blame()
			}
		},
		Show: c.show,
	}.Run(c.ctx)
}

// take is where every signal of a source leaves.
func (c *child) take(r signal.Raw) {
	c.gate.count()
	c.sources.cfg.Take(c.id, r)
}

func (c *child) show(state State, why string) {
	c.sources.tell(func(k *keeper) { k.show(c, state, why) })
}

// ask begins a prompt. It belongs to the keeper.
func (c *child) ask(s Source, key, text string) string {
	id := c.sources.cfg.NewID()
	ctx, cancel := context.WithCancel(c.ctx)
	c.prompts[id] = cancel
	c.working++
	go func() {
		defer cancel()
		failure := c.answer(ctx, s, key, id, text)
		c.sources.tell(func(k *keeper) { k.answered(c, id, failure) })
	}()
	return id
}

// limited is a connection of which no more is heard than the gate lets through.
type limited struct {
	Conn
	gate *gate
}

func (l limited) Next(ctx context.Context) ([]byte, error) {
	for {
		message, err := l.Conn.Next(ctx)
		if err != nil {
			return nil, err
		}
		passes, rest := l.gate.admit(len(message))
		if passes {
			return message, nil
		}
		if rest > 0 && !pause(ctx, rest) {
			return nil, context.Cause(ctx)
		}
	}
}

// within runs something that does not depend on the context of what ends, for a moment.
func within(d time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}
