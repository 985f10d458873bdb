package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"vela/protocol"
)

// earSpec is one recogniser of a [File].
type earSpec struct {
	line int

	Kind     string `yaml:"kind"`     // one of [earKinds]
	Label    string `yaml:"label"`    // what people see
	URL      string `yaml:"url"`      // of a server
	KeyEnv   string `yaml:"key_env"`  // the environment variable that holds its key
	Model    string `yaml:"model"`    // the server's name for it, or sherpa's folder
	Language string `yaml:"language"` // such as en; empty: the server finds out
	Prompt   string `yaml:"prompt"`   // words and names that are likely to be said
}

// earKinds are the kinds of recognisers, in the order of the README.
var earKinds = []string{"pocketsphinx", "sherpa", "openai", "whisper"}

// earKeys are the keys of each kind, beside kind and label.
var earKeys = map[string][]string{
	"pocketsphinx": nil,
	"sherpa":       {"model", "language"},
	"openai":       {"url", "key_env", "model", "language", "prompt"},
	"whisper":      {"url", "key_env", "language", "prompt"},
}

func (e earSpec) check() error {
	switch {
	case e.Kind == "sherpa" && e.Model == "":
		return errors.New("model is missing: the folder of a model for sherpa-onnx")
	case (e.Kind == "openai" || e.Kind == "whisper") && e.URL == "":
		return errors.New("url is missing")
	case e.Kind == "openai" && e.Model == "":
		return errors.New("model is missing")
	}
	return checkEnv(e.KeyEnv)
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

// voiceSpec is one voice of a [File].
type voiceSpec struct {
	line int

	Kind     string   `yaml:"kind"`     // one of [voiceKinds]
	Name     string   `yaml:"name"`     // what session.start asks for; default the kind
	Label    string   `yaml:"label"`    // what people see
	Voice    string   `yaml:"voice"`    // the engine's name for it
	Command  []string `yaml:"command"`  // reads text, and writes WAV
	Seekable bool     `yaml:"seekable"` // it goes back in its output, as flite does
	URL      string   `yaml:"url"`      // of a server
	KeyEnv   string   `yaml:"key_env"`  // the environment variable that holds its key
	Model    string   `yaml:"model"`    // the server's name for it
	Rate     int      `yaml:"rate"`     // of the sound that an openai server sends, in Hz; 24000
	Speed    float64  `yaml:"speed"`    // 1 is the voice's own
}

// voiceKinds are the kinds of voices, in the order of the README.
var voiceKinds = []string{"flite", "command", "openai", "piper"}

// voiceKeys are the keys of each kind, beside kind and label.
var voiceKeys = map[string][]string{
	"flite":   {"name", "voice"},
	"command": {"name", "command", "seekable"},
	"openai":  {"name", "url", "key_env", "model", "voice", "rate", "speed"},
	"piper":   {"name", "url", "key_env", "voice", "speed"},
}

func (v voiceSpec) check() error {
	switch {
	case v.Name != "" && !namePattern.MatchString(v.Name):
		return errName
	case v.Kind == "command" && len(v.Command) == 0:
		return errors.New("command is missing")
	case (v.Kind == "openai" || v.Kind == "piper") && v.URL == "":
		return errors.New("voices of the kinds openai and piper need a url")
	case v.Kind == "openai" && (v.Model == "" || v.Voice == ""):
		return errors.New("model and voice are needed")
	case v.Speed < 0:
		return errors.New("speed is negative")
	}
	return checkEnv(v.KeyEnv)
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

// checkKind says that a kind is none, or else what is wrong beside it.
func checkKind(kind string, kinds []string, err error) error {
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("its kind must be one of %s", strings.Join(kinds, ", "))
	}
	return err
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
