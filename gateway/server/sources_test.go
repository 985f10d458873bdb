package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"vela/gateway/auth"
	"vela/gateway/server"
)

// others are [server.Sources] that say what they were asked.
type others struct {
	fails error
	watch chan string
}

type asked struct {
	What []any `json:"what"`
}

func (o *others) say(what ...any) (any, error) { return asked{what}, o.fails }

func (o *others) List(context.Context) (any, error) { return o.say("list") }
func (o *others) Scan(context.Context) (any, error) { return o.say("scan") }
func (o *others) Add(_ context.Context, name, url, key string) (any, error) {
	return o.say("add", name, url, key)
}
func (o *others) Remove(_ context.Context, id string) error         { return o.fails }
func (o *others) Connect(_ context.Context, id string) (any, error) { return o.say("connect", id) }
func (o *others) Disconnect(_ context.Context, id string) (any, error) {
	return o.say("disconnect", id)
}
func (o *others) SetKey(_ context.Context, id, key string) (any, error) { return o.say("key", id, key) }
func (o *others) PasteKey(_ context.Context, id string) (any, error)    { return o.say("paste", id) }
func (o *others) Choose(_ context.Context, id, model string) (any, error) {
	return o.say("choose", id, model)
}
func (o *others) Prompt(_ context.Context, id, text string) (string, error) {
	return id + " " + text, o.fails
}
func (o *others) Stop(context.Context, string) error { return o.fails }
func (o *others) Token() (string, error)             { return "claw", o.fails }
func (o *others) Tap(_ context.Context, on bool) error {
	return o.fails
}
func (o *others) Watch(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			select {
			case text, ok := <-o.watch:
				if !ok || !yield([]byte(text), nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

type turnedDown struct{}

func (turnedDown) Error() string          { return "/secret/path" }
func (turnedDown) Refusal() (int, string) { return 409, "Not now." }

// every route there is, with what it answers.
var sourceRoutes = []struct {
	method, path, body string
	status             int
	says               string
}{
	{"GET", "/api/sources", "", 200, `{"what":["list"]}`},
	{"POST", "/api/sources", `{"name":"Lab","url":"ws://x","key":"k"}`, 201, `{"what":["add","Lab","ws://x","k"]}`},
	{"POST", "/api/sources", `{"url":"ws://x"}`, 201, `{"what":["add","","ws://x",""]}`},
	{"POST", "/api/sources/scan", "", 200, `{"what":["scan"]}`},
	{"DELETE", "/api/sources/remote%3A1", "", 204, ""},
	{"POST", "/api/sources/remote%3A1/connect", "", 200, `{"what":["connect","remote:1"]}`},
	{"POST", "/api/sources/remote:1/connect", "", 200, `{"what":["connect","remote:1"]}`},
	{"POST", "/api/sources/local%3Amidi%3Aa%2Fb%25/disconnect", "", 200, `{"what":["disconnect","local:midi:a/b%"]}`},
	{"PUT", "/api/sources/remote%3A1/key", `{"key":"k"}`, 200, `{"what":["key","remote:1","k"]}`},
	{"PUT", "/api/sources/remote%3A1/key", `{"key":""}`, 200, `{"what":["key","remote:1",""]}`},
	{"POST", "/api/sources/local%3Aopenclaw/key/paste", "", 200, `{"what":["paste","local:openclaw"]}`},
	{"PUT", "/api/sources/remote%3A1/model", `{"model":"m"}`, 200, `{"what":["choose","remote:1","m"]}`},
	{"POST", "/api/sources/remote%3A1/prompt", `{"text":"hi"}`, 200, `{"correlationId":"remote:1 hi"}`},
	{"POST", "/api/sources/remote%3A1/stop", "", 204, ""},
	{"POST", "/api/tap/connect", "", 200, `{"ok":true}`},
	{"POST", "/api/tap/disconnect", "", 200, `{"ok":true}`},
	{"GET", "/api/openclaw/token", "", 200, `{"ok":true,"token":"claw"}`},
}

func TestSourceRoutes(t *testing.T) {
	o := &others{}
	g := guard(t, func(c *server.Config) { c.Sources = o })
	with := func(bearing http.Header, more ...string) http.Header {
		h := bearing.Clone()
		if h == nil {
			h = http.Header{}
		}
		h.Set("Content-Type", "application/json")
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	for _, x := range sourceRoutes {
		for _, y := range []struct {
			header http.Header
			status int
			says   string
		}{
			{with(nil), 401, ""},
			{with(bearer(g.token(auth.Rights{}))), 403, ""},
			{with(bearer(secret), "Origin", "https://elsewhere.example"), 403, "This page may not"},
			{with(bearer(secret)), x.status, x.says},
			{with(bearer(secret), "Origin", "http://"+g.addr), x.status, x.says},
		} {
			status, _, text := g.request(x.method, x.path, y.header, x.body)
			if status != y.status || !strings.Contains(text, y.says) {
				t.Errorf("%s %s with %v: %d %s, want %d %s", x.method, x.path, y.header, status, text, y.status, y.says)
			}
		}
	}
	for _, x := range []struct {
		method, path, body, says string
		header                   http.Header
		status                   int
	}{
		{"POST", "/api/sources", `{"url":`, "application/json", with(bearer(secret)), 400},
		{"POST", "/api/sources", `{"url":"ws://x"}`, "application/json", bearer(secret), 400}, // of no type, as any page could send it
		{"POST", "/api/sources", `{"url":"` + strings.Repeat("x", 16<<10) + `"}`, "at most 16 KiB", with(bearer(secret)), 413},
		{"PUT", "/api/sources/remote:1/key", `{}`, "forget it", with(bearer(secret)), 400},
		{"GET", "/api/openclaw/token", "", "this machine alone", with(bearer(secret), "X-Forwarded-For", "192.0.2.1"), 403},
	} {
		if status, _, text := g.request(x.method, x.path, x.header, x.body); status != x.status || !strings.Contains(text, x.says) {
			t.Errorf("%s %s %.40q: %d %s, want %d %s", x.method, x.path, x.body, status, text, x.status, x.says)
		}
	}
	for _, fails := range []error{fmt.Errorf("x: %w", turnedDown{}), errors.New("/secret/path")} {
		o.fails = fails
		for _, x := range sourceRoutes {
			status, _, text := g.request(x.method, x.path, with(bearer(secret)), x.body)
			want := 500
			tap := strings.HasPrefix(x.path, "/api/tap")
			switch {
			case tap && errors.As(fails, &turnedDown{}):
				if strings.TrimSpace(text) != `{"error":"Not now.","ok":false}` {
					t.Errorf("%s: %s", x.path, text)
				}
			case x.path == "/api/openclaw/token":
				want = 200
			case errors.As(fails, &turnedDown{}):
				want = 409
			}
			if status != want || strings.Contains(text, "secret") || want == 409 && !strings.Contains(text, `"message":"Not now."`) || want == 200 && strings.TrimSpace(text) != `{"ok":false}` {
				t.Errorf("%s %s that fails: %d %s, want %d", x.method, x.path, status, text, want)
			}
		}
	}
}

func TestSourcesAreWatched(t *testing.T) {
	o := &others{watch: make(chan string)}
	g := serve(t, func(c *server.Config) { c.Sources = o })
	req, err := http.NewRequestWithContext(g.ctx, http.MethodGet, "http://"+g.addr+"/api/sources/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	o.watch <- `{"sources":[]}`
	o.watch <- `{"sources":[1]}`
	if got, want := g.lines(r, `data: {"sources":[1]}`), ": connected\n\ndata: {\"sources\":[]}\n\ndata: {\"sources\":[1]}\n"; got != want {
		t.Errorf("the stream is %q, want %q", got, want)
	}
	req.Header.Set("Origin", "https://elsewhere.example")
	refused, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Body.Close()
	if refused.StatusCode != 403 {
		t.Errorf("a foreign page: %d", refused.StatusCode)
	}
}
