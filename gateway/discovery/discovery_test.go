package discovery

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vela/gateway/closedport"
)

// patient is more than any answer takes here; a test that needs it all fails.
const patient = 30 * time.Second

// serve is a server that gives one answer.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Method != http.MethodGet {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestWhatIsFound(t *testing.T) {
	nobody := Config{Dir: t.TempDir(), OpenClaw: closedport.New(t), LMStudio: "http://" + closedport.New(t), Ollama: "http://" + closedport.New(t), Within: patient}
	claude := filepath.Join(t.TempDir(), "a", "b")
	if err := os.MkdirAll(filepath.Join(filepath.Dir(claude), ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		change func(*Config)
		id     string // of the service in question
		found  bool
		models string
	}{
		"a .claude folder above":         {func(c *Config) { c.Dir = claude }, ClaudeCode, true, ""},
		"OpenClaw":                       {func(c *Config) { c.OpenClaw = strings.TrimPrefix(serve(t, says(200, "")), "http://") }, OpenClaw, true, ""},
		"a list of models":               {func(c *Config) { c.LMStudio = serve(t, says(200, `{"object":"list","data":[{"id":"a"},{"id":"b"}]}`)) }, LMStudio, true, "a,b"},
		"no model":                       {func(c *Config) { c.Ollama = serve(t, says(200, `{"object":"list","data":null}`)) }, Ollama, true, ""},
		"a list that is none":            {func(c *Config) { c.Ollama = serve(t, says(200, `{"data":"x"}`)) }, Ollama, true, ""},
		"another good status":            {func(c *Config) { c.Ollama = serve(t, says(206, `{}`)) }, Ollama, true, ""},
		"a refusal":                      {func(c *Config) { c.LMStudio = serve(t, says(401, `{"data":[{"id":"a"}]}`)) }, LMStudio, false, ""},
		"a refusal with a good status":   {func(c *Config) { c.LMStudio = serve(t, says(200, `{"error":"Unexpected endpoint"}`)) }, LMStudio, false, ""},
		"no JSON":                        {func(c *Config) { c.LMStudio = serve(t, says(200, `<html>`)) }, LMStudio, false, ""},
		"a redirect":                     {func(c *Config) { c.LMStudio = serve(t, http.RedirectHandler("http://example.org/", 302).ServeHTTP) }, LMStudio, false, ""},
		"an answer that is far too long": {func(c *Config) { c.LMStudio = serve(t, says(200, `"`+strings.Repeat("x", maxList)+`"`)) }, LMStudio, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := nobody
			x.change(&c)
			var order []string
			for _, s := range c.Look(t.Context()) {
				order = append(order, s.ID)
				if want := s.ID == x.id && x.found; s.Available != want {
					t.Errorf("%s is available: %v", s.ID, s.Available)
				}
				if got := strings.Join(s.Models, ","); s.ID == x.id && got != x.models || s.Models == nil {
					t.Errorf("%s has the models %q, want %q", s.ID, got, x.models)
				}
			}
			if got := strings.Join(order, " "); got != "local:claude-code local:openclaw local:lm-studio local:ollama" {
				t.Errorf("the services are %s", got)
			}
		})
	}
}

// Both servers answer only once the other was asked, too.
func TestAllAreAskedAtOnce(t *testing.T) {
	var asked sync.WaitGroup
	asked.Add(2)
	answer := func(w http.ResponseWriter, _ *http.Request) {
		asked.Done()
		asked.Wait()
		_, _ = w.Write([]byte(`{"data":[]}`))
	}
	c := Config{Dir: t.TempDir(), OpenClaw: closedport.New(t), LMStudio: serve(t, answer), Ollama: serve(t, answer), Within: patient}
	for _, s := range c.Look(t.Context())[2:] {
		if !s.Available {
			t.Errorf("%s was asked alone", s.ID)
		}
	}
}

// A server that never answers is not there, and is not waited for.
func TestASlowOneIsNotWaitedFor(t *testing.T) {
	hang := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := Config{Dir: t.TempDir(), OpenClaw: closedport.New(t), LMStudio: hang, Ollama: hang, Within: 20 * time.Millisecond}
	for _, s := range c.Look(t.Context()) {
		if s.Available {
			t.Errorf("%s is available", s.ID)
		}
	}
	c.Within = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Look(ctx) // ends with its context
}

func TestDevicesComeLast(t *testing.T) {
	c := Config{Dir: t.TempDir(), OpenClaw: closedport.New(t), LMStudio: "http://" + closedport.New(t), Ollama: ":bad", Within: patient,
		Devices: func() []Service { return []Service{{ID: "local:midi:1", Protocol: "midi", Available: true}} }}
	all := c.Look(t.Context())
	text, err := json.Marshal(all[len(all)-1])
	if want := `{"id":"local:midi:1","label":"","protocol":"midi","url":"","available":true,"models":[]}`; err != nil || len(all) != 5 || string(text) != want {
		t.Errorf("%v, %s", err, text)
	}
	text, err = json.Marshal(all[1])
	if want := `{"id":"local:openclaw","label":"OpenClaw","protocol":"openclaw","url":"ws://` + c.OpenClaw + `","available":false,"needsApiKey":true,"models":[]}`; err != nil || string(text) != want {
		t.Errorf("%v, %s", err, text)
	}
}

// What lies at home is Claude Code's own, and not above every project.
func TestClaudeCodesOwnFolderIsNoProject(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	project := filepath.Join(home, "work", "project")
	for _, dir := range []string{filepath.Join(home, ".claude"), project} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if folder, ok := ClaudeFolder(project); ok {
		t.Errorf("the project's is %s", folder)
	}
	if folder, ok := ClaudeFolder(home); !ok || folder != filepath.Join(home, ".claude") {
		t.Errorf("at home it is %q", folder)
	}
	if err := os.Mkdir(filepath.Join(home, "work", ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if folder, ok := ClaudeFolder(project); !ok || folder != filepath.Join(home, "work", ".claude") {
		t.Errorf("the project's is %q", folder)
	}
}
