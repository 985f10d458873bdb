package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	timeouts    string // where they are short
}{
	"garbage": {func(w http.ResponseWriter, _ *http.Request, _ string) {
		fmt.Fprintf(w, "data: {\"choices\":[{\"del\n\nevent: \x00\xff\xfe\ndata: 7\n\n%s\n\n", strings.Repeat("\xf0\x9f", 5000))
	}, "agent_failed", "", "", ""},
	"endless": {func(w http.ResponseWriter, r *http.Request, _ string) {
		for line := strings.Repeat("data: and so on ", 4096); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}, "agent_failed", "cannot be read", "", ""},
	"short": {func(w http.ResponseWriter, _ *http.Request, begin string) {
		_, _ = io.WriteString(w, begin)
	}, "agent_failed", "broke off", "Half of", ""},
	"silent": {func(_ http.ResponseWriter, r *http.Request, _ string) {
		<-r.Context().Done()
	}, "agent_timeout", "did not answer in time", "", "first_token: 400ms"},
	"stuck": {func(w http.ResponseWriter, r *http.Request, begin string) {
		_, _ = io.WriteString(w, begin)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, "agent_timeout", "in the middle", "Half of", "between: 400ms"},
	"page": {func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>Welcome to the router's settings</html>")
	}, "agent_failed", "does not answer with a stream", "", ""},
	"lost": {func(w http.ResponseWriter, r *http.Request, _ string) {
		http.NotFound(w, r)
	}, "agent_unavailable", "address is wrong", "", ""},
	"telltale": {func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
		fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"message":"no credit is left for %s"}}`, key, key, key)
	}, "agent_failed", "(400)", "", ""},
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
			for name, b := range badServers {
				config += fmt.Sprintf("  %s: {kind: %s, url: %q, model: m, key_env: E2E_MODEL_KEY, timeouts: {%s}}\n",
					name, format.kind, bad.URL+"/"+name+format.path, b.timeouts)
			}
			config += fmt.Sprintf("  good: {kind: %s, url: %q, model: m, key_env: E2E_MODEL_KEY}\n", format.kind, server.url+format.path)
			data, journals := t.TempDir(), t.TempDir()
			g, _ := serveAgents(t, config, "--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
			d := g.talk(t, `{"turns":"agent","agent":"good"}`)
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
