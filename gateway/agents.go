package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/anthropic"
	"vela/turn/dispatch"
	"vela/turn/echo"
	"vela/turn/mcp"
	"vela/turn/openai"
	"vela/turn/openclaw"
	"vela/turn/stream"
	"vela/turn/tool"
)

// agents are the agents of a [File], made once and shared by all sessions.
type agents struct {
	list  []*made
	tasks []func(context.Context) // run beside the gateway
	stops []func()                // called in the reverse order when nobody asks any agent any more

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

// makeAgents makes the agents of the file, or the built-in one where it has none. An agent that cannot be asked, because
// the variable with its key is empty, is made all the same: it says so when it is asked.
func makeAgents(f File, log *slog.Logger) (*agents, error) {
	m := &maker{File: f, log: log, agents: &agents{recent: newRecent[AgentsReport]()}, servers: map[string]tool.Caller{}, files: map[string][]tool.Tool{}}
	if len(f.agents) == 0 {
		m.File.agents = []spec{&echoAgent{Common: agentHead{name: echo.AgentID, Kind: "echo", Label: echo.Label}}}
	}
	for _, s := range m.File.agents {
		if err := m.make(s); err != nil {
			m.close()
			return nil, fmt.Errorf("%s: agent %s: %w", f.at(s.head().line), s.head().name, err)
		}
	}
	m.fallbacks()
	return m.agents, nil
}

// maker makes agents.
type maker struct {
	File
	*agents
	log     *slog.Logger
	servers map[string]tool.Caller // of MCP, as far as agents use them
	files   map[string][]tool.Tool // by folder: two agents that edit the same files must not do it at once
}

func (m *maker) make(s spec) error {
	h := s.head()
	a := &made{name: h.name, kind: h.Kind, label: h.Label, ponder: pondering, filler: filler, fillerAfter: time.Duration(h.FillerAfter)}
	if a.label == "" {
		a.label = h.name
	}
	if h.Ponder != nil {
		a.ponder = *h.Ponder
	}
	if h.Filler != nil {
		a.filler = *h.Filler
	}
	m.list = append(m.list, a)
	switch s := s.(type) {
	case *modelAgent:
		return m.model(a, s)
	case *openclawAgent:
		return m.openclaw(a, s)
	case *dispatchAgent:
		return m.dispatch(a, s)
	}
	a.engine = echo.Engine{}
	if h.Ponder == nil {
		a.ponder = nil // it is never silent
	}
	return nil
}

// pondering are the built-in phrases for an agent that is silent.
var pondering = []string{
	"Thinking", "Looking into it", "Still on it", "Working it out", "One moment", "Putting it together", "Nearly there",
}

// filler is the built-in phrases that such an agent's listener is told.
var filler = []string{"One moment.", "Still working on it.", "This takes a little longer."}

// prober is what both vendors' models can do beside answering.
type prober interface {
	agent.Model
	Probe(context.Context) error
	Close()
}

func (m *maker) model(a *made, s *modelAgent) error {
	key, err := secret(s.KeyEnv)
	if err != nil {
		a.missing(err)
		return nil
	}
	timeouts := stream.Timeouts{
		Connect: time.Duration(s.Timeouts.Connect), First: time.Duration(s.Timeouts.FirstToken), Between: time.Duration(s.Timeouts.Between),
	}
	var model prober
	if s.Common.Kind == "openai" {
		model, err = openai.New(openai.Config{
			BaseURL: s.URL, Key: key, Model: s.Model, Temperature: s.Temperature, MaxTokens: s.MaxTokens, Header: headers(s.Headers),
			AgentID: a.name, Timeouts: timeouts,
		})
	} else {
		model, err = anthropic.New(anthropic.Config{
			BaseURL: s.URL, Key: key, Model: s.Model, Temperature: s.Temperature, MaxTokens: s.MaxTokens, Header: headers(s.Headers),
			Thinking: s.Thinking, AgentID: a.name, Timeouts: timeouts,
		})
	}
	if err != nil {
		return err
	}
	m.stops = append(m.stops, model.Close)
	system, err := m.system(s)
	if err != nil {
		return err
	}
	tools, err := m.tools(s.Tools)
	switch {
	case errors.Is(err, errNoKey):
		a.missing(errNoKey)
		return nil
	case err != nil:
		return err
	}
	rules := tool.Rules{Tools: map[string]tool.Rule{}}
	for name, rule := range s.Tools.Rules {
		rules.Tools[name] = tool.Rule(rule)
	}
	a.engine, err = agent.New(agent.Config{
		ID: a.name, Model: model, Tools: tools, Rules: rules, System: system, MaxRounds: s.Rounds,
		MaxTime: time.Duration(s.Time), Budget: s.History, Log: m.log.With("component", "agent"),
	})
	a.probe = model.Probe
	a.tools = func() []string { return names(tools, rules) }
	return err
}

func headers(of map[string]string) http.Header {
	h := http.Header{}
	for name, value := range of {
		h.Set(name, value)
	}
	return h
}

// names are the tools that a model is told of.
func names(tools tool.Caller, rules tool.Rules) []string {
	var list []string
	for _, d := range tools.Definitions() {
		if rules.For(d.Name) != tool.Deny {
			list = append(list, d.Name)
		}
	}
	return list
}

// maxSystem bounds a system prompt, in bytes.
const maxSystem = 256 << 10

func (m *maker) system(s *modelAgent) (string, error) {
	if s.SystemFile == "" {
		return s.System, nil
	}
	path, err := m.path(s.SystemFile)
	if err != nil {
		return "", fmt.Errorf("system_file: %w", err)
	}
	text, err := readRegular(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("system_file: %w", err)
	case len(text) > maxSystem:
		return "", errors.New("system_file is larger than 256 KiB")
	}
	return string(text), nil
}

// readRegular reads a file. Of anything else, such as a pipe, there may be no end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// path is a path of the file's: a relative one begins where the file lies, and one with ~/ at home.
func (m *maker) path(name string) (string, error) { return pathFrom(m.dir, name) }

// pathFrom is where a path of the file leads that lies in dir.
func pathFrom(dir, name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("a path begins with ~/, and there is no home: %w", err)
		}
		return filepath.Join(home, rest), nil
	}
	if filepath.IsAbs(name) {
		return name, nil
	}
	return filepath.Join(dir, name), nil
}

func (m *maker) tools(t toolsOf) (tool.Caller, error) {
	var own []tool.Tool
	if t.Root != "" {
		dir, err := m.path(t.Root)
		if err != nil {
			return nil, fmt.Errorf("tools.root: %w", err)
		}
		files, err := m.filesIn(dir)
		if err != nil {
			return nil, fmt.Errorf("tools.root: %w", err)
		}
		own = files[:len(files)-1]
		if t.Bash {
			own = files
		}
	}
	set, err := tool.NewSet(own...)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	callers := []tool.Caller{set}
	for _, name := range t.MCP {
		server, err := m.server(name)
		if err != nil {
			return nil, fmt.Errorf("mcp server %s: %w", name, err)
		}
		callers = append(callers, server)
	}
	return tool.Join(callers...), nil
}

// filesIn are the tools for a folder, the shell last. Agents that work in the same one share them.
func (m *maker) filesIn(dir string) ([]tool.Tool, error) {
	dir = filepath.Clean(dir)
	if tools, ok := m.files[dir]; ok {
		return tools, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() { _ = root.Close() }) // every file has been closed: there is nothing to lose
	m.files[dir] = append(tool.Files(root, 0), tool.Bash(root, 0))
	return m.files[dir], nil
}

// server is an MCP server. Agents that use the same one share it.
func (m *maker) server(name string) (tool.Caller, error) {
	if s, ok := m.servers[name]; ok {
		return s, nil
	}
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
	s, err := mcp.New(cfg)
	if err != nil {
		return nil, err
	}
	m.servers[name] = s
	m.tasks = append(m.tasks, func(ctx context.Context) { _ = s.Run(ctx) }) // it ends with ctx alone
	return s, nil
}

func (m *maker) openclaw(a *made, s *openclawAgent) error {
	token := func() (string, error) { return secret(s.TokenEnv) }
	if s.TokenEnv == "" {
		if strings.HasPrefix(s.URL, "ws") && !openclaw.Local(s.URL) {
			return errors.New("token_env is missing: the token of this machine's OpenClaw is for no other")
		}
		token = func() (string, error) { return openclaw.LocalToken(os.Getenv) }
	}
	client, err := openclaw.New(openclaw.Config{URL: s.URL, Token: token, AnswerWithin: time.Duration(s.Timeout), Log: m.log.With("component", "openclaw")})
	if err != nil {
		return err
	}
	m.tasks = append(m.tasks, func(ctx context.Context) { _ = client.Run(ctx) }) // it ends with ctx alone
	a.engine, err = openclaw.NewEngine(client, openclaw.EngineConfig{Agent: s.Agent, Thinking: s.Thinking})
	a.probe = func(ctx context.Context) error { return connected(ctx, client) }
	return err
}

// connected waits until it is clear whether OpenClaw is there.
func connected(ctx context.Context, c *openclaw.Client) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		s := c.Status()
		switch s.Phase {
		case openclaw.Connected:
			return nil
		case openclaw.Connecting:
		default:
			return notThere(s.Why)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return notThere("OpenClaw has not answered yet.")
		}
	}
}

func (m *maker) dispatch(a *made, s *dispatchAgent) error {
	dir, err := m.path(s.Dir)
	if err != nil {
		return fmt.Errorf("dir: %w", err)
	}
	cfg := dispatch.Config{Dir: dir, Answer: s.Answer, Timeout: time.Duration(s.Timeout), Log: m.log.With("component", "dispatch")}
	for _, step := range s.Steps {
		cfg.Steps = append(cfg.Steps, dispatch.Step(step))
	}
	e, err := dispatch.New(cfg)
	if err != nil {
		return err
	}
	a.engine = e
	a.probe = func(context.Context) error { return e.Check() }
	return nil
}

// missing makes an agent that only says what it lacks.
func (a *made) missing(why error) {
	a.engine = absent{why}
	a.probe = func(context.Context) error { return why }
}

// absent is an agent that cannot be asked.
type absent struct{ why error }

// Run implements [turn.Engine].
func (a absent) Run(ctx context.Context, _ turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		if ctx.Err() == nil {
			yield(nil, a.why)
		}
	}
}

// notThere says why an agent is not there, in words for everybody.
type notThere string

func (n notThere) Error() string     { return string(n) }
func (notThere) Code() protocol.Code { return protocol.CodeAgentUnavailable }

// errNoKey does not name the variable: what stands in the file may be a key by mistake.
const errNoKey notThere = "An environment variable that vela.yaml names for a key is not set. Set it and start the gateway again."

// secret is what an environment variable holds; none is asked for with an empty name.
func secret(variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	if value := os.Getenv(variable); value != "" {
		return value, nil
	}
	return "", errNoKey
}

// fallbacks puts the engines together, after all of them have been made.
func (m *maker) fallbacks() {
	engines := map[string]turn.Engine{}
	for _, a := range m.list {
		engines[a.name] = a.engine
	}
	for i, s := range m.File.agents {
		if len(s.head().Fallback) == 0 {
			continue
		}
		a := m.list[i]
		chain := []turn.Engine{a.engine}
		for _, name := range s.head().Fallback {
			chain = append(chain, engines[name])
		}
		log := m.log.With("component", "agents", "agent", a.name)
		a.engine = turn.Fallback(func(err error) { log.Warn("the agent failed; the next one is asked", "error", err) }, chain...)
	}
}

// named are the agents as a session knows them.
func (a *agents) named() []session.NamedEngine {
	list := make([]session.NamedEngine, 0, len(a.list))
	for _, m := range a.list {
		list = append(list, session.NamedEngine{Name: m.name, Engine: m.engine, Ponder: m.ponder, Filler: m.filler, FillerAfter: m.fillerAfter})
	}
	return list
}

// start runs what agents need beside the gateway. What it returns ends that, and is called when no session runs any
// more: agents outlive those who ask them.
func (a *agents) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	for _, task := range a.tasks {
		tasks.Go(func() { task(ctx) })
	}
	return func() {
		cancel()
		tasks.Wait()
		a.close()
	}
}

// Probe asks every agent whether it is there, which takes up to 3 s. It is for a gateway that does not run.
func (g *Gateway) Probe(ctx context.Context) AgentsReport {
	defer g.agents.start(ctx)()
	return g.agents.report(ctx)
}

// close lets go of what the agents hold. No session runs any more.
func (a *agents) close() {
	for i := len(a.stops) - 1; i >= 0; i-- {
		a.stops[i]()
	}
	a.stops = nil
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

// first is the agent that answers clients that do not ask. Whether it is there is not looked at: that takes time.
func (a *agents) first() Engine {
	return Engine{Name: a.list[0].name, Label: a.list[0].label, Available: true}
}
