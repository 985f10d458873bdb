package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"vela/protocol"
	"vela/session"
	"vela/turn/mcp"
)

// File is what vela.yaml says: which agents there are. A key stands in it only by the name of the environment variable
// that holds it. The README describes the format. The zero value has no agent but the built-in one. Make it with
// [ReadFile].
type File struct {
	name   string // of the file, as it was given
	dir    string // where it lies: relative paths begin there
	agents []spec // the first one answers clients that do not ask
	mcp    map[string]mcpServer
	ears   []earSpec    // the first one recognises speech, and the next where one fails; none: PocketSphinx
	voices []voiceSpec  // the first one speaks, and the next where one fails; none: flite
	vad    protocol.VAD // how speech is told from silence, for clients that do not say

	livekit liveKitSpec
}

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

func (a *modelAgent) head() *agentHead    { return &a.Common }
func (a *openclawAgent) head() *agentHead { return &a.Common }
func (a *dispatchAgent) head() *agentHead { return &a.Common }
func (a *echoAgent) head() *agentHead     { return &a.Common }

// phrases are shown, or said, while an agent is silent: false for none, or a list.
type phrases []string

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

// mcpServer is a program that speaks MCP on its standard streams, or the address of one.
type mcpServer struct {
	line int

	Command []string          `yaml:"command"`
	Env     []string          `yaml:"env"` // names of the environment variables that the program gets
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	KeyEnv  string            `yaml:"key_env"` // sent as Authorization: Bearer
}

// duration is one of at least 0, such as 90s. Its errors have their line, which those of the decoder have not.
type duration time.Duration

// UnmarshalYAML reads it.
func (d *duration) UnmarshalYAML(node ast.Node) error {
	v, err := time.ParseDuration(node.GetToken().Value)
	if err != nil || v < 0 {
		return fmt.Errorf("line %d: this must be a duration, such as 90s or 10m", lineOf(node))
	}
	*d = duration(v)
	return nil
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

// maxFile bounds vela.yaml, in bytes.
const maxFile = 1 << 20

// ReadFile reads vela.yaml. An unknown key, a value of the wrong type and a name that leads nowhere are errors that name
// their line and never the line's text.
func ReadFile(name string) (File, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("%s is not there: write it, or leave --config out", name)
	case err == nil && !info.Mode().IsRegular(): // reading a pipe would wait for whoever writes it
		return File{}, fmt.Errorf("%s is no file", name)
	case err == nil && info.Size() > maxFile:
		return File{}, fmt.Errorf("%s is larger than 1 MiB: that is no vela.yaml", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return File{}, fmt.Errorf("%s cannot be read: %w", name, errors.Unwrap(err))
	}
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	f, err := parseFile(text)
	if err != nil {
		return File{}, fmt.Errorf("%s, %w", name, err)
	}
	f.name, f.dir = name, dir
	return f, nil
}

// at is the place of a mistake that shows only when what the file describes is made.
func (f *File) at(line int) string {
	if f.name == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s, line %d", f.name, line)
}

// parseFile reads the text of a vela.yaml. Its errors begin with the line.
func parseFile(text []byte) (File, error) {
	var top struct {
		Default reference   `yaml:"default"`
		Agents  entries     `yaml:"agents"`
		MCP     entries     `yaml:"mcp"`
		Ears    []earSpec   `yaml:"ears"`
		Voices  []voiceSpec `yaml:"voices"`
		VAD     vadSpec     `yaml:"vad"`
		LiveKit liveKitSpec `yaml:"livekit"`
	}
	if err := yaml.UnmarshalWithOptions(text, &top, yaml.Strict()); err != nil {
		return File{}, inLine(err)
	}
	f := File{mcp: map[string]mcpServer{}, ears: top.Ears, voices: top.Voices, livekit: top.LiveKit}
	for _, node := range top.MCP {
		name, server := node.Key.GetToken().Value, mcpServer{line: lineOf(node.Key)}
		if err := yaml.NodeToValue(node.Value, &server, yaml.Strict()); err != nil {
			return File{}, inLine(err)
		}
		if err := server.check(name); err != nil {
			return File{}, fmt.Errorf("line %d: mcp server %s: %w", server.line, name, err)
		}
		f.mcp[name] = server
	}
	for _, node := range top.Agents {
		s, err := readAgent(node)
		if err != nil {
			return File{}, err
		}
		f.agents = append(f.agents, s)
	}
	for _, s := range f.agents {
		if err := f.checkAgent(s); err != nil {
			return File{}, fmt.Errorf("line %d: agent %s: %w", s.head().line, s.head().name, err)
		}
	}
	for i, e := range f.ears {
		if err := checkKind(e.Kind, earKinds, e.check()); err != nil {
			return File{}, fmt.Errorf("line %d: ear %d: %w", e.line, i+1, err)
		}
	}
	for i, v := range f.voices {
		if err := checkKind(v.Kind, voiceKinds, v.check()); err != nil {
			return File{}, fmt.Errorf("line %d: voice %d: %w", v.line, i+1, err)
		}
		if v.Name != "" && slices.ContainsFunc(f.voices[:i], func(other voiceSpec) bool { return other.Name == v.Name }) {
			return File{}, fmt.Errorf("line %d: voice %d: the name %s is taken", v.line, i+1, v.Name)
		}
	}
	f.vad = top.VAD.settings()
	if setting, bounds := session.CheckVAD(f.vad); setting != "" {
		name, ms := strings.CutSuffix(setting, "Ms")
		if ms {
			bounds += " ms"
		}
		return File{}, fmt.Errorf("line %d: vad: %s must be %s", top.VAD.line, name, bounds)
	}
	if err := f.livekit.check(); err != nil {
		return File{}, fmt.Errorf("line %d: livekit: %w", f.livekit.line, err)
	}
	return f, f.putFirst(top.Default)
}

// vadSpec is how speech is told from silence, where clients are hands-free and do not say.
type vadSpec struct {
	line int

	Threshold float64  `yaml:"threshold"` // how likely a sound must be speech, from 0 to 1
	Speech    duration `yaml:"speech"`    // how much of it it takes to be noticed
	Silence   duration `yaml:"silence"`   // how much silence ends it
}

// UnmarshalYAML reads it, and where it stands.
func (v *vadSpec) UnmarshalYAML(node ast.Node) error {
	type keys vadSpec // without this method
	err := yaml.NodeToValue(node, (*keys)(v), yaml.Strict())
	v.line = lineOf(node)
	return err
}

func (v vadSpec) settings() protocol.VAD {
	return protocol.VAD{
		Threshold: v.Threshold,
		SpeechMs:  int(time.Duration(v.Speech).Milliseconds()),
		SilenceMs: int(time.Duration(v.Silence).Milliseconds()),
	}
}

// reference is a name that stands elsewhere in the file.
type reference struct {
	name string
	line int
}

// UnmarshalYAML reads it.
func (r *reference) UnmarshalYAML(node ast.Node) error {
	r.line = lineOf(node)
	return yaml.NodeToValue(node, &r.name)
}

// UnmarshalYAML reads an ear, and where it stands.
func (e *earSpec) UnmarshalYAML(node ast.Node) error {
	type keys earSpec // without this method
	err := yaml.NodeToValue(node, (*keys)(e), yaml.Strict())
	e.line = lineOf(node)
	if err != nil {
		return err
	}
	return checkKeys(node, "an ear", e.Kind, earKeys)
}

// UnmarshalYAML reads a voice, and where it stands.
func (v *voiceSpec) UnmarshalYAML(node ast.Node) error {
	type keys voiceSpec // without this method
	err := yaml.NodeToValue(node, (*keys)(v), yaml.Strict())
	v.line = lineOf(node)
	if err != nil {
		return err
	}
	return checkKeys(node, "a voice", v.Kind, voiceKeys)
}

// checkKeys says which key of an ear or a voice means nothing to its kind: what is taken without a word is believed to work. A
// kind that there is not is told elsewhere.
func checkKeys(node ast.Node, what, kind string, keys map[string][]string) error {
	known, ok := keys[kind]
	if !ok {
		return nil
	}
	mapping, ok := node.(*ast.MappingNode)
	if !ok {
		return nil // a single key is its kind
	}
	for _, pair := range mapping.Values {
		if key := pair.Key.GetToken().Value; key != "kind" && key != "label" && !slices.Contains(known, key) {
			return fmt.Errorf("line %d: %s: %s of the kind %s has no such key, but label%s", lineOf(pair.Key), key, what, kind, also(known))
		}
	}
	return nil
}

// also is the rest of a list.
func also(keys []string) string {
	text := ""
	for i, key := range keys {
		if i == len(keys)-1 {
			return text + " and " + key
		}
		text += ", " + key
	}
	return text
}

// entries are the agents or the MCP servers, in their order.
type entries []*ast.MappingValueNode

// UnmarshalYAML takes the nodes as they are: which keys an agent has depends on its kind.
func (n *entries) UnmarshalYAML(node ast.Node) error {
	switch node := node.(type) {
	case *ast.MappingNode:
		*n = node.Values
	case *ast.MappingValueNode:
		*n = entries{node}
	case *ast.NullNode:
	default:
		return fmt.Errorf("line %d: here must be names, each with its keys indented below it", lineOf(node))
	}
	return nil
}

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

var (
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	errName      = errors.New("a name is up to 64 letters, digits, - and _")
	levelPattern = regexp.MustCompile(`^[a-z]{1,16}$`)
	envPattern   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func lineOf(node ast.Node) int { return node.GetToken().Position.Line }

// inLine is a decoder's error with its line, and without the text that the decoder shows: a key may stand there.
func inLine(err error) error {
	var mismatch *yaml.TypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &mismatch) && mismatch.Token != nil:
		return fmt.Errorf("line %d: this must be %s", mismatch.Token.Position.Line, inWords(mismatch.DstType))
	case errors.As(err, &overflow) && overflow.Token != nil:
		return fmt.Errorf("line %d: this must be %s", overflow.Token.Position.Line, inWords(overflow.DstType))
	}
	var known yaml.Error
	if errors.As(err, &known) && known.GetToken() != nil {
		return fmt.Errorf("line %d: %s", known.GetToken().Position.Line, known.GetMessage())
	}
	return err
}

// inWords is a type of a value in the words of a vela.yaml.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "something else"
}

// checkKind says that a kind is none, or else what is wrong beside it.
func checkKind(kind string, kinds []string, err error) error {
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("its kind must be one of %s", strings.Join(kinds, ", "))
	}
	return err
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

func (f *File) agent(name string) spec {
	for _, s := range f.agents {
		if s.head().name == name {
			return s
		}
	}
	return nil
}

// putFirst makes an agent the one that clients get who do not ask.
func (f *File) putFirst(r reference) error {
	if r.name == "" {
		return nil
	}
	i := slices.IndexFunc(f.agents, func(s spec) bool { return s.head().name == r.name })
	if i < 0 {
		return fmt.Errorf("line %d: default: there is no agent %s", r.line, r.name)
	}
	first := f.agents[i]
	f.agents = slices.Insert(slices.Delete(f.agents, i, i+1), 0, first)
	return nil
}

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

func (s mcpServer) check(name string) error {
	switch {
	case (len(s.Command) == 0) == (s.URL == ""):
		return errors.New("it needs either a command or a url")
	case len(s.Command) > 0 && (s.KeyEnv != "" || len(s.Headers) > 0):
		return errors.New("key_env and headers are for servers with a url: a command gets its variables by env")
	case s.URL != "" && len(s.Env) > 0:
		return errors.New("env is for a command: a server with a url gets its key by key_env")
	}
	for _, name := range s.Env {
		if err := checkEnv(name); err != nil {
			return err
		}
	}
	if err := checkEnv(s.KeyEnv); err != nil {
		return err
	}
	cfg := mcp.Config{Name: name, URL: s.URL, Header: headers(s.Headers)}
	if len(s.Command) > 0 {
		cfg.Command = s.Command[0]
	}
	_, err := mcp.New(cfg) // which starts nothing
	return err
}

// checkEnv catches a key where the name of its variable should stand. It does not repeat it.
func checkEnv(name string) error {
	if name != "" && !envPattern.MatchString(name) {
		return errors.New("key_env, token_env and env take names of environment variables, not what is in them")
	}
	return nil
}
