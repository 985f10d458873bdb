package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tools stands in for an MCP server with so many tools, which takes the key the-key.
func tools(t *testing.T, n int) *httptest.Server {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i+1))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"params"`
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &asked) != nil || asked.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"error":{"code":-32601,"message":"what?"}`
		switch asked.Method {
		case "initialize":
			answer = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`, asked.Params.ProtocolVersion)
		case "tools/list":
			answer = `"result":{"tools":[` + strings.Join(list, ",") + `]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, asked.ID, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// Every MCP server of the file is asked whether it is there, in the file's order, whether an agent uses it or not; why it
// is not, and what to do, is for the operator alone.
func TestServersAreProbed(t *testing.T) {
	t.Setenv("TEST_MCP_KEY", "the-key")
	t.Setenv("TEST_WRONG_KEY", "another-key")
	name := filepath.Join(t.TempDir(), "vela.yaml")
	text := fmt.Sprintf(`
agents:
  one: {kind: openai, url: "http://127.0.0.1:1/v1", tools: {mcp: [there, dead]}}
  two: {kind: openai, url: "http://127.0.0.1:1/v1", tools: {mcp: [there]}}
mcp:
  dead: {command: ["false"]}
  there: {url: %[1]q, key_env: TEST_MCP_KEY}
  many: {url: %[2]q, key_env: TEST_MCP_KEY}
  locked: {url: %[1]q, key_env: TEST_WRONG_KEY}
  keyless: {url: %[1]q, key_env: SK_TEST_NOT_SET}
`, tools(t, 2).URL, tools(t, 10).URL)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Agents: f})
	if err != nil {
		t.Fatal(err)
	}
	_, servers := g.Probe(t.Context())
	if len(servers) != 5 {
		t.Fatalf("%d servers: %+v", len(servers), servers)
	}
	for i, want := range []struct {
		name, label string
		cause       []string // of one that is not there
	}{
		{"dead", "used by one", []string{"exit status 1", "by hand"}},
		{"there", "with there_t1 there_t2, used by one, two", nil},
		{"many", "with many_t1 many_t2 many_t3 many_t4 many_t5 many_t6 many_t7 many_t8 and 2 more, no agent uses it: name it in tools.mcp of one", nil},
		{"locked", "no agent uses it: name it in tools.mcp of one", []string{"401", "key_env"}},
		{"keyless", "no agent uses it: name it in tools.mcp of one", []string{"vela.yaml, line 10: mcp server keyless: ", "not set"}},
	} {
		got := servers[i]
		if got.Name != want.name || got.Label != want.label || got.Available != (want.cause == nil) || got.Available != (got.Cause == nil) {
			t.Errorf("%+v, want %+v", got, want)
			continue
		}
		for _, part := range want.cause {
			if !strings.Contains(got.Cause.Error(), part) {
				t.Errorf("%s: no %q in %v", got.Name, part, got.Cause)
			}
		}
		public, _ := json.Marshal(got)
		for _, secret := range []string{"-key", "SK_TEST", "127.0.0.1", filepath.Dir(name)} {
			if strings.Contains(string(public), secret) {
				t.Errorf("%q is in %s", secret, public)
			}
		}
		for _, key := range []string{"-key", "SK_TEST"} {
			if strings.Contains(fmt.Sprint(got.Cause), key) {
				t.Errorf("%q is in %v", key, got.Cause)
			}
		}
	}
}
