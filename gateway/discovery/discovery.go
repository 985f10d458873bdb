// Package discovery looks for agents and models that run on this machine.
//
// Start at [Config.Look], which asks all of them at once and keeps nothing. What to do with what was found is for the
// caller.
package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vela/turn/openai"
)

// Service is something that may run on this machine, whether or not it does.
type Service struct {
	ID          string   `json:"id"` // always the same for the same service
	Label       string   `json:"label"`
	Protocol    string   `json:"protocol"` // sse, openclaw, openai or midi
	URL         string   `json:"url"`
	Available   bool     `json:"available"`
	NeedsAPIKey bool     `json:"needsApiKey,omitempty"`
	Models      []string `json:"models"` // of a model server
}

// The services that are always looked for.
const (
	ClaudeCode = "local:claude-code"
	OpenClaw   = "local:openclaw"
	LMStudio   = "local:lm-studio"
	Ollama     = "local:ollama"
)

// OpenClawAt is where OpenClaw listens unless somebody has moved it.
const OpenClawAt = "127.0.0.1:18789"

// Config says where to look. The zero value is where these services are unless somebody has moved them.
type Config struct {
	Dir      string // Claude Code works here or above; "." by default
	OpenClaw string // host:port; [OpenClawAt] by default
	LMStudio string // base address; http://127.0.0.1:1234 by default
	Ollama   string // base address; http://127.0.0.1:11434 by default

	Within time.Duration // how long a service may take to answer; 300 ms by default

	// Devices lists the MIDI devices; nil: there are none.
	Devices func() []Service
}

// maxList bounds a list of models, in bytes.
const maxList = 1 << 20

// Look asks every service, all at the same time, and returns within the time that each has: no slow one delays another,
// and none is left out. The four services come in a fixed order, devices after them.
func (c Config) Look(ctx context.Context) []Service {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Within, 300*time.Millisecond))
	defer cancel()
	address := cmp.Or(c.OpenClaw, OpenClawAt)
	all := []Service{
		{ID: ClaudeCode, Label: "Claude Code", Protocol: "sse", URL: "/__signals__/stream"},
		{ID: OpenClaw, Label: "OpenClaw", Protocol: "openclaw", URL: "ws://" + address, NeedsAPIKey: true},
		{ID: LMStudio, Label: "LM Studio", Protocol: "openai", URL: cmp.Or(c.LMStudio, "http://127.0.0.1:1234"), NeedsAPIKey: true},
		{ID: Ollama, Label: "Ollama", Protocol: "openai", URL: cmp.Or(c.Ollama, "http://127.0.0.1:11434")},
	}
	client := &http.Client{
		Transport:     &http.Transport{DialContext: (&net.Dialer{}).DialContext}, // no proxy: it is this machine
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	var probes sync.WaitGroup
	probes.Go(func() { _, all[0].Available = ClaudeFolder(cmp.Or(c.Dir, ".")) })
	probes.Go(func() { all[1].Available = answers(ctx, address) })
	for i := 2; i < len(all); i++ {
		probes.Go(func() { all[i].Models, all[i].Available = models(ctx, client, all[i].URL) })
	}
	probes.Wait()
	if c.Devices != nil {
		all = append(all, c.Devices()...)
	}
	for i := range all {
		if all[i].Models == nil {
			all[i].Models = []string{}
		}
	}
	return all
}

// ClaudeFolder is the nearest folder .claude, from dir upwards. It is not made where there is none. The one at home is
// Claude Code's own, and that of a project only for who works just there.
func ClaudeFolder(dir string) (string, bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	home, _ := os.UserHomeDir() // without one, none is Claude Code's own
	for begin := dir; ; {
		folder := filepath.Join(dir, ".claude")
		if info, err := os.Stat(folder); err == nil && info.IsDir() && (dir != home || dir == begin) {
			return folder, true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", false
		}
		dir = above
	}
}

// answers says whether somebody takes connections there.
func answers(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// models asks a server for its models. It is there if it answers with JSON, even if that lists none.
func models(ctx context.Context, client *http.Client, base string) ([]string, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/models", nil)
	if err != nil {
		return nil, false
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, false
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	if err != nil || resp.StatusCode/100 != 2 || !json.Valid(body) {
		return nil, false
	}
	names, err := openai.ParseModels(body)
	return names, err == nil || !isRefusal(body)
}

// isRefusal says whether a JSON text is nothing but an error, which some servers send with a good status.
func isRefusal(body []byte) bool {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(body, &answer) == nil && len(answer.Error) > 0 && string(answer.Error) != "null"
}
