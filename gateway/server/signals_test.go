package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"nhooyr.io/websocket"

	"vela/gateway/auth"
	"vela/gateway/feed"
	"vela/gateway/server"
	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
)

// log is a [server.Signals] that a test writes to.
type log struct {
	entries chan server.LoggedSignal
	places  chan string // asked for
	left    atomic.Int32
	err     error

	feed       feed.Feed
	subscribed atomic.Int32 // subscriptions that are open
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

// Signals hold what everybody says, so they are for whoever runs the gateway, and whom they let follow.
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
	if status, _, _ := g.request(http.MethodPost, "/api/signal", bearer(g.token(auth.Rights{Signals: []string{auth.FollowSignals, auth.EmitSignals}})), "{}"); status != 403 {
		t.Errorf("posting with a token that may follow: %d", status)
	}
}

func TestATokenThatMayFollow(t *testing.T) {
	g := guard(t, withLog(newLog()))
	follow := bearer(g.token(auth.Rights{Signals: []string{auth.FollowSignals}, Sessions: 2}))
	ctx, leave := context.WithCancel(g.ctx)
	open := func() *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.addr+"/__signals__/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = follow.Clone()
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	for range 2 {
		if resp := open(); resp.StatusCode != 200 {
			t.Fatalf("%d", resp.StatusCode)
		}
	}
	if resp := open(); resp.StatusCode != 429 { // as many as sessions
		t.Errorf("a third stream: %d", resp.StatusCode)
	}
	leave()
	ctx = g.ctx
	for resp := open(); resp.StatusCode != 200; resp = open() { // until the gateway has noticed
		if resp.StatusCode != 429 {
			t.Fatalf("%d", resp.StatusCode)
		}
	}
	if status, _, _ := g.request(http.MethodGet, "/__signals__/stream", bearer(g.token(auth.Rights{Signals: []string{auth.EmitSignals}})), ""); status != 403 {
		t.Errorf("a token that may only emit: %d", status)
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
		for { // and is counted no more
			if _, _, got := g.request(http.MethodPost, "/api/signal", nil, "x"); strings.Contains(got, `"clients":0`) {
				break
			} else if g.ctx.Err() != nil {
				t.Fatalf("with no stream open: %s", got)
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

// Emit and Subscribe implement the rest of [server.Signals]: what is emitted goes to those who subscribed.
func (l *log) Emit(session string, m protocol.SignalEmit) error {
	if m.SignalType == "bad" {
		return badSignal{}
	}
	l.feed.Offer(feed.Signal{Raw: signal.Raw{Type: m.SignalType, Source: session}, Text: fmt.Appendf(nil,
		`{"id":"1","type":%q,"timestamp":1,"source":"session:%s","payload":%s}`, m.SignalType, session, m.Payload)})
	return nil
}

type badSignal struct{}

func (badSignal) Error() string       { return "That is no signal." }
func (badSignal) Code() protocol.Code { return protocol.CodeInvalidMessage }

func (l *log) Subscribe(wake func()) server.Subscription {
	l.subscribed.Add(1)
	return subscription{l, l.feed.Subscribe(feed.Bounds{Signals: 10, Bytes: 1 << 20}, wake)}
}

type subscription struct {
	log *log
	*feed.Subscription
}

func (s subscription) Add(m protocol.SignalSubscribe) error {
	return s.Subscription.Add(feed.Filter(m))
}
func (s subscription) Remove(m protocol.SignalUnsubscribe) error {
	return s.Subscription.Remove(feed.Filter(m))
}

func (s subscription) Next() (server.LoggedSignal, bool) {
	g, missed, ok := s.Subscription.Next()
	return server.LoggedSignal{Text: g.Text, Missed: missed}, ok
}

func (s subscription) Close() {
	s.Subscription.Close()
	s.log.subscribed.Add(-1)
}

// heard reads up to the answer to history.get, behind which everything sent before it has been done, and until so much has
// come besides, since signals have no place among events. It returns that: a signal's type, "missed N", or an error's code and
// ref.
func (s socket) heard(want int) (got []string) {
	s.Helper()
	s.send(`{"type":"history.get","payload":{}}`)
	for done := false; !done || len(got) < want; {
		e := s.envelope()
		if (e.Seq != 0) != (e.TS != 0) {
			s.Errorf("a number without a time, or the other way round: %+v", e)
		}
		switch m := e.Message.(type) {
		case protocol.History:
			done = true
		case protocol.Signal:
			got = append(got, m.SignalType)
		case protocol.SignalMissed:
			got = append(got, fmt.Sprint("missed ", m.Count))
		case protocol.Error:
			got = append(got, string(m.Code)+" "+m.Ref)
		}
	}
	return got
}

func emit(typ, id string) string {
	return fmt.Sprintf(`{"type":"signal.emit","payload":{"type":%q,"payload":{}},"id":%q}`, typ, id)
}

// A connection gets the signals that it has asked for, its own too, and no other connection notices.
func TestASocketFollowsSignals(t *testing.T) {
	l := newLog()
	g := serve(t, withLog(l))
	a, b := g.open2(), g.open2()
	ready := a.begin(start)
	b.begin(start)
	for _, x := range []struct {
		sends   []string
		a, b    []string
		reading int32 // subscriptions
	}{
		{[]string{emit("user.click", "1")}, nil, nil, 0},
		{[]string{`{"type":"signal.subscribe","payload":{"types":["user.*"]},"id":"2"}`, emit("user.click", "3"), emit("x", "4")}, []string{"user.click"}, nil, 1},
		{[]string{`{"type":"signal.subscribe","payload":{"types":[""]},"id":"5"}`, emit("bad", "6"), emit("user.move", "7")}, []string{"invalid_message 5", "invalid_message 6", "user.move"}, nil, 1},
		{[]string{`{"type":"signal.unsubscribe","payload":{"types":["user.move"]},"id":"8"}`, emit("user.move", "9")}, []string{"user.move"}, nil, 1},
		{[]string{`{"type":"signal.unsubscribe","payload":{"types":["user.*"]},"id":"10"}`, emit("user.move", "11")}, nil, nil, 1},
	} {
		for _, text := range x.sends {
			a.send(text)
		}
		if got := a.heard(len(x.a)); !same(got, x.a) {
			t.Errorf("%q: %q came, want %q", x.sends, got, x.a)
		}
		if got := b.heard(len(x.b)); !same(got, x.b) {
			t.Errorf("%q: %q came to another, want %q", x.sends, got, x.b)
		}
		if n := l.subscribed.Load(); n != x.reading {
			t.Errorf("%q: %d follow", x.sends, n)
		}
	}

	// What a connection has asked for is its own: who resumes has asked for nothing.
	a.send(`{"type":"signal.subscribe","payload":{}}`)
	a.heard(0)
	again := g.open2()
	again.begin(resume(ready.ResumeToken, 0))
	if code := a.closed(); code != protocol.CloseTakenOver {
		t.Errorf("closed with %d", code)
	}
	again.send(emit("user.click", "12"))
	if got := again.heard(0); got != nil {
		t.Errorf("who resumes is told %q", got)
	}
	for _, s := range []socket{again, b} {
		if err := s.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if n := l.subscribed.Load(); n != 0 {
		t.Errorf("%d still follow", n)
	}
}

// same compares without regard to order: signals have no place among the errors.
func same(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// A token gives no right to signals unless it says so, and then to what it says alone.
func TestRightsToSignals(t *testing.T) {
	for name, x := range map[string]struct {
		rights []string
		want   []string
	}{
		"none":   {nil, []string{"unsupported s", "unsupported e", "unsupported u"}},
		"follow": {[]string{auth.FollowSignals}, []string{"unsupported e"}},
		"emit":   {[]string{auth.EmitSignals}, []string{"unsupported s", "unsupported u"}},
		"both":   {[]string{auth.FollowSignals, auth.EmitSignals}, []string{"user.click"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked server.NewSession
			g := guard(t, func(c *server.Config) {
				c.Signals = newLog()
				c.NewSession = func(n server.NewSession) *session.Session { asked = n; return newSession(n) }
			})
			c, _, err := g.dialAs(http.Header{
				"Authorization": {"Bearer " + g.token(auth.Rights{Signals: x.rights})}, "Sec-Websocket-Protocol": {"vela.v2"},
			}, "")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.CloseNow() }()
			s := socket{t, c, g.ctx}
			s.begin(start)
			s.send(`{"type":"signal.subscribe","payload":{},"id":"s"}`)
			s.send(emit("user.click", "e"))
			s.send(`{"type":"signal.unsubscribe","payload":{},"id":"u"}`)
			if got := s.heard(len(x.want)); !same(got, x.want) {
				t.Errorf("came: %q, want %q", got, x.want)
			}
			if asked.Follows != slices.Contains(x.rights, auth.FollowSignals) || asked.Emits != slices.Contains(x.rights, auth.EmitSignals) {
				t.Errorf("the session is asked for with %+v", asked)
			}
		})
	}
}

// A client may emit a hundred signals at once, and fifty a second.
func TestSignalsHaveARate(t *testing.T) {
	g := serve(t, withLog(newLog()))
	s := g.open2()
	s.begin(start)
	for i := range 2000 {
		s.send(emit("user.move", fmt.Sprint(i)))
	}
	got := s.heard(1)
	if len(got) > 1900 || strings.Fields(got[0])[0] != "rate_limited" {
		t.Errorf("%d were refused: %.100q", len(got), got)
	}
}
