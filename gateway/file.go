package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"vela/protocol"
	"vela/session"
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
	root, err := document(text)
	if err != nil {
		return File{}, err
	}
	if root != nil {
		if err := yaml.NodeToValue(root, &top, yaml.Strict()); err != nil {
			return File{}, inLine(err)
		}
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
