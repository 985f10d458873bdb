package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

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

// relay stands between a gateway and its model server. It keeps what was asked to the letter, and which requests the gateway
// let go of.
type relay struct {
	*httptest.Server

	mu          sync.Mutex
	asked, left []string // guarded by mu
}

// leftOf says whether a request with these words was let go of.
func (r *relay) leftOf(words string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.left, func(body string) bool { return strings.Contains(body, words) })
}

func relayTo(t *testing.T, address string) *relay {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{DisableKeepAlives: true}              // Node closes idle connections, perhaps just when one is taken
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
				r.mu.Lock()
				r.left = append(r.left, string(body))
				r.mu.Unlock()
			}
		}()
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}
