package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vela/protocol/signal"
	"vela/turn"
)

// readAgents makes the agents of a vela.yaml that lies in a folder of its own, with a folder "project" beside it.
func readAgents(t *testing.T, text string) (*agents, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "project"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "project", "notes"), []byte("buy milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "vela.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := makeAgents(f, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Cleanup(a.start(t.Context()))
	}
	return a, err
}

// answer is all that an agent says to a question, or its error.
func answer(e turn.Engine, question string) (string, error) {
	text := ""
	for p, err := range e.Run(context.Background(), turn.Request{SessionID: "s", TurnID: "t1", Text: question}) {
		if err != nil {
			return text, err
		}
		if d, ok := p.(signal.TextDelta); ok {
			text += d.Content
		}
	}
	return text, nil
}

// reader stands in for a model: it reads the file notes with its tool, then says what it was told.
func reader(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-key" || r.Header.Get("X-Extra") != "yes" {
			t.Errorf("asked with %v", r.Header)
		}
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m"}]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		delta := `{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read_file","arguments":"{\"path\":\"notes\"}"}}]}`
		reason := "tool_calls"
		if strings.Contains(string(body), "buy milk") {
			delta, reason = `{"content":"You have to buy milk."}`, "stop"
		}
		if !strings.Contains(string(body), "Speak like a pirate.") {
			t.Errorf("the system prompt is not in %s", body)
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, reason)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAnAgentOfTheFileAnswersWithItsTools(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "the-key")
	a, err := readAgents(t, `
agents:
  local:
    kind: openai
    url: `+reader(t).URL+`/v1
    key_env: TEST_MODEL_KEY
    headers: {X-Extra: "yes"}
    system: Speak like a pirate.
    tools: {root: project, bash: true, rules: {bash: deny}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := answer(a.list[0].engine, "what is in my notes?"); text != "You have to buy milk." || err != nil {
		t.Errorf("it answered %q, %v", text, err)
	}
	r := a.report(t.Context())
	if got := r.Agents[0]; !got.Available || r.Default != "local" || !slices.Equal(got.Tools, []string{"read_file", "write_file", "edit_file", "glob", "grep"}) {
		t.Errorf("the report is %+v", r)
	}
}

func TestWithoutAFileTheBuiltInAgentAnswers(t *testing.T) {
	a, err := makeAgents(File{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	named := a.named()
	if named[0].Filler == nil {
		t.Error("an agent that falls silent says nothing")
	}
	if len(named) != 1 || named[0].Name != "echo" || len(named[0].Ponder) != 0 {
		t.Errorf("the agents are %+v", named)
	}
	if text, _ := answer(named[0].Engine, "ahoy"); text != "You said: ahoy" {
		t.Errorf("it said %q", text)
	}
}

func TestAnotherAgentTakesOver(t *testing.T) {
	a, err := readAgents(t, `
agents:
  gone: {kind: openai, url: "http://127.0.0.1:1/v1", fallback: [keyless, parrot]}
  keyless: {kind: anthropic, model: m, key_env: SK_TEST_NOT_SET}
  parrot: {kind: echo}
`)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := answer(a.list[0].engine, "ahoy"); text != "You said: ahoy" || err != nil {
		t.Errorf("it answered %q, %v", text, err)
	}
}

func TestAgentsThatCannotBeMade(t *testing.T) {
	t.Setenv("HOME", "")
	for text, words := range map[string]string{
		`{kind: openai, url: "http://127.0.0.1:1/v1", tools: {root: nowhere}}`:                      "tools.root",
		`{kind: openai, url: "nonsense"}`:                                                           "base URL",
		`{kind: openai, url: "http://127.0.0.1:1/v1", system_file: nowhere}`:                        "system_file",
		`{kind: openclaw, url: "wss://example.org"}`:                                                "token_env is missing",
		`{kind: openclaw, url: nonsense}`:                                                           "of the form ws://",
		`{kind: dispatch, dir: "~/x"}`:                                                              "there is no home",
		`{kind: openai, url: "http://127.0.0.1:1/v1", system_file: /dev/null}`:                      "it is no file",
		`{kind: dispatch, dir: project, steps: [F9]}`:                                               "F9",
		`{kind: openai, url: "http://127.0.0.1:1/v1", tools: {root: project, rules: {"[": allow}}}`: "name of tools",
	} {
		if _, err := readAgents(t, "agents:\n  a: "+text); err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "vela.yaml, line 2: agent a: ") {
			t.Errorf("%s: the error is %v, want %q", text, err, words)
		}
	}
}

// What a gateway holds when it turns out that there can be none, or that its port is taken, is let go of.
func TestAgentsAreLetGoOfWhereNothingRuns(t *testing.T) {
	f, err := parseFile([]byte(`
agents:
  a: {kind: openai, url: "http://127.0.0.1:1/v1", tools: {root: .}}
ears:
  - {kind: whisper, url: nonsense}
`))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	open := func() (roots int) { // the other files of the process come and go
		files, _ := os.ReadDir("/proc/self/fd") // none where there is no such system
		for _, f := range files {
			if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); to == folder {
				roots++
			}
		}
		return roots
	}
	before := open()
	if _, err := New(Config{Agents: f}); err == nil || !strings.Contains(err.Error(), "line 5: ear 1: ") {
		t.Errorf("an ear without an address: %v", err)
	}
	f.ears = nil
	g, err := New(Config{Agents: f, Addr: "127.0.0.1:99999"})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context(), nil); err == nil {
		t.Error("it listened where nobody can")
	}
	if after := open(); after != before {
		t.Errorf("the folder is open %d times, %d it was", after, before)
	}
}
