package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// spec is one agent as the file has it.
type spec interface {
	head() *agentHead
	check(File) error
}

// agentHead is what every agent has.
type agentHead struct {
	name string
	line int

	Kind     string   `yaml:"kind"`
	Label    string   `yaml:"label"`
	Fallback []string `yaml:"fallback"` // who answers in its place when it fails before its first word
	Ponder   *phrases `yaml:"ponder"`   // nil: the built-in ones

	Filler      *phrases `yaml:"filler"`       // said where answers are spoken; nil: the built-in ones
	FillerAfter duration `yaml:"filler_after"` // of silence
}

// phrases are shown, or said, while an agent is silent: false for none, or a list.
type phrases []string

// UnmarshalYAML reads false, or a list.
func (p *phrases) UnmarshalYAML(node ast.Node) error {
	if b, ok := node.(*ast.BoolNode); ok && !b.Value {
		*p = phrases{}
		return nil
	}
	var list []string
	if err := yaml.NodeToValue(node, &list); err != nil || len(list) == 0 {
		return fmt.Errorf("line %d: ponder and filler are each false, or a list of phrases", lineOf(node))
	}
	*p = list
	return nil
}

// modelAgent is an agent of the kinds openai and anthropic: a model, and what it may do.
type modelAgent struct {
	Common      agentHead         `yaml:",inline"`
	URL         string            `yaml:"url"`
	Model       string            `yaml:"model"`
	KeyEnv      string            `yaml:"key_env"`
	Headers     map[string]string `yaml:"headers"`
	System      string            `yaml:"system"`
	SystemFile  string            `yaml:"system_file"`
	Temperature *float64          `yaml:"temperature"`
	MaxTokens   int               `yaml:"max_tokens"`
	Thinking    int               `yaml:"thinking"` // tokens that it may think; anthropic only
	Tools       toolsOf           `yaml:"tools"`
	Rounds      int               `yaml:"rounds"`
	Time        duration          `yaml:"time"`
	History     int               `yaml:"history"` // tokens
	Timeouts    timeoutsOf        `yaml:"timeouts"`
}

type timeoutsOf struct {
	Connect    duration `yaml:"connect"`
	FirstToken duration `yaml:"first_token"`
	Between    duration `yaml:"between"`
}

// toolsOf is what an agent may do beside talking.
type toolsOf struct {
	Root  string            `yaml:"root"` // the folder of its files; empty: no tools for files
	Bash  bool              `yaml:"bash"`
	MCP   []string          `yaml:"mcp"`   // names of servers
	Rules map[string]string `yaml:"rules"` // by tool, or a pattern of its name: allow, ask or deny
}

type openclawAgent struct {
	Common   agentHead `yaml:",inline"`
	URL      string    `yaml:"url"`
	TokenEnv string    `yaml:"token_env"` // empty: the token of OpenClaw's own file
	Agent    string    `yaml:"agent"`     // OpenClaw's name for it; default main
	Thinking string    `yaml:"thinking"`  // a level of OpenClaw's, such as low; empty leaves it to OpenClaw
	Timeout  duration  `yaml:"timeout"`
}

type dispatchAgent struct {
	Common  agentHead `yaml:",inline"`
	Dir     string    `yaml:"dir"`
	Steps   []string  `yaml:"steps"`
	Answer  string    `yaml:"answer"` // where in the last artifact the answer stands
	Timeout duration  `yaml:"timeout"`
}

type echoAgent struct {
	Common agentHead `yaml:",inline"`
}

// kinds are the kinds of agents, in the order of the README.
var kinds = []string{"openai", "anthropic", "openclaw", "dispatch", "echo"}

func specOf(kind string) spec {
	switch kind {
	case "openai", "anthropic":
		return &modelAgent{}
	case "openclaw":
		return &openclawAgent{}
	case "dispatch":
		return &dispatchAgent{}
	case "echo":
		return &echoAgent{}
	}
	return nil
}

func (a *modelAgent) head() *agentHead    { return &a.Common }
func (a *openclawAgent) head() *agentHead { return &a.Common }
func (a *dispatchAgent) head() *agentHead { return &a.Common }
func (a *echoAgent) head() *agentHead     { return &a.Common }

var (
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	errName      = errors.New("a name is up to 64 letters, digits, - and _")
	levelPattern = regexp.MustCompile(`^[a-z]{1,16}$`)
)

// readAgent reads one agent: its kind first, which says what keys it has.
func readAgent(node *ast.MappingValueNode) (spec, error) {
	name := node.Key.GetToken().Value
	failed := func(err error) error { return fmt.Errorf("line %d: agent %s: %w", lineOf(node.Key), name, err) }
	var any struct {
		Kind string `yaml:"kind"`
	}
	if err := yaml.NodeToValue(node.Value, &any); err != nil {
		return nil, inLine(err)
	}
	s := specOf(any.Kind)
	switch {
	case !namePattern.MatchString(name):
		return nil, failed(errName)
	case s == nil:
		return nil, failed(fmt.Errorf("its kind must be one of %s", strings.Join(kinds, ", ")))
	}
	if err := yaml.NodeToValue(node.Value, s, yaml.Strict()); err != nil {
		return nil, inLine(err)
	}
	s.head().name, s.head().line = name, lineOf(node.Key)
	return s, nil
}

// checkAgent holds an agent to what the rest of the file says.
func (f *File) checkAgent(s spec) error {
	for _, other := range s.head().Fallback {
		if other == s.head().name || f.agent(other) == nil {
			return fmt.Errorf("fallback %s: there is no other agent of that name", other)
		}
	}
	if p := s.head().Filler; p != nil && slices.ContainsFunc(*p, func(text string) bool {
		return strings.TrimSpace(text) == "" || len(text) > longestFiller
	}) {
		return fmt.Errorf("filler: a phrase is from one word to %d bytes", longestFiller)
	}
	return s.check(*f)
}

// longestFiller bounds a phrase that is said, in bytes: it is to be over in a few seconds.
const longestFiller = 100

func (a *modelAgent) check(f File) error {
	switch {
	case a.Common.Kind == "openai" && a.URL == "":
		return errors.New("url is missing, such as http://127.0.0.1:1234/v1")
	case a.Common.Kind == "anthropic" && a.Model == "":
		return errors.New("model is missing")
	case a.Thinking != 0 && a.Common.Kind != "anthropic":
		return errors.New("thinking is for agents of the kind anthropic")
	case a.System != "" && a.SystemFile != "":
		return errors.New("system and system_file exclude each other")
	case a.MaxTokens < 0 || a.Rounds < 0 || a.History < 0 || a.Thinking < 0:
		return errors.New("a number is negative")
	case a.Tools.Bash && a.Tools.Root == "":
		return errors.New("bash needs a root to work in")
	}
	for _, name := range a.Tools.MCP {
		if _, ok := f.mcp[name]; !ok {
			return fmt.Errorf("tools.mcp: there is no server %s below mcp", name)
		}
	}
	for name, rule := range a.Tools.Rules {
		if rule != "allow" && rule != "ask" && rule != "deny" {
			return fmt.Errorf("tools.rules: %s must be allow, ask or deny", name)
		}
	}
	return checkEnv(a.KeyEnv)
}

func (a *openclawAgent) check(File) error {
	if a.URL == "" {
		return errors.New("url is missing, such as ws://127.0.0.1:18789")
	}
	if a.Thinking != "" && !levelPattern.MatchString(a.Thinking) {
		return errors.New("thinking is a level of OpenClaw's, such as low")
	}
	return checkEnv(a.TokenEnv)
}

func (a *dispatchAgent) check(File) error {
	if a.Dir == "" {
		return errors.New("dir is missing: the folder in which signals and artifacts lie")
	}
	return nil
}

func (*echoAgent) check(File) error { return nil }
