package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"vela/protocol"
	"vela/turn/openclaw"
)

// AgentReport is one agent as /api/agents shows it. Nothing in it names a path, an address or a key of the host.
type AgentReport struct {
	Name      string   `json:"name"`
	Label     string   `json:"label"`
	Kind      string   `json:"kind"`
	Available bool     `json:"available"`
	Why       string   `json:"why,omitempty"` // it is not available, and what to do
	Tools     []string `json:"tools"`

	Cause error `json:"-"` // the same as Why, for whoever runs the gateway
}

// AgentsReport is what /api/agents answers.
type AgentsReport struct {
	Default string        `json:"default"`
	Agents  []AgentReport `json:"agents"`
}

// Probe asks every agent whether it is there, which takes up to 3 s, and meanwhile every MCP server of the file, which takes up
// to 10. It is for a gateway that does not run.
func (g *Gateway) Probe(ctx context.Context) (agents AgentsReport, servers []Engine) {
	defer g.agents.start(ctx, g.agents.unused()...)()
	var asked sync.WaitGroup
	asked.Go(func() { servers = g.agents.probeServers(ctx) })
	agents = g.agents.report(ctx)
	asked.Wait()
	return agents, servers
}

// probeTime bounds how long an agent is asked whether it is there.
const probeTime = 3 * time.Second

// lately is what [agents.report] has found in the last seconds. Callers wait for the one that asks, which takes up to 3 s.
func (a *agents) lately(ctx context.Context) AgentsReport { return a.recent.lately(ctx, a.report) }

// report asks all agents at once whether they are there. One that is only offered, and has never been there, is left out.
func (a *agents) report(ctx context.Context) AgentsReport {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	r := AgentsReport{Default: a.list[0].name, Agents: make([]AgentReport, len(a.list))}
	var asked sync.WaitGroup
	for i, m := range a.list {
		asked.Go(func() { r.Agents[i] = m.report(ctx) })
	}
	asked.Wait()
	shown := r.Agents[:0]
	for i, m := range a.list {
		if m.seen == nil || m.seen.Load() {
			shown = append(shown, r.Agents[i])
		}
	}
	r.Agents = shown
	return r
}

func (m *made) report(ctx context.Context) AgentReport {
	r := AgentReport{Name: m.name, Label: m.label, Kind: m.kind, Available: true, Tools: []string{}}
	if m.probe != nil {
		if err := m.probe(ctx); err != nil {
			r.Available, r.Why, r.Cause = false, publicly(err), err
		}
	}
	if m.tools != nil {
		r.Tools = append(r.Tools, m.tools()...)
	}
	return r
}

// publicly is what everybody may know of why an agent is not there.
func publicly(err error) string {
	var known interface {
		error
		Code() protocol.Code
	}
	if errors.As(err, &known) {
		return known.Error()
	}
	return "It is not there. Run vela engines to see why."
}

// connected waits until it is clear whether OpenClaw is there.
func connected(ctx context.Context, c *openclaw.Client) error {
	return settled(ctx, func() (bool, error) {
		switch s := c.Status(); s.Phase {
		case openclaw.Connected:
			return true, nil
		case openclaw.Connecting:
			return false, nil
		default:
			return true, notThere(s.Why)
		}
	}, notThere("OpenClaw has not answered yet."))
}

// settled waits until it is clear whether something is there that is being connected to, and why not. It returns late where
// ctx ends before that.
func settled(ctx context.Context, look func() (clear bool, why error), late error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if clear, why := look(); clear {
			return why
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return late
		}
	}
}
