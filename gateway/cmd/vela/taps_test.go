package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"vela/gateway"
	"vela/gateway/auth"
)

// TestMain is also the program vela, where Claude Code's settings name this one for a hook.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hook" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// claudeCode does what Claude Code does with its hooks, as they stand in a file of settings.
type claudeCode struct {
	*testing.T
	settings string
}

// tell tells all hooks of an event, and returns how many there were.
func (c claudeCode) tell(event, fields string) (hooks int) {
	c.Helper()
	text, err := os.ReadFile(c.settings)
	if err != nil {
		c.Fatal(err)
	}
	var s struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Type, URL, Command string
				Headers            map[string]string
			}
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		c.Fatal(err)
	}
	body := `{"session_id":"s1","cwd":"/home/dev","hook_event_name":"` + event + `"` + fields + `}`
	for _, group := range s.Hooks[event] {
		for _, h := range group.Hooks {
			hooks++
			if h.Type == "command" {
				cmd := exec.Command("sh", "-c", h.Command)
				cmd.Stdin = strings.NewReader(body)
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					c.Errorf("%s: %v, and it says %q", event, err, out)
				}
				continue
			}
			if status, answer := c.post(h.URL, body, h.Headers); status != http.StatusOK || answer != "{}\n" {
				c.Errorf("%s is answered with %d %q", event, status, answer)
			}
		}
	}
	return hooks
}

func (c claudeCode) post(url, body string, header map[string]string) (int, string) {
	c.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// call asks the gateway for something.
func call(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("VELA_TOKEN"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s, %s, %v", method, url, resp.Status, answer, err)
	}
	return string(answer)
}

// sourceBecomes waits until a source is in a state, and returns it.
func sourceBecomes(t *testing.T, addr, id, state string) map[string]any {
	t.Helper()
	end := time.After(30 * time.Second)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		var all struct{ Sources []map[string]any }
		if err := json.Unmarshal([]byte(call(t, http.MethodGet, "http://"+addr+"/api/sources", "")), &all); err != nil {
			t.Fatal(err)
		}
		for _, s := range all.Sources {
			if s["id"] == id && s["state"] == state {
				return s
			}
		}
		select {
		case <-again.C:
		case <-end:
			t.Fatalf("%s does not become %s: %v", id, state, all.Sources)
		}
	}
}

func TestClaudeCodeIsHeard(t *testing.T) {
	project := t.TempDir()
	settings := filepath.Join(project, ".claude", "settings.local.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	const before = `{"permissions": {"allow": ["Bash(ls)"]}, "hooks": {"Stop": []}}`
	if err := os.WriteFile(settings, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	const key = "0123456789abcdef0123456789abcdef"
	keys, err := auth.ParseKeys("main:" + key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("VELA_TOKEN", key)
	addr := liveGateway(t, gateway.Config{Project: project, Keys: keys})
	var signals paper
	end := tail(t, &signals, "--since", "--json", "--url", addr)
	claude := claudeCode{t, settings}
	sourceBecomes(t, addr, "local:claude-code", "disconnected")
	if claude.tell("Stop", "") != 0 {
		t.Error("there are hooks before anybody wanted some")
	}
	if got := call(t, http.MethodPost, "http://"+addr+"/api/tap/connect", ""); got != `{"ok":true}`+"\n" {
		t.Errorf("connected: %s", got)
	}
	sourceBecomes(t, addr, "local:claude-code", "connected")
	long := strings.Repeat("line\\n", 100<<10)
	for _, x := range []struct{ event, fields, signal string }{
		{"SessionStart", `,"source":"startup"`, `"type":"agent_state_change"`},
		{"PreToolUse", `,"tool_name":"Read","tool_use_id":"t1","tool_input":{"file_path":"x"}`, `"payload":{"toolName":"Read","agentId":"claude","callId":"t1","input":{"file_path":"x"}}`},
		{"PostToolUse", `,"tool_name":"Read","tool_use_id":"t1","tool_input":{"file_path":"x"},"tool_response":{"file":{"content":"` + long + `"}}`, `"callId":"t1","success":true,"output":{"response":{"omitted":"`},
		{"PostToolUseFailure", `,"tool_name":"Bash","tool_use_id":"t2","error":"no"`, `"message":"no"`},
		{"SubagentStart", `,"agent_id":"a1","agent_type":"helper"`, `"taskId":"a1","from":"claude","to":"helper"`},
		{"SubagentStop", `,"agent_id":"a1","agent_type":"helper"`, `"taskId":"a1","agentId":"helper","success":true`},
		{"Stop", ``, `"from":"acting","to":"done"`},
	} {
		if n := claude.tell(x.event, x.fields); n != 1 {
			t.Errorf("%s has %d hooks", x.event, n)
		}
		signals.await(t, x.signal)
	}
	end()
	for line := range strings.Lines(signals.String()) {
		if !strings.Contains(line, `"sourceId":"local:claude-code"`) || !strings.Contains(line, `"source":"adapter:tap","correlationId":"s1"`) {
			t.Errorf("this is not Claude Code's: %s", line)
		}
	}
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	hook := "http://" + addr + "/api/tap/hook"
	if status, _ := claude.post(hook, "{}", map[string]string{"X-Vela-Tap": "guess"}); status != http.StatusForbidden {
		t.Errorf("a wrong token is answered with %d", status)
	}
	if bytes.Contains(text, []byte(key)) {
		t.Error("the server key stands in the settings")
	}
	call(t, http.MethodPost, "http://"+addr+"/api/tap/disconnect", "")
	if got, err := os.ReadFile(settings); err != nil || string(got) != before {
		t.Errorf("afterwards the settings are %s, %v", got, err)
	}
}

// Claude Code need not trust the certificate of a gateway with TLS: its hooks go to an address of this machine, at which
// there is nothing else.
func TestHooksOfAGatewayWithTLS(t *testing.T) {
	project := t.TempDir()
	settings := filepath.Join(project, ".claude", "settings.local.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	addr := liveGateway(t, gateway.Config{Project: project, TLS: gateway.TLS{Self: true, Folder: t.TempDir()}})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	send := func(method, url string, header map[string]string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = header["Host"]
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	signals := send(http.MethodGet, "https://"+addr+"/__signals__/stream", map[string]string{"Last-Event-ID": "0"})
	if resp := send(http.MethodPost, "https://"+addr+"/api/tap/connect", nil); resp.StatusCode != http.StatusOK {
		t.Fatalf("connect: %s", resp.Status)
	}
	claude := claudeCode{t, settings}
	for _, event := range []string{"SessionStart", "Stop"} { // by a command, and by http
		if n := claude.tell(event, ""); n != 1 {
			t.Errorf("%s has %d hooks", event, n)
		}
	}
	lines := bufio.NewScanner(signals.Body)
	for _, want := range []string{`"from":"idle","to":"thinking"`, `"from":"acting","to":"done"`} {
		for lines.Scan() && !strings.Contains(lines.Text(), want) {
		}
		if lines.Err() != nil {
			t.Fatalf("%s did not come: %v", want, lines.Err())
		}
	}
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	hook := regexp.MustCompile(`http://127\.0\.0\.1:\d+/api/tap/hook`).FindString(string(text))
	token := regexp.MustCompile(`"X-Vela-Tap": *"([^"]+)"`).FindStringSubmatch(string(text))
	if hook == "" || token == nil || strings.Contains(hook, addr) {
		t.Fatalf("the settings are %s", text)
	}
	base := strings.TrimSuffix(hook, "/api/tap/hook")
	for _, x := range []struct {
		method, url string
		header      map[string]string
		status      int
	}{
		{"POST", hook, map[string]string{"X-Vela-Tap": token[1]}, 200},
		{"POST", hook, map[string]string{"X-Vela-Tap": "guess"}, 403},
		{"POST", hook, map[string]string{"X-Vela-Tap": token[1], "Origin": "https://evil.example"}, 403},
		{"POST", hook, map[string]string{"X-Vela-Tap": token[1], "Host": "evil.example"}, 403},
		{"POST", base + "/api/tap/disconnect", map[string]string{"X-Vela-Tap": token[1]}, 404},
		{"GET", base + "/", nil, 404},
		{"GET", base + "/healthz", nil, 404},
	} {
		if resp := send(x.method, x.url, x.header); resp.StatusCode != x.status {
			t.Errorf("%s %s with %d headers: %s, want %d", x.method, x.url, len(x.header), resp.Status, x.status)
		}
	}
}

// A gateway that stops takes its hooks along.
func TestTheHooksEndWithTheGateway(t *testing.T) {
	project := t.TempDir()
	settings := filepath.Join(project, ".claude", "settings.local.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Addr: "127.0.0.1:0", Project: project, ClaudeCode: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	sourceBecomes(t, <-ready, "local:claude-code", "connected")
	if text, err := os.ReadFile(settings); err != nil || !strings.Contains(string(text), "vela-tap") {
		t.Errorf("%s, %v", text, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(settings); !os.IsNotExist(err) {
		t.Errorf("the file that was made is still there: %v", err)
	}
}

func TestWhyThereAreNoHooks(t *testing.T) {
	project := t.TempDir()
	if err := os.Mkdir(filepath.Join(project, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(project, ".claude", "settings.local.json")
	if err := os.WriteFile(settings, []byte("{ // mine\n}"), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := liveGateway(t, gateway.Config{Project: project})
	sourceBecomes(t, addr, "local:claude-code", "disconnected")
	call(t, http.MethodPost, "http://"+addr+"/api/sources/local%3Aclaude-code/connect", "")
	s := sourceBecomes(t, addr, "local:claude-code", "error")
	if why, _ := s["error"].(string); !strings.Contains(why, "is not JSON") || strings.Contains(why, project) {
		t.Errorf("it says %q", why)
	}
	if text, err := os.ReadFile(settings); err != nil || string(text) != "{ // mine\n}" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAMIDIDeviceIsASource(t *testing.T) {
	dir := t.TempDir()
	addr := liveGateway(t, gateway.Config{MIDI: dir})
	var signals paper
	defer tail(t, &signals, "--json", "--since", "--source", "local:midi:*", "--url", addr)()
	path := filepath.Join(dir, "midi-keys")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	sourceBecomes(t, addr, "local:midi:midi-keys", "disconnected") // long before the next scan
	call(t, http.MethodPost, "http://"+addr+"/api/sources/local%3Amidi%3Amidi-keys/connect", "")
	sourceBecomes(t, addr, "local:midi:midi-keys", "connected")
	if err := os.WriteFile(path, []byte{0xf8, 0x90, 60, 100, 60, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	signals.await(t, `"type":"midi.note_on"`)
	signals.await(t, `"source":"midi-keys","metadata":{"sourceId":"local:midi:midi-keys"},"payload":{"channel":1,"note":60,"velocity":0,"raw":[144,60,0]}}`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	sourceBecomes(t, addr, "local:midi:midi-keys", "unavailable")
}
