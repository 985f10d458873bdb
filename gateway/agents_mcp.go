package gateway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"vela/turn/mcp"
	"vela/turn/tool"
)

// toolServer is one MCP server of a [File]. Agents that use the same one share it.
type toolServer struct {
	name  string
	tools *mcp.Server
	why   error    // it cannot be reached at all; tools is nil then
	users []string // agents; it runs where there are any
}

// makeServers makes all servers of the file, in its order, and starts none. One whose key is not set stops nobody who does
// not use it.
func (m *maker) makeServers() {
	names := slices.SortedFunc(maps.Keys(m.mcp), func(a, b string) int { return cmp.Compare(m.mcp[a].line, m.mcp[b].line) })
	for _, name := range names {
		s := &toolServer{name: name}
		if s.tools, s.why = m.makeServer(name); s.why != nil {
			s.why = fmt.Errorf("%s: mcp server %s: %w", m.at(m.mcp[name].line), name, s.why)
		}
		m.agents.servers = append(m.agents.servers, s)
	}
}

func (m *maker) makeServer(name string) (*mcp.Server, error) {
	c := m.mcp[name]
	key, err := secret(c.KeyEnv)
	if err != nil {
		return nil, err
	}
	cfg := mcp.Config{Name: name, URL: c.URL, Header: headers(c.Headers), Dir: m.dir, Log: m.log.With("component", "mcp")}
	if len(c.Command) > 0 {
		cfg.Command, cfg.Args = c.Command[0], c.Command[1:]
	}
	if key != "" {
		cfg.Header.Set("Authorization", "Bearer "+key)
	}
	for _, variable := range c.Env {
		value, err := secret(variable)
		if err != nil {
			return nil, err
		}
		cfg.Env = append(cfg.Env, variable+"="+value)
	}
	return mcp.New(cfg)
}

// use is the tools of a server for an agent.
func (m *maker) use(name, agent string) (tool.Caller, error) {
	i := slices.IndexFunc(m.agents.servers, func(s *toolServer) bool { return s.name == name }) // the file was checked: it is there
	s := m.agents.servers[i]
	if s.why != nil {
		return nil, s.why
	}
	if len(s.users) == 0 {
		m.tasks = append(m.tasks, s.run)
	}
	s.users = append(s.users, agent)
	return s.tools, nil
}

// run keeps the connection to the server.
func (s *toolServer) run(ctx context.Context) { _ = s.tools.Run(ctx) } // it ends with ctx alone

// unused runs the servers that no agent uses, for whoever wants to know whether they are there.
func (a *agents) unused() []func(context.Context) {
	var all []func(context.Context)
	for _, s := range a.servers {
		if len(s.users) == 0 && s.why == nil {
			all = append(all, s.run)
		}
	}
	return all
}

// serverTime bounds how long it is waited for an MCP server: one that a package runner starts takes some seconds.
const serverTime = 10 * time.Second

// probeServers waits until it is clear of each server whether it is there. All of them run.
func (a *agents) probeServers(ctx context.Context) []Engine {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	found := make([]Engine, len(a.servers))
	var asked sync.WaitGroup
	for i, s := range a.servers {
		asked.Go(func() { found[i] = s.probe(ctx) })
	}
	asked.Wait()
	return found
}

func (s *toolServer) probe(ctx context.Context) Engine {
	e := Engine{Name: s.name, Label: "used by " + strings.Join(s.users, ", ")}
	if len(s.users) == 0 {
		e.Label = "no agent uses it: name it in tools.mcp of one"
	}
	e.Cause = s.why
	if e.Cause == nil {
		e.Cause = s.connected(ctx)
	}
	if e.Available = e.Cause == nil; e.Available {
		e.Label = "with " + toolNames(s.tools.Definitions()) + ", " + e.Label
		return e
	}
	e.Why = publicly(e.Cause)
	return e
}

// shownTools bounds how many tools of a server are named.
const shownTools = 8

// toolNames is the names of a server's tools, as rules take them.
func toolNames(tools []tool.Definition) string {
	if len(tools) == 0 {
		return "no tools"
	}
	var names []string
	for _, t := range tools[:min(len(tools), shownTools)] {
		names = append(names, t.Name)
	}
	text := strings.Join(names, " ")
	if more := len(tools) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// connected waits until it is clear whether the server is there.
func (s *toolServer) connected(ctx context.Context) error {
	return settled(ctx, func() (bool, error) {
		now := s.tools.Status()
		return now.There || now.Why != nil, now.Why
	}, fmt.Errorf("no answer within %v (is it a server of MCP? One that has to be fetched first takes longer)", serverTime))
}
