package gateway

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vela/protocol"
)

const goodFile = `
default: claude
agents:
  local:
    kind: openai
    url: http://127.0.0.1:1234/v1
    ponder: false
    fallback: [claude]
    timeouts: {first_token: 90s}
  claude:
    kind: anthropic
    label: Claude in the project
    model: claude-sonnet-5
    filler: false
    key_env: ANTHROPIC_API_KEY
    temperature: 0
    tools:
      root: ./project
      bash: true
      mcp: [github]
      rules: {write_file: allow, "github_*": deny}
  claw:
    kind: openclaw
    url: ws://127.0.0.1:18789
    ponder: [Hold on, One moment]
    filler: [Let me see.]
    filler_after: 2s
  desk: {kind: dispatch, dir: work, steps: [F0_RECALL], timeout: 1m}
  parrot:
    kind: echo
mcp:
  github:
    command: [github-mcp-server, stdio]
    env: [GITHUB_TOKEN]
`

func TestFileSaysWhichAgentsThereAre(t *testing.T) {
	f, err := parseFile([]byte(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range f.agents {
		names = append(names, s.head().name+" "+s.head().Kind)
	}
	if want := []string{"claude anthropic", "local openai", "claw openclaw", "desk dispatch", "parrot echo"}; !slices.Equal(names, want) {
		t.Errorf("the agents are %q, want the default first and the rest in the file's order: %q", names, want)
	}
	local, claude, claw := f.agent("local").(*modelAgent), f.agent("claude").(*modelAgent), f.agent("claw").(*openclawAgent)
	if local.Common.Ponder == nil || len(*local.Common.Ponder) != 0 || claude.Common.Ponder != nil || !slices.Equal(*claw.Common.Ponder, []string{"Hold on", "One moment"}) {
		t.Errorf("ponder: %v, %v, %v", local.Common.Ponder, claude.Common.Ponder, claw.Common.Ponder)
	}
	if local.Common.Filler != nil || claude.Common.Filler == nil || len(*claude.Common.Filler) != 0 || !slices.Equal(*claw.Common.Filler, []string{"Let me see."}) || time.Duration(claw.Common.FillerAfter) != 2*time.Second {
		t.Errorf("filler: %v, %v, %v after %v", local.Common.Filler, claude.Common.Filler, claw.Common.Filler, claw.Common.FillerAfter)
	}
	if time.Duration(local.Timeouts.FirstToken) != 90*time.Second || *claude.Temperature != 0 || local.Temperature != nil {
		t.Errorf("timeouts %v, temperatures %v and %v", local.Timeouts, claude.Temperature, local.Temperature)
	}
	if claude.Tools.Rules["github_*"] != "deny" || !claude.Tools.Bash || !slices.Equal(f.mcp["github"].Env, []string{"GITHUB_TOKEN"}) {
		t.Errorf("tools %+v of servers %+v", claude.Tools, f.mcp)
	}
}

// What stands below vad is what clients get that do not say; what does not stand there has its default.
func TestFileSaysHowSpeechIsDetected(t *testing.T) {
	for text, want := range map[string]protocol.VAD{
		"vad: {threshold: 0.7, speech: 100ms, silence: 1.2s}": {Threshold: 0.7, SpeechMs: 100, SilenceMs: 1200},
		"vad: {silence: 300ms}":                               {SilenceMs: 300},
		"default: \"\"":                                       {},
	} {
		f, err := parseFile([]byte(text))
		if err != nil || f.vad != want {
			t.Errorf("%s is %+v, %v", text, f.vad, err)
		}
	}
}

// Each line is a mistake in the good file, and what is said about it.
func TestFileErrorsNameTheLineAndWhatToDo(t *testing.T) {
	for _, c := range []struct{ old, mistake, words string }{
		{"default: claude", "defalt: claude", `line 2: unknown field "defalt"`},
		{"default: claude", "default: nobody", "line 2: default: there is no agent nobody"},
		{"    url: http://127.0.0.1:1234/v1\n", "    uri: http://127.0.0.1:1234/v1\n", `line 6: unknown field "uri"`},
		{"    url: http://127.0.0.1:1234/v1\n", "", "line 4: agent local: url is missing"},
		{"kind: openai", "kind: openapi", "line 4: agent local: its kind must be one of openai, anthropic, openclaw, dispatch, echo"},
		{"    kind: openai\n", "", "line 4: agent local: its kind must be one of"},
		{"    key_env: ANTHROPIC_API_KEY", "    key: sk-secret", `unknown field "key"`},
		{"    key_env: ANTHROPIC_API_KEY", "    key_env: sk-secret", "take names of environment variables"},
		{"bash: true", "bash: maybe", "line 19: this must be true or false"},
		{"temperature: 0", "temperature: hot", "line 16: this must be a number"},
		{"temperature: 0", "max_tokens: many", "line 16: this must be a whole number"},
		{"temperature: 0", "max_tokens: 99999999999999999999999", "line 16: this must be a whole number"},
		{"      root: ./project\n", "", "bash needs a root"},
		{"mcp: [github]", "mcp: [gitlab]", "there is no server gitlab"},
		{"write_file: allow", "write_file: yes", "write_file must be allow, ask or deny"},
		{"fallback: [claude]", "fallback: [local]", "fallback local"},
		{"fallback: [claude]", "fallback: [nobody]", "fallback nobody"},
		{"ponder: false", "ponder: true", "ponder and filler are each false, or a list"},
		{"filler: false", "filler: yes, please", "ponder and filler are each false, or a list"},
		{"filler: [Let me see.]", `filler: [" "]`, "filler: a phrase is from one word to 100 bytes"},
		{"filler: [Let me see.]", "filler: [" + strings.Repeat("very ", 25) + "long]", "filler: a phrase is from one word to 100 bytes"},
		{"filler_after: 2s", "filler_after: -2s", "this must be a duration"},
		{"first_token: 90s", "first_token: soon", "line 9: "},
		{"  parrot:", "  par rot:", "a name is up to 64 letters"},
		{"  parrot:", "  claude:", "line 29: "},
		{"    command: [github-mcp-server, stdio]\n", "", "line 32: mcp server github: it needs either a command or a url"},
		{"  github:\n", "  git_hub:\n", "line 32: mcp server git_hub: "},
		{"  github:\n", "  read:\n", "line 32: mcp server read: "},
		{"    env: [GITHUB_TOKEN]", "    key_env: GITHUB_TOKEN", "a command gets its variables by env"},
		{"    env: [GITHUB_TOKEN]", "    evn: [GITHUB_TOKEN]", `line 34: unknown field "evn"`},
		{"url: ws://127.0.0.1:18789", "url: ws://127.0.0.1:18789\n    thinking: 5 h", "line 22: agent claw: thinking is a level"},
		{"agents:", "ears:\n  - {kind: whisper}\nagents:", "line 4: ear 1: url is missing"},
		{"agents:", "ears:\n  - {kind: pocketsphinx, language: de}\nagents:", "line 4: language: an ear of the kind pocketsphinx has no such key"},
		{"agents:", "voices:\n  - {kind: flite}\n  - {kind: openai}\nagents:", "line 5: voice 2: "},
		{"agents:", "voices:\n  - {kind: flite, vioce: slt}\nagents:", `line 4: unknown field "vioce"`},
		{"agents:", "vad: {threshold: 1.5}\nagents:", "line 3: vad: threshold must be 0.05 to 0.95"},
		{"agents:", "vad: {threshold: -1}\nagents:", "line 3: vad: threshold must be"},
		{"agents:", "vad: {speech: 10ms}\nagents:", "line 3: vad: speech must be 50 to 2000 ms"},
		{"agents:", "vad: {silence: 1m}\nagents:", "line 3: vad: silence must be 100 to 5000 ms"},
		{"agents:", "vad: {silence: soon}\nagents:", "line 3: this must be a duration"},
		{"agents:", "vad: {quiet: 1s}\nagents:", `line 3: unknown field "quiet"`},
		{"    env: [GITHUB_TOKEN]", "    env: [ghp-secret]", "take names of environment variables"},
		{"agents:", "agents: [", "line "},
		{"desk: {kind: dispatch, dir: work,", "desk: {kind: dispatch,", "dir is missing"},
		{"dir: work", "model: work", `unknown field "model"`},
	} {
		text := strings.Replace(goodFile, c.old, c.mistake, 1)
		if text == goodFile {
			t.Fatalf("%q is not in the file", c.old)
		}
		_, err := parseFile([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want one line with %q", c.mistake, err, c.words)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "vela.yaml")
	if _, err := ReadFile(name); err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(name, []byte(goodFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := ReadFile(name); err != nil || f.dir != dir || len(f.agents) != 5 {
		t.Errorf("%+v, %v", f, err)
	}
	if err := os.Truncate(name, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(name); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := ReadFile(dir); err == nil {
		t.Error("a folder was read")
	}
	if _, err := ReadFile(os.DevNull); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("what is no file was read: %v", err)
	}
}

// The README shows a file that is one, and names every key.
func TestTheReadmeShowsAFile(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "```yaml\n")
	example, after, _ := strings.Cut(after, "```")
	f, err := parseFile([]byte(example))
	if err != nil || len(f.agents) != len(kinds) {
		t.Errorf("%d agents, %v", len(f.agents), err)
	}
	_, speech, _ := strings.Cut(after, "```yaml\n")
	speech, about, _ := strings.Cut(speech, "```")
	if f, err := parseFile([]byte(speech)); err != nil || len(f.ears) != len(earKinds) || len(f.voices) != len(voiceKinds) {
		t.Errorf("%d ears, %d voices, %v", len(f.ears), len(f.voices), err)
	}
	for _, fields := range []reflect.Type{reflect.TypeFor[earSpec](), reflect.TypeFor[voiceSpec]()} {
		for i := range fields.NumField() {
			if key := fields.Field(i).Tag.Get("yaml"); !strings.Contains(speech+about, key) {
				t.Errorf("nothing is said of %s", key)
			}
		}
	}
	table, _, _ := strings.Cut(after, "**What an agent may do.**")
	for _, s := range f.agents {
		spec := reflect.TypeOf(s).Elem()
		for _, fields := range []reflect.Type{spec, reflect.TypeFor[agentHead](), reflect.TypeFor[toolsOf](), reflect.TypeFor[timeoutsOf]()} {
			for i := range fields.NumField() {
				if key := fields.Field(i).Tag.Get("yaml"); key != "" && key != ",inline" && !strings.Contains(table, "`"+key+"`") {
					t.Errorf("the table does not name %s", key)
				}
			}
		}
	}
}
