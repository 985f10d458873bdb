package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"vela/session"
	"vela/turn"
	"vela/turn/echo"
	"vela/turn/tool"
)

// agents are the agents of a [File], made once and shared by all sessions.
type agents struct {
	list    []*made
	servers []*toolServer           // of MCP, in the order of the file
	tasks   []func(context.Context) // run beside the gateway
	stops   []func()                // called in the reverse order when nobody asks any agent any more

	recent recent[AgentsReport]
}

// made is one agent.
type made struct {
	name, kind, label string
	ponder, filler    []string
	fillerAfter       time.Duration
	engine            turn.Engine
	probe             func(context.Context) error // nil: it is always there
	tools             func() []string             // nil: none
	seen              *seen                       // nil: it shows whether it has ever been there or not
}

// makeAgents makes the agents of the file, or the built-in one where it has none. An agent that cannot be asked, because
// the variable with its key is empty, is made all the same: it says so when it is asked.
func makeAgents(f File, log *slog.Logger) (*agents, error) {
	m := &maker{File: f, log: log, agents: &agents{recent: newRecent[AgentsReport]()}, files: map[string][]tool.Tool{}}
	if len(f.agents) == 0 {
		m.File.agents = []spec{&echoAgent{Common: agentHead{name: echo.AgentID, Kind: "echo", Label: echo.Label}}}
	}
	m.makeServers()
	for _, s := range m.File.agents {
		if err := m.make(s); err != nil {
			m.close()
			return nil, fmt.Errorf("%s: agent %s: %w", f.at(s.head().line), s.head().name, err)
		}
	}
	m.fallbacks()
	return m.agents, nil
}

// named are the agents as a session knows them.
func (a *agents) named() []session.NamedEngine {
	list := make([]session.NamedEngine, 0, len(a.list))
	for _, m := range a.list {
		list = append(list, session.NamedEngine{Name: m.name, Engine: m.engine, Ponder: m.ponder, Filler: m.filler, FillerAfter: m.fillerAfter})
	}
	return list
}

// start runs what agents need beside the gateway, and whatever else it is given. What it returns ends that, and is called when no session runs any
// more: agents outlive those who ask them.
func (a *agents) start(ctx context.Context, more ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	for _, task := range slices.Concat(a.tasks, more) {
		tasks.Go(func() { task(ctx) })
	}
	return func() {
		cancel()
		tasks.Wait()
		a.close()
	}
}

// close lets go of what the agents hold. No session runs any more.
func (a *agents) close() {
	for i := len(a.stops) - 1; i >= 0; i-- {
		a.stops[i]()
	}
	a.stops = nil
}

// first is the agent that answers clients that do not ask. Whether it is there is not looked at: that takes time.
func (a *agents) first() Engine {
	return Engine{Name: a.list[0].name, Label: a.list[0].label, Available: true}
}
