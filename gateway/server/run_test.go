package server_test

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"

	"vela/gateway/auth"
	"vela/gateway/server"
)

// stage is a [server.Run] that does as it is told.
type stage struct {
	on     bool
	wiring string
	fails  error
}

type mistakes []string

func (m mistakes) Error() string      { return "wrong" }
func (m mistakes) Mistakes() []string { return m }

func (s *stage) Status(context.Context) (any, error) { return map[string]bool{"on": s.on}, s.fails }
func (s *stage) Switch(_ context.Context, on bool) error {
	s.on = on
	return s.fails
}
func (s *stage) Wiring() []byte       { return []byte(s.wiring) }
func (s *stage) WiringSchema() []byte { return []byte(`{"title":"Wiring"}`) }
func (s *stage) Rewire(_ context.Context, text []byte) error {
	if string(text) == "wrong" {
		return mistakes{"/: here", "/: there"}
	}
	s.wiring = string(text)
	return s.fails
}
func (s *stage) Commands(context.Context) (iter.Seq2[[]byte, error], error) {
	if s.fails != nil {
		return nil, s.fails
	}
	return func(yield func([]byte, error) bool) {
		_ = yield([]byte(`{"command":"started"}`), nil) && yield(nil, errors.New("broken"))
	}, nil
}

func TestRunRoutes(t *testing.T) {
	s := &stage{wiring: "{}"}
	g := guard(t, func(c *server.Config) { c.Run = s })
	elsewhere := bearer(secret)
	elsewhere.Set("Origin", "https://elsewhere.example")
	mime := bearer(secret)
	mime.Set("Content-Type", "application/json")
	for _, x := range []struct {
		method, path string
		header       http.Header
		body         string
		status       int
		says         string
	}{
		{"GET", "/schema/wiring.json", nil, "", 200, `{"title":"Wiring"}`},
		{"GET", "/api/run", nil, "", 401, ""},
		{"GET", "/api/run", bearer(g.token(auth.Rights{})), "", 403, ""},
		{"GET", "/api/run", bearer(secret), "", 200, `{"on":false}`},
		{"POST", "/api/run", bearer(g.token(auth.Rights{})), `{"running":true}`, 403, ""},
		{"POST", "/api/run", elsewhere, `{"running":true}`, 403, "This page may not"},
		{"POST", "/api/run", mime, `{"running":"yes"}`, 400, "Say {"},
		{"POST", "/api/run", bearer(secret), `{"running":true}`, 400, "Say {"}, // of no type, as any page could send it
		{"POST", "/api/run", mime, `{"running":true}`, 200, `{"on":true}`},
		{"POST", "/api/run", mime, `{"running":false}`, 200, `{"on":false}`},
		{"GET", "/api/wiring", bearer(g.token(auth.Rights{})), "", 403, ""},
		{"GET", "/api/wiring", bearer(secret), "", 200, `{}`},
		{"PUT", "/api/wiring", bearer(g.token(auth.Rights{})), "new", 403, ""},
		{"PUT", "/api/wiring", elsewhere, "new", 403, "This page may not"},
		{"PUT", "/api/wiring", bearer(secret), "wrong", 400, `"mistakes":["/: here","/: there"]`},
		{"PUT", "/api/wiring", bearer(secret), strings.Repeat("x", 2<<20+1), 413, "too long"},
		{"PUT", "/api/wiring", bearer(secret), "new", 204, ""},
		{"GET", "/api/wiring", bearer(secret), "", 200, "new"},
		{"GET", "/__commands__/stream", bearer(g.token(auth.Rights{})), "", 403, ""},
		{"GET", "/__commands__/stream", elsewhere, "", 403, "This page may not"},
		{"GET", "/__commands__/stream", bearer(secret), "", 200, ": connected\n\ndata: {\"command\":\"started\"}\n\n"},
	} {
		status, _, text := g.request(x.method, x.path, x.header, x.body)
		if status != x.status || !strings.Contains(text, x.says) {
			t.Errorf("%s %s %.40q: %d %s, want %d %s", x.method, x.path, x.body, status, text, x.status, x.says)
		}
	}
	s.fails = errors.New("/secret/path")
	for _, x := range [][3]string{{"GET", "/api/run", ""}, {"POST", "/api/run", `{"running":true}`}, {"PUT", "/api/wiring", "new"}} {
		if status, _, text := g.request(x[0], x[1], mime, x[2]); status != 500 || strings.Contains(text, "secret") {
			t.Errorf("%v that fails: %d %s", x, status, text)
		}
	}
	if status, _, text := g.request("GET", "/__commands__/stream", mime, ""); status != 503 || strings.Contains(text, "secret") {
		t.Errorf("a stream that cannot be opened: %d %s", status, text)
	}
}

// A stream of commands has no places to come back to.
func TestCommandsHaveNoPlace(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.Run = &stage{} })
	resp, err := http.Get("http://" + g.addr + "/__commands__/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := g.lines(bufio.NewReader(resp.Body), `data: {"command":"started"}`); strings.Contains(got, "id:") {
		t.Errorf("%q", got)
	}
}
