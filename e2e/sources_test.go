package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// call asks the gateway for something, and returns its answer.
func (g *gateway) call(method, path, body string) map[string]any {
	g.Helper()
	req, err := http.NewRequest(method, "http://"+g.addr+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	answer := map[string]any{}
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil || resp.StatusCode/100 != 2 {
		g.Fatalf("%s %s: %s, %s, %v", method, path, resp.Status, text, err)
	}
	return answer
}

// source is one of the gateway's sources.
func (g *gateway) source(id string) map[string]any {
	g.Helper()
	all, _ := g.call(http.MethodGet, "/api/sources", "")["sources"].([]any)
	for _, s := range all {
		if s, ok := s.(map[string]any); ok && s["id"] == id {
			return s
		}
	}
	return map[string]any{}
}

// follow reads the gateway's signals from now on. What it returns waits for the last of an episode, and returns them all.
func (g *gateway) follow() func(correlation string) []map[string]any {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	g.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.addr+"/__signals__/stream", nil)
	if err != nil {
		g.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != ": connected" {
		g.Fatalf("the stream begins with %q", lines.Text())
	}
	return func(correlation string) (all []map[string]any) {
		g.Helper()
		for lines.Scan() {
			var s map[string]any
			text, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || json.Unmarshal([]byte(text), &s) != nil || s["correlationId"] != correlation {
				continue
			}
			if all = append(all, s); s["type"] == "completion" || s["type"] == "error" {
				return all
			}
		}
		g.Fatalf("the stream ended behind %v", all)
		return nil
	}
}

// The model server of another make, as a source of either format: added, connected, asked, and heard with what the recorded
// answer holds.
func TestModelServersAsSources(t *testing.T) {
	server := models(t)
	at, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	// What speaks Anthropic's language is known by its address.
	front := httptest.NewServer(http.StripPrefix("/anthropic", httputil.NewSingleHostReverseProxy(at)))
	defer front.Close()
	g := serve(t)
	for _, x := range []struct {
		protocol, url string
		types         []string
	}{
		{"openai", server.url, []string{"task_dispatch", "thinking", "text_delta", "token_usage", "completion"}},
		{"anthropic", front.URL + "/anthropic", []string{"task_dispatch", "agent_state_change", "thinking", "text_delta", "token_usage", "completion"}},
	} {
		t.Run(x.protocol, func(t *testing.T) {
			g := &gateway{T: t, cmd: g.cmd, addr: g.addr, log: g.log}
			added := g.call(http.MethodPost, "/api/sources", fmt.Sprintf(`{"name":"%s of another make","url":%q,"key":%q}`, x.protocol, x.url, modelKey))
			id, _ := added["id"].(string)
			path := "/api/sources/" + url.PathEscape(id)
			g.call(http.MethodPost, path+"/connect", "")
			g.eventually("the source is connected", func() bool { return g.source(id)["state"] == "connected" })
			s := g.source(id)
			names, _ := s["models"].([]any)
			if s["protocol"] != x.protocol || s["hasKey"] != true || len(names) < 2 {
				t.Fatalf("it is %v", s)
			}
			if s = g.call(http.MethodPut, path+"/model", fmt.Sprintf(`{"model":%q}`, names[1])); s["model"] != names[1] {
				t.Errorf("chosen, it is %v", s)
			}
			episode := g.follow()
			correlation, _ := g.call(http.MethodPost, path+"/prompt", `{"text":"Say hello to the crew."}`)["correlationId"].(string)
			signals := episode(correlation)
			seen, text, thought := map[any]int{}, "", ""
			for _, s := range signals {
				seen[s["type"]]++
				payload, _ := s["payload"].(map[string]any)
				metadata, _ := s["metadata"].(map[string]any)
				if metadata["sourceId"] != id {
					t.Errorf("this came through no source: %v", s)
				}
				content, _ := payload["content"].(string)
				switch s["type"] {
				case "text_delta":
					text += content
				case "thinking":
					thought += content
				case "token_usage":
					if payload["promptTokens"] != 212.0 || payload["completionTokens"] != 9.0 {
						t.Errorf("the usage is %v", payload)
					}
				}
			}
			if text != "Hello, crew. All is well on board." || thought != "Greet them all." {
				t.Errorf("it said %q, and thought %q", text, thought)
			}
			for _, kind := range x.types {
				if seen[kind] == 0 {
					t.Errorf("no %s among %v", kind, seen)
				}
			}
			if seen["completion"] != 1 || len(seen) != len(x.types) {
				t.Errorf("the signals are %v", seen)
			}
			g.call(http.MethodPost, path+"/disconnect", "")
			if s := g.source(id); s["state"] != "disconnected" {
				t.Errorf("disconnected it is %v", s)
			}
		})
	}
	t.Run("a wrong key", func(t *testing.T) {
		g := &gateway{T: t, cmd: g.cmd, addr: g.addr, log: g.log}
		added := g.call(http.MethodPost, "/api/sources", fmt.Sprintf(`{"url":%q,"key":"sk-wrong"}`, server.url))
		id, _ := added["id"].(string)
		g.call(http.MethodPost, "/api/sources/"+url.PathEscape(id)+"/connect", "")
		g.eventually("the source is refused", func() bool { return g.source(id)["state"] == "error" })
		if why, _ := g.source(id)["error"].(string); !strings.Contains(why, "key") || strings.Contains(why, "sk-") {
			t.Errorf("it says %q", why)
		}
	})
	if log := g.stop(); strings.Contains(log, modelKey) {
		t.Errorf("the key is in the log:\n%s", log)
	}
}

// A gateway that is killed leaves its hooks behind. The next one replaces them, and takes them along when it stops.
func TestHooksOfAKilledGateway(t *testing.T) {
	project := t.TempDir()
	settings := filepath.Join(project, ".claude", "settings.local.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	const before = "{\n  \"permissions\": {\"allow\": []}\n}\n"
	if err := os.WriteFile(settings, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	text := func() string {
		b, err := os.ReadFile(settings)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	start := func() *gateway {
		g := serve(t, "--claude-code", "--claude-project", project)
		g.eventually("Claude Code is connected", func() bool { return g.source("local:claude-code")["state"] == "connected" })
		return g
	}
	killed := start()
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.cmd.Wait()
	left := text()
	if strings.Count(left, killed.addr) != 6 {
		t.Errorf("the killed one left\n%s", left)
	}
	next := start()
	if now := text(); strings.Count(now, next.addr) != 6 || strings.Count(now, "vela-tap") != 7 || killed.addr != next.addr && strings.Contains(now, killed.addr) {
		t.Errorf("with the next one there is\n%s", now)
	}
	next.stop()
	if now := text(); now != before {
		t.Errorf("afterwards there is\n%s", now)
	}
}

// A program that is told to end takes its time, and tap waits for it, however long that is: its exit code is the answer.
func TestTapLeavesAProgramItsTime(t *testing.T) {
	g := serve(t)
	cmd := exec.Command(program(t), "tap", "--endpoint", g.addr, "--", "node", "-e",
		`process.on("SIGTERM", () => setTimeout(() => process.exit(3), 6000)); setInterval(() => {}, 1000); console.log('{"type":"thinking","agentId":"me","content":"ready"}')`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "ready") {
		t.Fatalf("it says %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var code *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &code) || code.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
}
