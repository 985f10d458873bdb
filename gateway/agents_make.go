package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vela/turn"
	"vela/turn/agent"
	"vela/turn/anthropic"
	"vela/turn/dispatch"
	"vela/turn/echo"
	"vela/turn/openai"
	"vela/turn/openclaw"
	"vela/turn/stream"
	"vela/turn/tool"
)

// maker makes agents.
type maker struct {
	File
	*agents
	log   *slog.Logger
	files map[string][]tool.Tool // by folder: two agents that edit the same files must not do it at once
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
		a.missing(fmt.Errorf("%s: key_env: %w", m.at(s.Common.line), err))
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
	tools, err := m.tools(a.name, s.Tools)
	switch {
	case errors.Is(err, errNoKey):
		a.missing(err)
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

// tools are those of the agent of a name.
func (m *maker) tools(agent string, t toolsOf) (tool.Caller, error) {
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
		server, err := m.use(name, agent)
		if err != nil {
			return nil, err
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
