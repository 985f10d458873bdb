package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// begins is how an answer in each format begins: with the words "Half of".
var begins = map[string]string{
	"openai": `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Half of"}}]}` + "\n\n",
	"anthropic": "event: message_start\n" +
		`data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Half of"}}` + "\n\n",
}

// badServers answer as no server should: what each does once it has been asked, and what becomes of the turn.
var badServers = map[string]struct {
	answer      func(w http.ResponseWriter, r *http.Request, begin string)
	code, words string
	text        string // that was shown all the same
}{
	"garbage": {func(w http.ResponseWriter, _ *http.Request, _ string) {
		fmt.Fprintf(w, "data: {\"choices\":[{\"del\n\nevent: \x00\xff\xfe\ndata: 7\n\n%s\n\n", strings.Repeat("\xf0\x9f", 5000))
	}, "agent_failed", "", ""},
	"endless": {func(w http.ResponseWriter, r *http.Request, _ string) {
		for line := strings.Repeat("data: and so on ", 4096); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}, "agent_failed", "cannot be read", ""},
	"short": {func(w http.ResponseWriter, _ *http.Request, begin string) {
		_, _ = io.WriteString(w, begin)
	}, "agent_failed", "broke off", "Half of"},
	"silent": {func(_ http.ResponseWriter, r *http.Request, _ string) {
		<-r.Context().Done()
	}, "agent_timeout", "did not answer in time", ""},
	"stuck": {func(w http.ResponseWriter, r *http.Request, begin string) {
		_, _ = io.WriteString(w, begin)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, "agent_timeout", "in the middle", "Half of"},
	"page": {func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>Welcome to the router's settings</html>")
	}, "agent_failed", "does not answer with a stream", ""},
	"lost": {func(w http.ResponseWriter, r *http.Request, _ string) {
		http.NotFound(w, r)
	}, "agent_unavailable", "address is wrong", ""},
	"telltale": {func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
		fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"message":"no credit is left for %s"}}`, key, key, key)
	}, "agent_failed", "(400)", ""},
}

// TestBadModelServers: whatever a model's server does, the turn ends with one clear error, half an answer does not pass for
// one, the request upstream ends, and the session goes on with another agent. The operator learns more than the client,
// and nobody the key.
func TestBadModelServers(t *testing.T) {
	t.Setenv("E2E_MODEL_KEY", modelKey)
	server := models(t)
	for _, format := range formats {
		t.Run(format.kind, func(t *testing.T) {
			t.Parallel()
			bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
				w.Header().Set("Content-Type", "text/event-stream")
				badServers[name].answer(w, r, begins[format.kind])
			}))
			t.Cleanup(bad.Close) // it waits for every request
			config := "agents:\n"
			for name := range badServers {
				config += fmt.Sprintf("  %s: {kind: %s, url: %q, model: m, key_env: E2E_MODEL_KEY, timeouts: {first_token: 400ms, between: 400ms}}\n",
					name, format.kind, bad.URL+"/"+name+format.path)
			}
			config += fmt.Sprintf("  good: {kind: %s, url: %q, model: m, key_env: E2E_MODEL_KEY}\n", format.kind, server.url+format.path)
			data, journals := t.TempDir(), t.TempDir()
			g, _ := serveAgents(t, config, "--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
			d := g.talk(`{"turns":"agent","agent":"good"}`)
			for name, bad := range badServers {
				d.settings(`{"agent":"` + name + `"}`)
				if failed := d.fails("And now?", bad.code, bad.words); failed.text != bad.text {
					t.Errorf("%s: %q was shown", name, failed.text)
				}
				d.settings(`{"agent":"good"}`)
				d.answers("And now?", "Now I am whole.")
			}
			d.close()
			_, report := g.get("/api/agents")
			_, metrics := g.get("/metrics")
			log := g.stop()
			noKey(t, data, map[string]string{"/api/agents": report, "/metrics": metrics, "the log": log, "the events": d.frames.String()})
			noKey(t, journals, nil)
			for _, cause := range []string{"no credit is left", "router's settings", "no event came within 400ms"} {
				if !strings.Contains(log, cause) {
					t.Errorf("the log does not say %q to the operator", cause)
				}
			}
		})
	}
}

// gone says whether the processes whose numbers a file holds have ended.
func gone(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s holds %q", file, text)
		}
		if syscall.Kill(pid, 0) == nil {
			return false
		}
	}
	return true
}

// TestTools: tools that run at once, that hang, that are cancelled, and that are asked for what they may not touch.
func TestTools(t *testing.T) {
	t.Setenv("E2E_MODEL_KEY", modelKey)
	for _, format := range formats {
		t.Run(format.kind, func(t *testing.T) { t.Parallel(); tools(t, format.kind, format.path) })
	}
}

func tools(t *testing.T, kind, path string) {
	server := models(t)
	data, journals := t.TempDir(), t.TempDir()
	g, dir := serveAgents(t, fmt.Sprintf(
		"agents:\n  model: {kind: %s, url: %q, model: m, key_env: E2E_MODEL_KEY, tools: {root: project, bash: true, rules: {bash: allow}}}\n", kind, server.url+path),
		"--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
	project := filepath.Join(dir, "project")
	d := g.talk(`{"turns":"agent"}`)

	t.Run("two at once", func(t *testing.T) { // each waits for a file that the other makes
		both := d.answers("Do both at once.", "Both are done.")
		if calls, results := both.of("tool.call"), both.of("tool.result"); len(calls) != 2 || len(results) != 2 {
			t.Errorf("%d calls and %d results", len(calls), len(results))
		}
		for id, want := range map[string]string{"both1": `{"content":"first\n"}`, "both2": `{"content":"second\n"}`} {
			if r := both.result(id).Payload; !r.Success || string(r.Output) != want {
				t.Errorf("%s gave %s, want %s", id, r.Output, want)
			}
		}
		asked := server.requests("Do both at once.")
		want := []string{"tool both1: first\n", "tool both2: second\n"}
		if got := outline(asked[len(asked)-1]); len(got) != 4 || got[2] != want[0] || got[3] != want[1] {
			t.Errorf("the model was given %q, want %q at the end", got, want)
		}
	})

	t.Run("one that hangs", func(t *testing.T) {
		hung := d.answers("Wait for ever.", "It took too long.")
		if r := hung.result("hang1").Payload; r.Success || !strings.Contains(string(r.Output), "was stopped") {
			t.Errorf("it gave %s", r.Output)
		}
		if !gone(t, filepath.Join(project, "pids")) {
			t.Error("the command still runs")
		}
	})

	t.Run("one that is cancelled", func(t *testing.T) {
		d.say("Wait until I cancel.")
		d.until(func(e event) bool { return e.Type == "tool.call" })
		g.eventually("started", func() bool {
			text, _ := os.ReadFile(filepath.Join(project, "pids"))
			return strings.Count(string(text), "\n") == 2
		})
		d.send(`{"type":"response.cancel","payload":{}}`)
		cancelled := d.end()
		if ends := cancelled.of("response.cancelled"); len(ends) != 1 || ends[0].Payload.Reason != "client" || len(cancelled.of("tool.result")) != 0 {
			t.Errorf("it was not just cancelled:\n%s", cancelled)
		}
		g.eventually("ended with its turn", func() bool { return gone(t, filepath.Join(project, "pids")) })
		d.answers("And now?", "Now I am whole.")
		outlined := outline(server.requests("And now?")[0])
		if last := outlined[len(outlined)-2]; !strings.Contains(last, "interrupted") && !strings.Contains(last, "not finished") {
			t.Errorf("the next turn was asked with %q", outlined)
		}
	})

	t.Run("what they may not touch", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("a treasure\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../secret.txt", filepath.Join(project, "link")); err != nil {
			t.Fatal(err)
		}
		sparse(t, filepath.Join(project, "huge.bin"), "")
		before := g.metric("process_resident_memory_bytes")
		refused := d.answers("Look where you may not.", "I may not.")
		for id, words := range map[string]string{
			"out1": "leads out of the folder", "out2": "leads out of the folder", "out3": "leads out of the folder",
			"out4": "is binary", "out5": "There is no", "out6": "There is no tool",
		} {
			r := refused.result(id).Payload
			if r.Success || !strings.Contains(string(r.Output), words) {
				t.Errorf("%s gave %s, want %q", id, r.Output, words)
			}
		}
		if n := len(refused.of("artifact")); n != 6 {
			t.Errorf("%d artifacts, want an error for each", n)
		}
		for _, leak := range []string{"treasure", dir, "root:"} {
			if strings.Contains(refused.String(), leak) {
				t.Errorf("%q was shown", leak)
			}
		}
		if after := g.metric("process_resident_memory_bytes"); after > before+64e6 {
			t.Errorf("%.0f MB before, %.0f MB after a file of 1 GB", before/1e6, after/1e6)
		}
	})

	t.Run("a text of 1 GB", func(t *testing.T) {
		sparse(t, filepath.Join(project, "huge.txt"), strings.Repeat("all work and no play\n", 20_000))
		before := g.metric("process_resident_memory_bytes")
		read := d.answers("Read all of it.", "That is a lot.")
		r := read.result("huge1").Payload
		if !r.Success || len(r.Output) > 64<<10 || !strings.Contains(string(r.Output), "cut") {
			t.Errorf("%t, %d bytes were shown: %.200s", r.Success, len(r.Output), r.Output)
		}
		if after := g.metric("process_resident_memory_bytes"); after > before+64e6 {
			t.Errorf("%.0f MB before, %.0f MB after a file of 1 GB", before/1e6, after/1e6)
		}
	})

	t.Run("the environment", func(t *testing.T) {
		shown := d.answers("What is in your environment?", "Nothing much.")
		if r := shown.result("env1").Payload; !r.Success || !strings.Contains(string(r.Output), "PATH=") || strings.Contains(string(r.Output), "E2E_MODEL_KEY") {
			t.Errorf("it gave %s", r.Output)
		}
	})

	d.close()
	log := g.stop()
	noKey(t, data, map[string]string{"the log": log, "the events": d.frames.String()})
	noKey(t, journals, nil)
	asked, _ := json.Marshal(server.requests("Look where you may not."))
	noKey(t, project, map[string]string{"the model's prompts": string(asked)})
}

// sparse makes a file of 1 GB that takes hardly any room, and begins with the text.
func sparse(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 1<<30); err != nil {
		t.Fatal(err)
	}
}
