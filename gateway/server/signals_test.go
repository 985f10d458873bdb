package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"vela/gateway/auth"
	"vela/gateway/server"
	"vela/protocol/signal"
)

// log is a [server.Signals] that a test writes to.
type log struct {
	entries chan server.LoggedSignal
	places  chan string // asked for
	left    atomic.Int32
	err     error
}

func newLog() *log {
	return &log{entries: make(chan server.LoggedSignal), places: make(chan string, 512)}
}

func (l *log) Accept(body []byte) (string, error) {
	if len(body) > signal.MaxSize {
		return "long", errors.New("too long")
	}
	if string(body) == "bad" {
		return "wrong", errors.New("that is no signal")
	}
	return "id of " + string(body), nil
}

func (l *log) Follow(ctx context.Context, place string) (iter.Seq2[server.LoggedSignal, error], error) {
	return func(yield func(server.LoggedSignal, error) bool) {
		defer l.left.Add(1)
		l.places <- place
		for {
			select {
			case e, ok := <-l.entries:
				if !ok {
					yield(server.LoggedSignal{}, errors.New("broken"))
					return
				}
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(server.LoggedSignal{}, context.Cause(ctx))
				return
			}
		}
	}, nil
}

// stream opens the event stream.
func (g *gateway) stream(header http.Header) *http.Response {
	g.Helper()
	req, err := http.NewRequestWithContext(g.ctx, http.MethodGet, "http://"+g.addr+"/__signals__/stream", nil)
	if err != nil {
		g.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func withLog(l *log) func(*server.Config) { return func(c *server.Config) { c.Signals = l } }

func TestSignalsArePosted(t *testing.T) {
	g := serve(t, withLog(newLog()))
	for _, x := range []struct {
		body   string
		header http.Header
		status int
		says   string
	}{
		{`{"type":"x"}`, nil, 200, `{"ok":true,"id":"id of {\"type\":\"x\"}","clients":0}`},
		{"bad", nil, 400, `{"ok":false,"id":"wrong","clients":0,"error":"that is no signal"}`},
		{strings.Repeat("x", signal.MaxSize+1), nil, 400, `"too long"`},
		{strings.Repeat("x", signal.MaxSize+2), nil, 413, `"too long"`},
		{`{"type":"x"}`, http.Header{"Origin": {"https://elsewhere.example"}}, 403, "This page may not connect"},
		{`{"type":"x"}`, http.Header{"Origin": {"http://" + g.addr}}, 200, `"ok":true`},
	} {
		status, _, got := g.request(http.MethodPost, "/api/signal", x.header, x.body)
		if status != x.status || !strings.Contains(got, x.says) {
			t.Errorf("%.40q from %v: %d %s, want %d %s", x.body, x.header, status, got, x.status, x.says)
		}
	}
}

func TestTheSchemaIsServed(t *testing.T) {
	g := guard(t, nil)
	status, header, got := g.request(http.MethodGet, "/schema/signal.json", nil, "")
	if status != 200 || got != string(signal.Schema()) || header.Get("Content-Type") != "application/schema+json" {
		t.Errorf("%d %v: %.100s", status, header, got)
	}
	if status, _, _ := g.request(http.MethodPost, "/api/signal", bearer(secret), "{}"); status == 200 {
		t.Error("a server without signals takes one")
	}
}

// Signals hold what everybody says, so they are for whoever runs the gateway.
func TestSignalsNeedAServerKey(t *testing.T) {
	g := guard(t, withLog(newLog()))
	for _, x := range [][2]string{{http.MethodPost, "/api/signal"}, {http.MethodGet, "/__signals__/stream"}} {
		for status, header := range map[int]http.Header{401: nil, 403: bearer(g.token(auth.Rights{}))} {
			if got, _, _ := g.request(x[0], x[1], header, "{}"); got != status {
				t.Errorf("%v: %d, want %d", x, got, status)
			}
		}
	}
	if status, _, _ := g.request(http.MethodPost, "/api/signal", bearer(secret), "{}"); status != 200 {
		t.Errorf("with the server key: %d", status)
	}
}

// lines reads the stream, up to and with a line.
func (g *gateway) lines(r *bufio.Reader, last string) string {
	g.Helper()
	var got strings.Builder
	for {
		line, err := r.ReadString('\n')
		got.WriteString(line)
		if err != nil {
			g.Fatalf("%v after %q", err, got.String())
		}
		if strings.TrimSuffix(line, "\n") == last {
			return got.String()
		}
	}
}

func TestSignalsAreStreamed(t *testing.T) {
	l := newLog()
	g := serve(t, withLog(l))
	for _, x := range []struct {
		header http.Header
		place  string
	}{{nil, server.Now}, {http.Header{"Last-Event-Id": {"abc-7"}}, "abc-7"}, {http.Header{"Last-Event-Id": {""}}, ""}} {
		resp := g.stream(x.header)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
		if place := <-l.places; place != x.place {
			t.Errorf("with %v it reads from %q, want %q", x.header, place, x.place)
		}
		r := bufio.NewReader(resp.Body)
		l.entries <- server.LoggedSignal{Place: "abc-8", Text: []byte(`{"a":1}`)}
		l.entries <- server.LoggedSignal{Place: "abc-11", Text: []byte(`{"b":2}`), Missed: 2}
		if got, want := g.lines(r, `data: {"b":2}`), ": connected\n\nid: abc-8\ndata: {\"a\":1}\n\n: missed 2\nid: abc-11\ndata: {\"b\":2}\n"; got != want {
			t.Errorf("the stream is %q, want %q", got, want)
		}
		if _, _, got := g.request(http.MethodPost, "/api/signal", nil, "x"); !strings.Contains(got, `"clients":1`) {
			t.Errorf("with one stream open: %s", got)
		}
		left := l.left.Load()
		_ = resp.Body.Close()
		for l.left.Load() == left { // a reader that goes lets the log go
			if g.ctx.Err() != nil {
				t.Fatal("the log is still read")
			}
		}
	}
	if resp := g.stream(http.Header{"Origin": {"https://elsewhere.example"}}); resp.StatusCode != 403 {
		t.Errorf("a foreign page: %d", resp.StatusCode)
	}
	resp := g.stream(nil)
	close(l.entries) // reading fails
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != ": connected\n\n" {
		t.Errorf("a stream whose log fails says %q, %v", got, err)
	}
}

func TestStreamsAreBoundedAndEndWithTheServer(t *testing.T) {
	l := newLog()
	g := serve(t, withLog(l))
	var open []*http.Response
	for {
		resp := g.stream(nil)
		if resp.StatusCode != 200 {
			if resp.StatusCode != 503 || len(open) != 256 {
				t.Errorf("the stream %d: %d", len(open)+1, resp.StatusCode)
			}
			break
		}
		open = append(open, resp)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	for _, resp := range open {
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Errorf("a stream does not end well: %v", err)
		}
	}
}
