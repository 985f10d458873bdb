package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"vela/gateway/discovery"
	"vela/gateway/source"
	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/openai"
	"vela/turn/openclaw"
)

// Where vela.yaml names no agent, those that run on this machine are offered: a person may choose one, and nobody else does.
// Each has its name from the beginning, so that a session may choose one that is started later; it shows among the agents
// once it has been there. What it is just then, such as its model, is known to the sources, which look for it again and again.

// offers are the agents that are offered.
type offers struct {
	look    func(context.Context) []source.Found
	sources *source.Sources
	running atomic.Bool // the sources are: what they know counts
	log     *slog.Logger
}

// place is where an agent is, and what it takes to ask it.
type place struct{ url, model, key string }

// find looks a service up among what is known. Its error says that it is not there, in words for whoever asked.
func (o *offers) find(ctx context.Context, id, label string) (place, error) {
	if o.running.Load() {
		if s, key, err := o.sources.Access(ctx, id); err == nil && s.State != source.Unavailable {
			return place{s.URL, s.Model, key}, nil
		}
	} else {
		for _, f := range o.look(ctx) {
			if f.ID == id && f.Available {
				return place{url: f.URL, model: append(f.Models, "")[0]}, nil
			}
		}
	}
	return place{}, notThere(label + " does not run on this machine now. Start it, or choose another agent.")
}

// again has what runs here looked for: what somebody asks for may have come, or gone, a moment ago.
func (o *offers) again(ctx context.Context) {
	if o.running.Load() {
		_, _ = o.sources.Scan(ctx) // whoever looks something up sees what it found
	}
}

// seen says whether an agent has ever been there: others are not worth a line.
type seen struct{ atomic.Bool }

func (s *seen) note(err error) error {
	if err == nil {
		s.Store(true)
	}
	return err
}

// offer adds the agents that are offered behind those that there are.
func (a *agents) offer(o *offers) error {
	for _, s := range []struct{ name, id, label string }{
		{"lm-studio", discovery.LMStudio, "LM Studio"}, {"ollama", discovery.Ollama, "Ollama"},
	} {
		m := &offeredModel{offers: o, id: s.id, name: s.name, label: s.label}
		a.list = append(a.list, &made{
			name: s.name, kind: "openai", label: s.label + " on this machine", ponder: pondering, filler: filler, engine: m,
			seen: &m.seen, probe: func(ctx context.Context) error { _, err := m.find(ctx); return err },
		})
		a.stops = append(a.stops, m.close)
	}
	return a.offerClaw(o)
}

// offeredModel is an agent made of the model that a server on this machine has.
type offeredModel struct {
	*offers
	id, name, label string
	seen            seen

	mu    sync.Mutex
	at    place // of the agent
	agent *agent.Agent
	model *openai.Model
}

func (m *offeredModel) find(ctx context.Context) (place, error) {
	at, err := m.offers.find(ctx, m.id, m.label)
	if err == nil && at.model == "" {
		err = notThere(m.label + " has no model. Load one there, or choose another agent.")
	}
	return at, m.seen.note(err)
}

// Run implements [turn.Engine].
func (m *offeredModel) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		at, err := m.find(ctx)
		if err != nil {
			m.again(ctx)
			at, err = m.find(ctx)
		}
		var a *agent.Agent
		if err == nil {
			a, err = m.make(at)
		}
		if err != nil {
			if ctx.Err() == nil {
				yield(nil, err)
			}
			return
		}
		for p, err := range a.Run(ctx, req) {
			if !yield(p, m.why(ctx, err)) {
				return
			}
		}
	}
}

// why is an error of the model's, or that its server has gone, if that is why.
func (m *offeredModel) why(ctx context.Context, err error) error {
	var coded interface{ Code() protocol.Code }
	if !errors.As(err, &coded) || coded.Code() != protocol.CodeAgentUnavailable {
		return err
	}
	m.again(ctx)
	if _, gone := m.find(ctx); gone != nil {
		return gone
	}
	return err
}

// make is the agent for a place: the one that there is, unless it is for another.
func (m *offeredModel) make(at place) (*agent.Agent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent != nil && m.at == at {
		return m.agent, nil
	}
	model, err := openai.New(openai.Config{BaseURL: at.url + "/v1", Key: at.key, Model: at.model, AgentID: m.name})
	if err != nil {
		return nil, fmt.Errorf("gateway: %s: %w", m.name, err)
	}
	a, err := agent.New(agent.Config{ID: m.name, Model: model, Log: m.log.With("component", "agent")})
	if err != nil {
		model.Close()
		return nil, fmt.Errorf("gateway: %s: %w", m.name, err)
	}
	if m.model != nil {
		m.model.Close() // those who ask it still are not disturbed
	}
	m.at, m.agent, m.model = at, a, model
	return a, nil
}

func (m *offeredModel) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.model != nil {
		m.model.Close()
	}
}

// offeredClaw is the OpenClaw of this machine. It is not connected to before somebody asks it.
type offeredClaw struct {
	*offers
	engine turn.Engine
	seen   seen
	wanted chan struct{} // closed when somebody does
	once   sync.Once
}

func (a *agents) offerClaw(o *offers) error {
	c := &offeredClaw{offers: o, wanted: make(chan struct{})}
	client, err := openclaw.New(openclaw.Config{URL: "ws://" + discovery.OpenClawAt, Token: c.token, Log: o.log.With("component", "openclaw")})
	if err != nil {
		return err
	}
	if c.engine, err = openclaw.NewEngine(client, openclaw.EngineConfig{}); err != nil {
		return err
	}
	a.tasks = append(a.tasks, func(ctx context.Context) {
		select {
		case <-c.wanted:
			_ = client.Run(ctx) // it ends with ctx alone
		case <-ctx.Done():
		}
	})
	a.list = append(a.list, &made{
		name: "openclaw", kind: "openclaw", label: "OpenClaw on this machine", ponder: pondering, filler: filler, engine: c,
		seen: &c.seen, probe: c.find,
	})
	return nil
}

// errNoClawToken is for whoever chose an OpenClaw whose token nobody knows.
const errNoClawToken notThere = "OpenClaw's token is not known here. Set it in the list of sources, or choose another agent."

func (c *offeredClaw) find(ctx context.Context) error {
	_, err := c.offers.find(ctx, discovery.OpenClaw, "OpenClaw")
	if err == nil {
		_, err = c.token()
	}
	return c.seen.note(err)
}

// token is the one that a person gave, or else that of OpenClaw's own file.
func (c *offeredClaw) token() (string, error) {
	key := ""
	if c.running.Load() {
		_, key, _ = c.sources.Access(context.Background(), discovery.OpenClaw)
	}
	if key == "" {
		found, err := c.sources.Token()
		if err != nil {
			return "", errNoClawToken
		}
		key = found
	}
	return key, nil
}

// Run implements [turn.Engine].
func (c *offeredClaw) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		err := c.find(ctx)
		if err != nil {
			c.again(ctx)
			err = c.find(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			yield(nil, err)
		default:
			c.once.Do(func() { close(c.wanted) })
			c.engine.Run(ctx, req)(yield)
		}
	}
}
