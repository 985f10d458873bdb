package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The tests of agents have a model server of another make answer: aimock, which speaks both vendors' formats. What it
// answers is in models/fixtures, by what the user says; what its agents work on is models/project.

// modelKey is the key that the model server takes. It must be in nothing that the gateway shows, logs or keeps.
const modelKey = "sk-e2e-0123456789abcdef"

// formats are both wire formats: the kind of agent, what stands behind the server's address, how an agent is told to
// think, and how a thought goes back to it.
var formats = []struct{ kind, path, thinking, thought string }{
	{"openai", "/v1", "", `"reasoning_content":"I need the clock."`},
	{"anthropic", "", ", thinking: 1024", `{"type":"thinking","thinking":"I need the clock.","signature":"aimock-placeholder-signature"}`},
}

// serveAgents starts a gateway with a vela.yaml, in a folder where "project" is a copy of models/project.
func serveAgents(t *testing.T, config string, args ...string) (g *gateway, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "project"), os.DirFS("models/project")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "vela.yaml")
	if err := os.WriteFile(name, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return serve(t, append([]string{"--config", name}, args...)...), dir
}

// stop ends the gateway as an operator does, and returns all that it logged.
func (g *gateway) stop() string {
	g.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.Fatal(err)
	}
	if err := g.cmd.Wait(); err != nil {
		g.Errorf("the process: %v", err)
	}
	return g.log.String()
}

// noKey checks that the model server's key is in no file below a folder, and in none of the texts.
func noKey(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > 64<<20 {
			return err
		}
		body, err := os.ReadFile(name)
		if strings.Contains(string(body), modelKey) {
			t.Errorf("the key is in %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for what, text := range texts {
		if text == "" {
			t.Errorf("there is nothing of %s to look at", what)
		}
		if strings.Contains(text, modelKey) {
			t.Errorf("the key is in %s:\n%.2000s", what, text)
		}
	}
}

// TestAgents runs every script of scripts/agents in both wire formats, and then looks at what the model was asked, at the
// files that were worked on, and at all that is left behind.
func TestAgents(t *testing.T) {
	t.Setenv("E2E_MODEL_KEY", modelKey)
	t.Setenv("E2E_WRONG_KEY", "sk-e2e-wrong-0123456789")
	for _, format := range formats {
		t.Run(format.kind, func(t *testing.T) {
			t.Parallel()
			server := models(t)
			through, aside := relayTo(t, server.url), relayTo(t, server.url)
			data, journals := t.TempDir(), t.TempDir()
			agent := func(address, more string) string {
				return fmt.Sprintf("{kind: %s, url: %q, model: m, ponder: false, %s}", format.kind, address+format.path, more)
			}
			g, dir := serveAgents(t, `
agents:
  model: `+agent(server.url, "key_env: E2E_MODEL_KEY, tools: {root: project}")+`
  slow: `+strings.Replace(agent(through.URL, "key_env: E2E_MODEL_KEY"), "ponder: false", "ponder: [Hm, Still at it]", 1)+`
  thinker: `+agent(aside.URL, "key_env: E2E_MODEL_KEY, tools: {root: project}"+format.thinking)+`
  locked: `+agent(server.url, "key_env: E2E_WRONG_KEY")+`
  nowhere: `+agent("http://127.0.0.1:1", "key_env: E2E_MODEL_KEY")+`
  dead: `+agent("http://127.0.0.1:1", "key_env: E2E_MODEL_KEY, fallback: [locked, model]")+`
mcp:
  missing: {command: [no-such-server-of-mcp]}
`, "--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
			t.Run("scripts", func(t *testing.T) {
				each(t, "scripts/agents/*.vela", 15, func(t *testing.T, file string) { t.Parallel(); g.passes(t, file) })
			})
			askedFor(t, server)
			g.eventually("let go of both requests that were cancelled", func() bool { return through.leftOf("Take your time.") && through.leftOf("Tell me a long story.") })
			aside.mu.Lock()
			if n := len(aside.asked); n != 2 || !strings.Contains(aside.asked[1], format.thought) {
				t.Errorf("%d requests, the last without the thought before its tool: %q", n, aside.asked)
			}
			aside.mu.Unlock()
			worked(t, filepath.Join(dir, "project"))

			chatted(t, g)
			code, table, errs := run(t, nil, "engines", "--config", filepath.Join(dir, "vela.yaml"), "--speech-model", t.TempDir())
			for _, line := range []string{`model +yes`, `slow +yes`, `locked +no .*401.*set the right key`, `nowhere +no .*cannot be reached.*the address right`, `mcp server +missing +no +no agent uses it.*no-such-server-of-mcp.*installed`} {
				if code != 0 || !regexp.MustCompile(line).MatchString(table) {
					t.Errorf("exit %d, no line fits %s:\n%s%s", code, line, table, errs)
				}
			}
			_, report := g.get("/api/agents")
			for _, part := range []string{
				`"default":"model"`, `{"name":"model","label":"model","kind":"` + format.kind + `","available":true,"tools":["read_file","write_file","edit_file","glob","grep"]}`,
				`{"name":"locked","label":"locked","kind":"` + format.kind + `","available":false,`,
			} {
				if !strings.Contains(report, part) {
					t.Errorf("/api/agents has no %s: %s", part, report)
				}
			}
			_, metrics := g.get("/metrics")
			noKey(t, journals, map[string]string{"/api/agents": report, "/metrics": metrics, "the log": g.stop()})
			noKey(t, data, map[string]string{"vela engines": table})
		})
	}
}

// askedFor looks at the requests that the scripts have led to.
func askedFor(t *testing.T, server *modelServer) {
	t.Helper()
	for said, want := range map[string][]string{
		"And who told you so?": { // after a turn with tools
			"user: Who buys the milk?",
			`assistant: Let me look. [milk1 grep {"pattern":"milk"}]`,
			"tool milk1: notes/list.txt:1:buy milk\n",
			`assistant [milk2 read_file {"path":"notes/list.txt"}]`,
			"tool milk2: buy milk\nAnna does\n",
			"assistant: Anna buys it.",
			"user: And who told you so?",
		},
		"Where were we?": { // after a turn that was cancelled
			"user: Tell me a long story.",
			"assistant: Once upon a time, \n[interrupted: this is all that the user heard]",
			"user: Where were we?",
		},
	} {
		asked := server.requests(said)
		if len(asked) != 1 || !slices.Equal(outline(asked[0]), want) {
			t.Errorf("%q was asked as %q, want once %q", said, asked, want)
		}
	}
	for said, times := range map[string]int{"Too many of us.": 2, "Come back next week.": 1, "Break.": 3, "Are you there?": 3} {
		if n := len(server.requests(said)); n != times {
			t.Errorf("%q was asked %d times, want %d", said, n, times)
		}
	}
}

// chatted has a conversation in a pipe with an agent that is named.
func chatted(t *testing.T, g *gateway) {
	t.Helper()
	code, out, errs := run(t, strings.NewReader("Who buys the milk?\n"), "chat", "--agent", "thinker", "--url", g.addr)
	if code != 0 || !strings.Contains(out, "Anna buys it.") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := run(t, strings.NewReader("hello\n"), "chat", "--agent", "nobody", "--url", g.addr); code != 1 || !strings.Contains(errs, "thinker") {
		t.Errorf("an agent that is not there: exit %d\n%s%s", code, out, errs)
	}
}

// worked looks at the files that the scripts have worked on.
func worked(t *testing.T, project string) {
	t.Helper()
	for name, want := range map[string]string{"allowed.txt": "The weather is sun.\n", "refused.txt": "The weather is fog.\n"} {
		got, err := os.ReadFile(filepath.Join(project, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}
