package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"vela/gateway/auth"
	"vela/gateway/server"
	"vela/protocol"
)

const (
	secret        = "0123456789abcdef0123456789abcdef"
	foreignSecret = "ffffffffffffffffffffffffffffffff"
)

func newAuthority(t *testing.T, secret string) *auth.Authority {
	t.Helper()
	keys, err := auth.ParseKeys("main:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// guarded is a gateway that asks who comes.
type guarded struct {
	*gateway
	authority *auth.Authority
}

func guard(t *testing.T, change func(*server.Config)) guarded {
	t.Helper()
	a := newAuthority(t, secret)
	return guarded{serve(t, func(c *server.Config) {
		c.Auth = a
		if change != nil {
			change(c)
		}
	}), a}
}

func token(t *testing.T, a *auth.Authority, r auth.Rights) string {
	t.Helper()
	text, _, err := a.Issue("main", r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (g guarded) token(r auth.Rights) string { return token(g.T, g.authority, r) }

func bearer(credential string) http.Header {
	return http.Header{"Authorization": {"Bearer " + credential}}
}

func entry(token string) http.Header {
	return http.Header{"Sec-Websocket-Protocol": {"vela.v1, vela.token." + token}}
}

// dialAs is dial for a client that offers subprotocols, which the library wants to be told of.
func (g *gateway) dialAs(h http.Header, query string) (*websocket.Conn, *http.Response, error) {
	h = h.Clone()
	opts := &websocket.DialOptions{HTTPHeader: h}
	if offers := h.Get("Sec-WebSocket-Protocol"); offers != "" {
		opts.Subprotocols = strings.Split(offers, ", ")
		h.Del("Sec-WebSocket-Protocol")
	}
	return websocket.Dial(g.ctx, "ws://"+g.addr+"/ws"+query, opts)
}

func (g *gateway) request(method, path string, h http.Header, body string) (int, http.Header, string) {
	g.Helper()
	r, err := http.NewRequestWithContext(g.ctx, method, "http://"+g.addr+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	for k, v := range h {
		r.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text)
}

func TestWhatNeedsACredential(t *testing.T) {
	g := guard(t, nil)
	good := g.token(auth.Rights{})
	for _, c := range []struct {
		method, path           string
		nobody, client, server int
	}{
		{"GET", "/", 404, 404, 404}, // the page, which is not in this build
		{"GET", "/healthz", 200, 200, 200},
		{"GET", "/readyz", 200, 200, 200},
		{"GET", "/asyncapi.yaml", 200, 200, 200},
		{"GET", "/schema/signal.json", 200, 200, 200},
		{"GET", "/api/engines", 401, 200, 200},
		{"GET", "/metrics", 401, 403, 200},
		{"POST", "/api/tokens", 401, 403, 200},
		{"GET", "/api/tokens", 401, 404, 404}, // it takes a POST, and says so
		{"POST", "/api/nothing", 401, 404, 404},
		{"GET", "/ws", 401, 426, 426}, // and then it is no WebSocket
	} {
		for _, who := range []struct {
			header http.Header
			status int
		}{
			{nil, c.nobody}, {bearer(good), c.client}, {bearer(secret), c.server},
			{bearer("x.y.z"), c.nobody}, {entry(good + "x"), c.nobody},
			{http.Header{"Authorization": {"Basic " + secret}}, c.nobody},
			{http.Header{"Authorization": {"Bearer " + secret, "Bearer " + secret}}, c.nobody},
		} {
			if c.path == "/ws" && who.header.Get("Sec-WebSocket-Protocol") != "" {
				continue
			}
			status, h, body := g.request(c.method, c.path, who.header, "")
			if status != who.status {
				t.Errorf("%s %s with %v: %d, want %d", c.method, c.path, who.header, status, who.status)
			}
			if status == 401 && (h.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(body, "oken")) {
				t.Errorf("%s: 401 with %v %s", c.path, h, body)
			}
			if status == 404 && c.path != "/" && !strings.Contains(body, "another method") {
				t.Errorf("%s %s: 404 with %s", c.method, c.path, body)
			}
		}
	}
}

func TestEveryRefusalOfACredentialReadsTheSame(t *testing.T) {
	g := guard(t, nil)
	good := g.token(auth.Rights{})
	first := ""
	for _, credential := range []string{
		"x", "a.b.c", foreignSecret, secret + "x", good + "x", good[:len(good)/2], token(t, newAuthority(t, foreignSecret), auth.Rights{}),
		strings.Repeat("a", 8<<10), strings.Repeat(".", 8<<10),
	} {
		status, _, body := g.request("GET", "/api/engines", bearer(credential), "")
		if first == "" {
			first = body
		}
		if status != 401 || body != first || strings.Contains(body, "main") {
			t.Errorf("%.20s…: %d %s", credential, status, body)
		}
	}
	if status, _, _ := g.request("GET", "/api/engines", bearer(strings.Repeat("a", 1<<20)), ""); status != 431 {
		t.Errorf("1 MB: %d, want 431", status)
	}
}

func TestASocketWithACredential(t *testing.T) {
	g := guard(t, nil)
	good := g.token(auth.Rights{Sessions: 9})
	for _, c := range []struct {
		name   string
		header http.Header
		status int
		chosen string
		closed protocol.CloseCode
	}{
		{"nothing", nil, 401, "", 0},
		{"a version alone", http.Header{"Sec-Websocket-Protocol": {"vela.v1"}}, 401, "", 0},
		{"a header", bearer(good), 101, "", 0},
		{"a server key", bearer(secret), 101, "", 0},
		{"an entry", entry(good), 101, "vela.v1", 0},
		{"a bad header", bearer(good + "x"), 401, "", 0},
		{"a bad entry", entry(good + "x"), 101, "vela.v1", 4001},
		{"a server key as an entry", entry(secret), 101, "vela.v1", 4001},
		{"two entries", http.Header{"Sec-Websocket-Protocol": {"vela.v1, vela.token.a, vela.token." + good}}, 101, "vela.v1", 4001},
		{"an entry alone", http.Header{"Sec-Websocket-Protocol": {"vela.token." + good}}, 400, "", 0},
		{"an entry beside names that we do not know", http.Header{"Sec-Websocket-Protocol": {"chat, vela.token." + good}}, 400, "", 0},
	} {
		ws, resp, err := g.dialAs(c.header, "")
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v, %v; want %d", c.name, resp, err, c.status)
			continue
		}
		if err != nil {
			if c.status == 101 {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != c.chosen {
			t.Errorf("%s: chosen %q, want %q", c.name, got, c.chosen)
		}
		s := socket{t, ws, g.ctx}
		if c.closed == 0 {
			s.greeted()
			_ = ws.CloseNow()
			continue
		}
		_, _, err = ws.Read(g.ctx)
		if code := protocol.CloseCode(websocket.CloseStatus(err)); code != c.closed || !strings.Contains(err.Error(), "not valid") {
			t.Errorf("%s: %v, want %d before anything else", c.name, err, c.closed)
		}
	}
}

func TestAForeignPageMayNotConnectEvenWithAToken(t *testing.T) {
	g := guard(t, nil)
	h := entry(g.token(auth.Rights{}))
	h.Set("Origin", "https://evil.example")
	if _, resp, err := g.dial(h); err == nil || resp.StatusCode != 403 {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestATokensLimitsOnSockets(t *testing.T) {
	g := guard(t, nil)
	one := g.token(auth.Rights{})
	open := func(h http.Header) socket {
		ws, _, err := g.dialAs(h, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ws.CloseNow() })
		return socket{t, ws, g.ctx}
	}
	first := open(bearer(one))
	first.greeted()
	second := open(entry(one))
	if e, ok := second.next().(protocol.Error); !ok || e.Code != protocol.CodeSessionLimit || !strings.Contains(e.Message, "token") {
		t.Errorf("told %v", e)
	}
	if code := second.closed(); code != protocol.CloseSessionLimit {
		t.Errorf("closed with %d", code)
	}
	open(bearer(g.token(auth.Rights{}))).greeted()
	if n := first.mockedTurn(); n != 8 {
		t.Errorf("the first was disturbed: %d events", n)
	}
	_ = first.Close(websocket.StatusNormalClosure, "")
	g.eventually("the place is free again", func() bool {
		ws, _, err := g.dial(bearer(one))
		if err != nil {
			return false
		}
		defer ws.CloseNow()
		_, frame, err := ws.Read(g.ctx)
		return err == nil && strings.Contains(string(frame), "session.ready")
	})
}

func TestATokensTurns(t *testing.T) {
	g := guard(t, nil)
	header := bearer(g.token(auth.Rights{Turns: []string{"deterministic"}, Sessions: 9}))
	for path, status := range map[string]int{"/ws": 426, "/ws?turns=deterministic": 426, "/ws?turns=agent": 403} {
		if got, _, body := g.request("GET", path, header, ""); got != status {
			t.Errorf("%s: %d %s, want %d", path, got, body, status)
		}
	}
	ws, _, err := g.dialAs(entry(g.token(auth.Rights{Turns: []string{"deterministic"}})), "?turns=agent")
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	if code := (socket{t, ws, g.ctx}).closed(); code != 4001 {
		t.Errorf("a browser is closed with %d", code)
	}
	// In version 2 the client may ask once it is in.
	header["Sec-Websocket-Protocol"] = []string{"vela.v2"}
	two, _, err := g.dialAs(header, "")
	if err != nil {
		t.Fatal(err)
	}
	defer two.CloseNow()
	s := socket{t, two, g.ctx}
	agent := `{"type":"session.start","payload":{"turns":"agent"},"id":"m"}`
	refused := func() {
		t.Helper()
		s.send(agent)
		if e, ok := s.envelope().Message.(protocol.Error); !ok || e.Code != protocol.CodeUnsupported || e.Ref != "m" {
			t.Errorf("agent-backed turns: %+v", e)
		}
	}
	refused()
	if ready := s.begin(`{"type":"session.start","payload":{}}`); ready.Turns != "deterministic" {
		t.Errorf("it begins with %s turns", ready.Turns)
	}
	s.envelope() // idle
	refused()
}

func TestMakingTokens(t *testing.T) {
	g := guard(t, nil)
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{``, 200, ""},
		{`{}`, 200, ""},
		{` {"ttl": 86400, "sessions": 1000, "audioMinutes": 1440, "turns": ["agent", "deterministic"]} `, 200, ""},
		{`{"ttl": 1, "turns": null}`, 200, ""},
		{`{"ttl": 86401}`, 400, "ttl must be from 1 to 86400"},
		{`{"ttl": 0}`, 400, "ttl must be"},
		{`{"ttl": -1}`, 400, "ttl must be"},
		{`{"ttl": "10m"}`, 400, "ttl is in seconds"},
		{`{"ttl": 1.5}`, 400, "one JSON object"},
		{`{"ttl": 1e99}`, 400, "one JSON object"},
		{`{"sessions": 0}`, 400, "sessions must be"},
		{`{"sessions": 1001}`, 400, "sessions must be"},
		{`{"audioMinutes": 0}`, 400, "audioMinutes must be"},
		{`{"audioMinutes": 1441}`, 400, "audioMinutes must be"},
		{`{"turns": []}`, 400, "turns must name"},
		{`{"turns": ["magic"]}`, 400, "turns must name"},
		{`{"turns": ["agent", "agent"]}`, 400, "turns must name"},
		{`{"signals": ["follow", "emit"]}`, 200, ""},
		{`{"signals": []}`, 200, ""},
		{`{"signals": ["all"]}`, 400, "signals must name"},
		{`{"signals": ["emit", "emit"]}`, 400, "signals must name"},
		{`{"admin": true}`, 400, "no other fields"},
		{`{} {}`, 400, "one JSON object"},
		{`{}x`, 400, "one JSON object"},
		{`[]`, 400, "one JSON object"},
		{`null`, 400, "one JSON object"},
		{`{`, 400, "one JSON object"},
		{`{"turns": ["` + strings.Repeat("a", 1<<20) + `"]}`, 413, "too big"},
		{strings.Repeat(" ", 1<<20), 413, "too big"},
	} {
		status, h, body := g.request("POST", "/api/tokens", bearer(secret), c.body)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%.40q: %d %s, want %d %q", c.body, status, body, c.status, c.says)
		}
		if status != 200 {
			continue
		}
		var made struct {
			Token     string
			ExpiresAt time.Time
		}
		if err := json.Unmarshal([]byte(body), &made); err != nil || h.Get("Cache-Control") != "no-store" || time.Until(made.ExpiresAt) > auth.MaxTTL {
			t.Errorf("%s: %v %v", c.body, err, made)
		}
		if _, err := g.authority.Admit(made.Token); err != nil {
			t.Errorf("%s: the token is no good: %v", c.body, err)
		}
	}
	if status, _ := serve(t, nil).postTokens(); status != 404 {
		t.Errorf("without keys: %d", status)
	}
}

func (g *gateway) postTokens() (int, string) {
	status, _, body := g.request("POST", "/api/tokens", bearer(secret), "{}")
	return status, body
}

func TestGuessingKeysIsSlowedDown(t *testing.T) {
	g := guard(t, nil)
	// How many guesses there are at once is held in auth. On a slow machine some come back meanwhile.
	guess := func() int {
		status, h, _ := g.request("POST", "/api/tokens", bearer(foreignSecret), "{}")
		if status != 401 && (status != 429 || h.Get("Retry-After") == "") {
			t.Fatalf("a guess: %d, Retry-After %q", status, h.Get("Retry-After"))
		}
		return status
	}
	for range 10 {
		if status := guess(); status != 401 {
			t.Errorf("one of the first guesses: %d", status)
		}
	}
	for status := 0; status != 429; status, _ = g.postTokens() { // also with the right key, unless a guess has come back
		for guess() == 401 {
		}
	}
	if status, _, _ := g.request("GET", "/api/engines", bearer(g.token(auth.Rights{})), ""); status != 200 {
		t.Errorf("a good token meanwhile: %d", status)
	}
}

func TestWithoutAuthenticationACredentialIsIgnored(t *testing.T) {
	g := serve(t, nil)
	for _, h := range []http.Header{nil, bearer("x"), entry("x"), {"Authorization": {"Basic x"}}} {
		ws, resp, err := g.dialAs(h, "")
		if err != nil {
			t.Errorf("%v: %v", h, err)
			continue
		}
		if p := resp.Header.Get("Sec-WebSocket-Protocol"); strings.Contains(p, "token") {
			t.Errorf("echoed %q", p)
		}
		_ = ws.CloseNow()
	}
}

// TestAThousandStrangers opens sockets with bad tokens that never speak, nor answer the close, beside one conversation.
func TestAThousandStrangers(t *testing.T) {
	g := guard(t, nil)
	ws, _, err := g.dial(bearer(g.token(auth.Rights{})))
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	s := socket{t, ws, g.ctx}
	s.greeted()
	var all sync.WaitGroup
	few := make(chan struct{}, 32) // who ask at once, so that each asks as soon as it is connected
	for range 1000 {
		few <- struct{}{}
		all.Go(func() {
			asked := sync.OnceFunc(func() { <-few })
			defer asked()
			c, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(c, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
				"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: vela.v1, vela.token.x.y.z\r\n\r\n", g.addr)
			asked()
			answer, _ := io.ReadAll(c)
			if !bytes.Contains(answer, []byte{0x0f, 0xa1}) { // 4001
				t.Errorf("answered with %q", answer)
			}
		})
	}
	if n := s.mockedTurn(); n != 8 {
		t.Errorf("the conversation was disturbed: %d events", n)
	}
	all.Wait()
	if n := s.mockedTurn(); n != 8 {
		t.Errorf("the conversation was disturbed: %d events", n)
	}
	if _, _, text := g.request("GET", "/metrics", bearer(secret), ""); !strings.Contains(text, `vela_callers_refused_total{reason="malformed"} 1000`) {
		t.Error("they are not counted")
	}
}

// recorded is a log that a test can read.
type recorded struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *recorded) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}
