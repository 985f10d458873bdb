package server_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"vela/gateway/server"
)

// claude is a [server.Tap] that admits one token.
type claude struct{ told chan string }

func (claude) Admits(h http.Header) bool { return h.Get("X-Vela-Tap") == "right" }
func (c claude) Hear(told []byte)        { c.told <- string(told) }

func TestHooks(t *testing.T) {
	c := claude{make(chan string, 1)}
	g := serve(t, func(cfg *server.Config) { cfg.Tap, cfg.Auth = c, newAuthority(t, secret) })
	for _, x := range []struct {
		name, token, origin, body string
		status                    int
		answer                    string
	}{
		{"a hook", "right", "", `{"a":1}`, http.StatusOK, "{}\n"},
		{"one that is no JSON", "right", "", "nonsense", http.StatusOK, "{}\n"},
		{"one with a long file", "right", "", strings.Repeat("a", 8<<20), http.StatusOK, "{}\n"},
		{"too long", "right", "", strings.Repeat("a", 8<<20+1), http.StatusRequestEntityTooLarge, "too much"},
		{"another token", "wrong", "", "{}", http.StatusForbidden, "no hook of this gateway"},
		{"no token", "", "", "{}", http.StatusForbidden, "no hook of this gateway"},
		{"a foreign page", "right", "https://evil.example", "{}", http.StatusForbidden, "may not connect"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/api/tap/hook", strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", x.origin)
		req.Header.Set("X-Vela-Tap", x.token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != x.status || !bytes.Contains(answer, []byte(x.answer)) {
			t.Errorf("%s: %s, %s", x.name, resp.Status, answer)
		}
		told := ""
		select {
		case told = <-c.told:
		default:
		}
		if x.status == http.StatusOK && told != x.body || x.status != http.StatusOK && told != "" {
			t.Errorf("%s: %d bytes were heard", x.name, len(told))
		}
	}
	resp, err := http.Get("http://" + g.addr + "/api/tap/hook")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		t.Error("a hook is posted")
	}
}
