package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nhooyr.io/websocket"
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

// modelServer is a running aimock.
type modelServer struct {
	*testing.T
	url string
}

// models starts a model server, which ends with the test.
func models(t *testing.T) *modelServer {
	t.Helper()
	cmd := exec.Command("node", "node_modules/@copilotkit/aimock/dist/cli.js", "--port", "0", "--fixtures", "models/fixtures", "--validate-on-load")
	cmd.Env = append(os.Environ(), "AIMOCK_API_KEYS="+modelKey)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run make test-e2e, which installs what this test needs", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() {
				for lines.Scan() { // until it ends: it must not wait for a reader
				}
			}()
			return &modelServer{t, at}
		}
	}
	t.Fatalf("the model server said %q", said)
	return nil
}

// message is one message of a request, in OpenAI's words: the model server puts every format into them.
type message struct {
	Role      string `json:"role"`
	Content   any    `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// requests are the requests whose last words of the user are the given ones, oldest first.
func (m *modelServer) requests(said string) [][]message {
	m.Helper()
	req, err := http.NewRequest(http.MethodGet, m.url+"/__aimock/journal", nil)
	if err != nil {
		m.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+modelKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.Fatal(err)
	}
	defer resp.Body.Close()
	var journal []struct {
		Body struct {
			Messages []message `json:"messages"`
		} `json:"body"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&journal); err != nil {
		m.Fatal(err)
	}
	var found [][]message
	for _, entry := range journal {
		for _, msg := range slices.Backward(entry.Body.Messages) {
			if msg.Role == "user" {
				if fmt.Sprint(msg.Content) == said {
					found = append(found, entry.Body.Messages)
				}
				break
			}
		}
	}
	return found
}

// outline is a request in short: who said what, without the system prompt.
func outline(messages []message) []string {
	var lines []string
	for _, m := range messages {
		if m.Role == "system" {
			continue
		}
		line := m.Role
		if m.ToolCallID != "" {
			line += " " + m.ToolCallID
		}
		if text, ok := m.Content.(string); ok && text != "" {
			line += ": " + text
		}
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf(" [%s %s %s]", c.ID, c.Function.Name, c.Function.Arguments)
		}
		lines = append(lines, line)
	}
	return lines
}

// relay stands between a gateway and its model server. It counts the requests that the gateway let go of before they were
// answered, and keeps what was asked to the letter.
type relay struct {
	*httptest.Server
	left atomic.Int32

	mu    sync.Mutex
	asked []string // guarded by mu
}

func relayTo(t *testing.T, address string) *relay {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // it was let go of
	r := &relay{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.asked = append(r.asked, string(body))
		r.mu.Unlock()
		req.Body = io.NopCloser(bytes.NewReader(body))
		defer func() {
			if req.Context().Err() != nil {
				r.left.Add(1)
			}
		}()
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
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

// event is one message of version 2.
type event struct {
	Type    string `json:"type"`
	Seq     uint64 `json:"seq"`
	Payload struct {
		Value     string          `json:"value"`
		Text      string          `json:"text"`
		Code      string          `json:"code"`
		Message   string          `json:"message"`
		Reason    string          `json:"reason"`
		HeardText string          `json:"heardText"`
		CallID    string          `json:"callId"`
		Name      string          `json:"name"`
		Success   bool            `json:"success"`
		Output    json.RawMessage `json:"output"`
		SessionID string          `json:"sessionId"`
		Action    string          `json:"action"`
		Kind      string          `json:"artifact_type"`
	} `json:"payload"`
	raw string
}

// dialogue is a client of version 2 that types.
type dialogue struct {
	*testing.T
	ctx     context.Context
	ws      *websocket.Conn
	session string // its id
	seq     uint64
	frames  strings.Builder // all that the gateway has sent
}

// talk begins a session with the given settings, which are JSON.
func (g *gateway) talk(settings string) *dialogue {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ws, _, err := websocket.Dial(ctx, "ws://"+g.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{"vela.v2"}})
	if err != nil {
		g.Fatal(err)
	}
	ws.SetReadLimit(4 << 20)
	g.Cleanup(func() { _ = ws.CloseNow(); cancel() })
	d := &dialogue{T: g.T, ctx: ctx, ws: ws}
	d.settings(settings)
	return d
}

func (d *dialogue) settings(settings string) {
	d.Helper()
	d.send(`{"type":"session.start","payload":` + settings + `}`)
	ready := d.until(func(e event) bool { return e.Type == "session.state" && e.Payload.Value == "idle" })
	d.session = ready[0].Payload.SessionID
}

// close ends the session, and reads what still comes.
func (d *dialogue) close() {
	d.Helper()
	d.send(`{"type":"session.close","payload":{}}`)
	for {
		if _, frame, err := d.ws.Read(d.ctx); err != nil {
			return
		} else {
			d.frames.Write(append(frame, '\n'))
		}
	}
}

func (d *dialogue) send(text string) {
	d.Helper()
	if err := d.ws.Write(d.ctx, websocket.MessageText, []byte(text)); err != nil {
		d.Fatal(err)
	}
}

// next is the next message. Its number follows the one before.
func (d *dialogue) next() event {
	d.Helper()
	_, frame, err := d.ws.Read(d.ctx)
	if err != nil {
		d.Fatalf("%v, after\n%s", err, d.frames.String())
	}
	d.frames.Write(append(frame, '\n'))
	e := event{raw: string(frame)}
	if err := json.Unmarshal(frame, &e); err != nil {
		d.Fatalf("%v: %s", err, frame)
	}
	if e.Seq != 0 {
		if e.Seq != d.seq+1 {
			d.Errorf("number %d follows %d: %s", e.Seq, d.seq, frame)
		}
		d.seq = e.Seq
	}
	return e
}

// until reads up to a message that fits, and returns all of them.
func (d *dialogue) until(fits func(event) bool) []event {
	d.Helper()
	var all []event
	for {
		e := d.next()
		all = append(all, e)
		if fits(e) {
			return all
		}
	}
}

// say types, and waits for nothing.
func (d *dialogue) say(text string) {
	d.Helper()
	body, _ := json.Marshal(text) // a string always has a JSON
	d.send(`{"type":"input_text.submit","payload":{"text":` + string(body) + `}}`)
}

// turn is what came of one turn.
type turn struct {
	events []event
	text   string // of the answer
}

// end reads a turn to its end: the session is idle, after exactly one end of the answer.
func (d *dialogue) end() turn {
	d.Helper()
	t := turn{events: d.until(func(e event) bool { return e.Type == "session.state" && e.Payload.Value == "idle" })}
	ends := 0
	for _, e := range t.events {
		switch e.Type {
		case "response.text.delta":
			t.text += e.Payload.Text
		case "response.completed", "response.cancelled":
			ends++
		}
	}
	if ends != 1 {
		d.Errorf("%d ends of an answer:\n%s", ends, t)
	}
	return t
}

// ask types, and reads the turn to its end.
func (d *dialogue) ask(text string) turn {
	d.Helper()
	d.say(text)
	return d.end()
}

func (t turn) String() string {
	var b strings.Builder
	for _, e := range t.events {
		b.WriteString(e.raw + "\n")
	}
	return b.String()
}

// of is the events of one type.
func (t turn) of(kind string) []event {
	return slices.DeleteFunc(slices.Clone(t.events), func(e event) bool { return e.Type != kind })
}

// result is the result of one call.
func (t turn) result(callID string) event {
	for _, e := range t.of("tool.result") {
		if e.Payload.CallID == callID {
			return e
		}
	}
	return event{}
}

// answers checks that a turn has the given answer.
func (d *dialogue) answers(question, answer string) turn {
	d.Helper()
	t := d.ask(question)
	if t.text != answer || len(t.of("response.completed")) != 1 || len(t.of("error")) != 0 {
		d.Errorf("%q is not answered with %q:\n%s", question, answer, t)
	}
	return t
}

// fails checks that a turn ends with one error of the given code, in words that name nothing of the machine.
func (d *dialogue) fails(question, code, words string) turn {
	d.Helper()
	t := d.ask(question)
	d.failed(t, code, words)
	return t
}

func (d *dialogue) failed(t turn, code, words string) {
	d.Helper()
	errs, ends := t.of("error"), t.of("response.cancelled")
	if len(errs) != 1 || len(ends) != 1 || ends[0].Payload.Reason != "error" || ends[0].Payload.HeardText != t.text {
		d.Errorf("it has not failed as it should:\n%s", t)
		return
	}
	e := errs[0].Payload
	if e.Code != code || !strings.Contains(e.Message, words) {
		d.Errorf("the error is %s %q, want %s %q", e.Code, e.Message, code, words)
	}
	for _, leak := range []string{"127.0.0.1", "localhost", "http", "/tmp", modelKey} {
		if strings.Contains(e.Message, leak) {
			d.Errorf("the error names %q: %s", leak, e.Message)
		}
	}
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
`, "--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
			t.Run("scripts", func(t *testing.T) {
				each(t, "scripts/agents/*.vela", 15, func(t *testing.T, file string) { t.Parallel(); g.passes(t, file) })
			})
			askedFor(t, server)
			g.eventually("let go of both requests that were cancelled", func() bool { return through.left.Load() == 2 })
			aside.mu.Lock()
			if n := len(aside.asked); n != 2 || !strings.Contains(aside.asked[1], format.thought) {
				t.Errorf("%d requests, the last without the thought before its tool: %q", n, aside.asked)
			}
			aside.mu.Unlock()
			worked(t, filepath.Join(dir, "project"))

			chatted(t, g)
			code, table, errs := run(t, nil, "engines", "--config", filepath.Join(dir, "vela.yaml"), "--speech-model", t.TempDir())
			for _, line := range []string{`model +yes`, `slow +yes`, `locked +no .*401.*set the right key`, `nowhere +no .*cannot be reached.*the address right`} {
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
			noKey(t, data, map[string]string{"vela engines": table})
			noKey(t, journals, map[string]string{"/api/agents": report, "/metrics": metrics, "the log": g.stop()})
		})
	}
}

// askedFor looks at the requests that the scripts have led to.
func askedFor(t *testing.T, server *modelServer) {
	t.Helper()
	for said, want := range map[string][]string{
		"And who told you so?": { // after a turn with tools
			"user: Who buys the milk?",
			`assistant [milk1 grep {"pattern":"milk"}] [milk2 read_file {"path":"notes/list.txt"}]`,
			"tool milk1: notes/list.txt:1:buy milk\n",
			"tool milk2: buy milk\nAnna does\n",
			"assistant: Let me look.\nAnna buys it.",
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
