package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"nhooyr.io/websocket"

	"vela/gateway/auth"
	"vela/gateway/server"
	"vela/protocol"
	"vela/session"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

// gateway is a server that listens on a port of its own until the test ends.
type gateway struct {
	*testing.T
	addr string
	ctx  context.Context // bounds whatever a test waits for
	stop func() error    // as SIGTERM does; returns what Serve returned
}

func serve(t *testing.T, change func(*server.Config)) *gateway {
	t.Helper()
	cfg := server.Config{NewSession: newSession, MaxSessions: 5000, Drain: time.Minute}
	if change != nil {
		change(&cfg)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	limit, end := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(end)
	g := &gateway{T: t, addr: l.Addr().String(), ctx: limit}
	var result error
	var stopped bool
	g.stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			result = <-served
		}
		return result
	}
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return g
}

func newSession(n server.NewSession) *session.Session {
	return session.New(session.Config{Allowance: n.Audio, ID: uuid.NewString(), Version: n.Version, Token: n.Token, Turns: n.Turns, Only: n.Only, Mock: deterministic.Engine{}, Agents: []session.NamedEngine{{Name: echo.AgentID, Engine: echo.Engine{}}}})
}

// socket is a client's end of a connection; whatever fails on it fails the test.
type socket struct {
	*testing.T
	*websocket.Conn
	ctx context.Context
}

func (g *gateway) dial(header http.Header) (*websocket.Conn, *http.Response, error) {
	opts := &websocket.DialOptions{HTTPHeader: header, Host: header.Get("Host")}
	return websocket.Dial(g.ctx, "ws://"+g.addr+"/ws", opts)
}

func (g *gateway) open() socket {
	g.Helper()
	c, _, err := g.dial(nil)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(1 << 20)
	return socket{g.T, c, g.ctx}
}

func (s socket) send(text string) {
	s.Helper()
	if err := s.Write(s.ctx, websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

func (s socket) next() protocol.Message {
	s.Helper()
	_, frame, err := s.Read(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	m, err := protocol.Decode(frame, protocol.Server)
	if err != nil {
		s.Fatalf("%s: %v", frame, err)
	}
	return m
}

func (s socket) greeted() string {
	s.Helper()
	ready, ok := s.next().(protocol.SessionReady)
	if state := s.next(); !ok || state != (protocol.SessionState{Value: protocol.Idle}) {
		s.Fatalf("greeted with %v, %v", ready, state)
	}
	return ready.SessionID
}

// closed reads on until the gateway closes, and returns its code.
func (s socket) closed() protocol.CloseCode {
	s.Helper()
	for {
		if _, _, err := s.Read(s.ctx); err != nil {
			return protocol.CloseCode(websocket.CloseStatus(err))
		}
	}
}

// mockedTurn runs one and returns how many events it had.
func (s socket) mockedTurn() (events int) {
	s.send(`{"type":"mocked.turn.trigger","payload":{}}`)
	for {
		events++
		if s.next() == (protocol.SessionState{Value: protocol.Idle}) {
			return events
		}
	}
}

func TestTheSocketHasASessionAtOnce(t *testing.T) {
	s := serve(t, nil).open()
	if id := s.greeted(); uuid.Validate(id) != nil {
		t.Errorf("session id %q is no UUID", id)
	}
	if n := s.mockedTurn(); n != 8 {
		t.Errorf("the fixed turn has %d events, want 8", n)
	}
}

func TestSubprotocol(t *testing.T) {
	g := serve(t, nil)
	for _, c := range []struct {
		offered []string
		chosen  string
	}{{nil, ""}, {[]string{"vela.v1"}, "vela.v1"}, {[]string{"vela.v9", "vela.v1"}, "vela.v1"}, {[]string{"vela.v1", "vela.v2"}, "vela.v2"}} {
		ws, _, err := websocket.Dial(g.ctx, "ws://"+g.addr+"/ws", &websocket.DialOptions{Subprotocols: c.offered})
		if err != nil {
			t.Fatalf("offering %q: %v", c.offered, err)
		}
		if ws.Subprotocol() != c.chosen {
			t.Errorf("offering %q: chosen %q, want %q", c.offered, ws.Subprotocol(), c.chosen)
		}
		_ = ws.CloseNow()
	}
	if _, resp, err := g.dial(http.Header{"Sec-Websocket-Protocol": {"vela.v9, chat"}}); err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("only unknown subprotocols: %v, %v; want 400", resp, err)
	}
}

func TestWhoMayConnect(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.Origins = []string{"https://stage.example"} })
	_, port, _ := net.SplitHostPort(g.addr)
	for _, c := range []struct {
		name, origin, host string
		status             int
	}{
		{"a program", "", "", 101},
		{"our own page", "http://" + g.addr, "", 101},
		{"our own page as localhost", "http://localhost:" + port, "localhost:" + port, 101},
		{"an allowed page", "https://stage.example", "", 101},
		{"an allowed page, upper case", "HTTPS://Stage.Example", "", 101},
		{"another page", "https://evil.example", "", 403},
		{"another port of this machine", "http://127.0.0.1:1", "", 403},
		{"a sandboxed page", "null", "", 403},
		{"a name that points here (DNS rebinding)", "http://evil.example:" + port, "evil.example:" + port, 403},
		{"an allowed page's own name, through a proxy", "https://stage.example", "stage.example", 101},
	} {
		header := http.Header{}
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		if c.host != "" {
			header.Set("Host", c.host)
		}
		ws, resp, err := g.dial(header)
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v, %v; want %d", c.name, resp, err, c.status)
		}
		if err == nil {
			_ = ws.CloseNow()
		}
	}
}

func TestAnOriginMustBeOne(t *testing.T) {
	for _, bad := range []string{"example.org", "ftp://x", "https://", "https://x/path", "*"} {
		if _, err := server.New(server.Config{NewSession: newSession, Origins: []string{bad}}); err == nil || !strings.Contains(err.Error(), "write it like") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTheGatewayIsFull(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.MaxSessions = 2 })
	first, second := g.open(), g.open()
	first.greeted()
	second.greeted()

	third := g.open()
	if e, ok := third.next().(protocol.Error); !ok || e.Code != protocol.CodeSessionLimit {
		t.Fatalf("told %v", e)
	}
	if code := third.closed(); code != protocol.CloseSessionLimit {
		t.Fatalf("closed with %d", code)
	}
	if n := first.mockedTurn(); n != 8 {
		t.Errorf("a running session was disturbed: %d events", n)
	}

	_ = second.Close(websocket.StatusNormalClosure, "")
	g.eventually("a place is free again", func() bool {
		c, _, err := g.dial(nil)
		if err != nil {
			return false
		}
		defer c.CloseNow()
		_, frame, err := c.Read(g.ctx)
		return err == nil && strings.Contains(string(frame), "session.ready")
	})
}

// eventually tries again until it holds: the other side of a socket needs a moment.
func (g *gateway) eventually(what string, holds func() bool) {
	g.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			g.Fatal("never: " + what)
		}
	}
}

func TestBadFramesCloseOnlyTheirOwnSocket(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.MaxMessage = 1000 })
	neighbour := g.open()
	neighbour.greeted()
	for _, c := range []struct {
		name  string
		bytes string
		code  protocol.CloseCode
	}{
		{"not masked", "\x81\x02{}", protocol.CloseProtocolError},
		{"a reserved bit", "\xc1\x80\x00\x00\x00\x00", protocol.CloseProtocolError},
		{"an unknown opcode", "\x83\x80\x00\x00\x00\x00", protocol.CloseProtocolError},
		{"a continuation of nothing", "\x80\x80\x00\x00\x00\x00", protocol.CloseProtocolError},
		{"a ping in pieces", "\x09\x80\x00\x00\x00\x00", protocol.CloseProtocolError},
		{"not UTF-8", "\x81\x82\x00\x00\x00\x00\xff\xfe", protocol.CloseInvalidText},
		{"too big", "\x81\xfe\x03\xe9\x00\x00\x00\x00" + strings.Repeat(" ", 1001), protocol.CloseTooBig},
		{"too big, in pieces", strings.Repeat("\x01\xfe\x01\xf4\x00\x00\x00\x00"+strings.Repeat(" ", 500), 1) + strings.Repeat("\x00\xfe\x01\xf4\x00\x00\x00\x00"+strings.Repeat(" ", 500), 2), protocol.CloseTooBig},
	} {
		if code := g.closeCodeAfter(c.bytes); code != c.code {
			t.Errorf("%s: closed with %d, want %d", c.name, code, c.code)
		}
	}
	if n := neighbour.mockedTurn(); n != 8 {
		t.Errorf("the neighbour was disturbed: %d events", n)
	}
}

// closeCodeAfter opens a connection, writes raw bytes after the handshake, and returns the code of the close frame that
// comes; 0 if none does.
func (g *gateway) closeCodeAfter(raw string) protocol.CloseCode {
	g.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		g.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: "+g.addr+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"+raw)
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		all.Write(buf[:n])
		// The greeting is text without any of the bytes that start a close frame.
		if i := strings.IndexByte(all.String(), 0x88); i >= 0 && all.Len() >= i+4 {
			return protocol.CloseCode(all.String()[i+2])<<8 | protocol.CloseCode(all.String()[i+3])
		}
		if err != nil {
			return 0
		}
	}
}

func TestAMessageOfTheLargestSizeIsTaken(t *testing.T) {
	s := serve(t, func(c *server.Config) { c.MaxMessage = 1000 }).open()
	s.greeted()
	s.send(strings.Repeat(" ", 1000))
	if e, ok := s.next().(protocol.Error); !ok || e.Code != protocol.CodeInvalidJSON {
		t.Errorf("answered with %v", e)
	}
}

func TestABinaryMessageIsRefusedInWords(t *testing.T) {
	s := serve(t, nil).open()
	s.greeted()
	if err := s.Write(s.ctx, websocket.MessageBinary, []byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if e, ok := s.next().(protocol.Error); !ok || e.Code != protocol.CodeInvalidMessage {
		t.Errorf("answered with %v", e)
	}
	if n := s.mockedTurn(); n != 8 {
		t.Errorf("the session was disturbed: %d events", n)
	}
}

func TestTurnsMustBeAKindThatThereIs(t *testing.T) {
	g := serve(t, nil)
	resp, err := http.Get("http://" + g.addr + "/ws?turns=magic")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "deterministic or agent") {
		t.Errorf("%s: %s", resp.Status, body)
	}
}

func TestStopping(t *testing.T) {
	g := serve(t, nil)
	polite := g.open()
	polite.greeted()
	code := make(chan protocol.CloseCode, 1)
	go func() { code <- polite.closed() }()
	if err := g.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if c := <-code; c != protocol.CloseGoingAway {
		t.Errorf("closed with %d, want 1001", c)
	}
	if _, _, err := g.dial(nil); err == nil {
		t.Error("a stopped gateway took a socket")
	}
}

func TestStoppingDoesNotWaitForWhoSaysNoGoodbye(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.Drain = 200 * time.Millisecond })
	g.open().greeted() // and then never reads again
	if err := g.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestNothingFollowsACloseFrame: the client answers ours, and that is the end of it.
func TestNothingFollowsACloseFrame(t *testing.T) {
	g := serve(t, func(c *server.Config) { c.MaxMessage = 10 })
	raw, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(raw, "GET /ws HTTP/1.1\r\nHost: "+g.addr+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"+
		"\x81\x8b\x00\x00\x00\x00"+strings.Repeat(" ", 11)+ // too big: closed with 1009
		"\x88\x82\x00\x00\x00\x00\x03\xf1") // and the client's half of the handshake
	all, _ := io.ReadAll(raw)
	if n := strings.Count(string(all), "\x88"); n != 1 {
		t.Errorf("%d close frames, want 1: %q", n, all[max(0, len(all)-80):])
	}
}

func TestReadiness(t *testing.T) {
	loading := errors.New("the recogniser is being loaded")
	g := serve(t, func(c *server.Config) { c.Ready = func() error { return loading } })
	if status, body := g.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, loading.Error()) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := g.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
	loading = nil
	g = serve(t, nil)
	if status, _ := g.get("/readyz"); status != http.StatusOK {
		t.Errorf("%d", status)
	}
}

func (g *gateway) get(path string) (int, string) {
	g.Helper()
	resp, err := http.Get("http://" + g.addr + path)
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func TestMetricsCountWhatHappens(t *testing.T) {
	g := serve(t, nil)
	s := g.open()
	s.greeted()
	s.mockedTurn()
	_, text := g.get("/metrics")
	for _, want := range []string{"vela_sessions 1", "vela_messages_received_total 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_ = s.Close(websocket.StatusNormalClosure, "")
	g.eventually("no session is counted", func() bool {
		_, text := g.get("/metrics")
		return strings.Contains(text, "vela_sessions 0") && strings.Contains(text, `vela_sockets_closed_total{code="0"} 1`)
	})
}

func TestTheContractIsServed(t *testing.T) {
	if status, body := serve(t, nil).get("/asyncapi.yaml"); status != http.StatusOK || !strings.Contains(body, "asyncapi: 3") {
		t.Errorf("%d %.80s", status, body)
	}
}

func TestThePage(t *testing.T) {
	built := fstest.MapFS{
		"index.html":         {Data: []byte("<title>Vela</title>")},
		"assets/page-abc.js": {Data: []byte("1")},
		".gitkeep":           {Data: []byte("")},
	}
	g := serve(t, func(c *server.Config) { c.Page = built })
	for path, want := range map[string]struct {
		status int
		cache  string
	}{
		"/":                   {200, "no-cache"},
		"/assets/page-abc.js": {200, "public, max-age=31536000, immutable"},
		"/assets/":            {404, ""},
		"/.gitkeep":           {404, ""},
		"/nothing":            {404, ""},
	} {
		resp, err := http.Get("http://" + g.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want.status || want.cache != "" && resp.Header.Get("Cache-Control") != want.cache {
			t.Errorf("%s: %d, cache %q", path, resp.StatusCode, resp.Header.Get("Cache-Control"))
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
	if status, body := serve(t, nil).get("/"); status != http.StatusNotFound || !strings.Contains(body, "make build") {
		t.Errorf("without a page: %d %s", status, body)
	}
}

// rooms are LiveKit at an address.
type rooms string

func (rooms) Token(string, string, string, string, map[string]string, *auth.Pass) (url, token string, err error) {
	return "", "", nil
}
func (rooms) Join(string) error           { return nil }
func (rooms) Webhook(*http.Request) error { return nil }
func (r rooms) Address() string           { return string(r) }

// The phone may connect to LiveKit, to the one that is configured and to nothing else; the page may not.
func TestThePhone(t *testing.T) {
	built := fstest.MapFS{"index.html": {Data: []byte("page")}, "phone.html": {Data: []byte("phone")}}
	const alone = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	for _, c := range []struct {
		at    server.Rooms
		phone string
	}{
		{nil, alone},
		{rooms("ws://127.0.0.1:7880"), alone + "; connect-src 'self' ws://127.0.0.1:7880 http://127.0.0.1:7880"},
		{rooms("wss://livekit.example.org/path"), alone + "; connect-src 'self' wss://livekit.example.org https://livekit.example.org"},
	} {
		g := serve(t, func(s *server.Config) { s.Page, s.Rooms = built, c.at })
		for path, policy := range map[string]string{"/phone": c.phone, "/": alone, "/phone.html": alone} {
			resp, err := http.Get("http://" + g.addr + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if want := map[bool]string{true: "page", false: "phone"}[path == "/"]; err != nil || resp.StatusCode != 200 || string(body) != want {
				t.Errorf("%s: %d %q, %v", path, resp.StatusCode, body, err)
			}
			if got := resp.Header.Get("Content-Security-Policy"); got != policy {
				t.Errorf("%v, %s: policy %q", c.at, path, got)
			}
			if got := resp.Header.Get("Cache-Control"); got != "no-cache" {
				t.Errorf("%s: cache %q", path, got)
			}
		}
	}
	if status, body := serve(t, nil).get("/phone"); status != http.StatusNotFound || !strings.Contains(body, "make build") {
		t.Errorf("without a page: %d %s", status, body)
	}
	unbuilt := serve(t, func(s *server.Config) { s.Page = fstest.MapFS{"index.html": {}} })
	if status, _ := unbuilt.get("/phone"); status != http.StatusNotFound {
		t.Errorf("without its file: %d", status)
	}
}

// TestNothingIsLeftBehind opens and closes 1,000 sessions in every way there is, after a first 1,000 that warm up
// whatever is kept for good, and looks at what stays.
func TestNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine() + 2 // Serve, and net/http's Serve
	g := serve(t, nil)
	g.comeAndGo(1000)
	memory := g.settled(before)
	g.comeAndGo(1000)
	after := g.settled(before)
	if float64(after) > 1.1*float64(memory) {
		t.Errorf("%d KB of heap before, %d KB after: more than 10 %% more", memory>>10, after>>10)
	}
}

func (g *gateway) comeAndGo(sessions int) {
	for i := range sessions {
		c, _, err := g.dial(nil)
		if err != nil {
			g.Fatal(err)
		}
		s := socket{g.T, c, g.ctx}
		s.greeted()
		switch i % 4 {
		case 0: // gone without a word
		case 1: // in the middle of a turn
			s.send(`{"type":"input_audio.append","payload":{"chunk":"x"}}`)
			s.send(`{"type":"input_audio.commit","payload":{}}`)
		case 2: // after a turn, politely
			s.mockedTurn()
			_ = c.Close(websocket.StatusNormalClosure, "")
		case 3: // with a malformed message
			s.send(`{`)
			s.next()
		}
		_ = c.CloseNow()
	}
}

// settled waits until only so many goroutines run, and returns how much of the heap is alive.
func (g *gateway) settled(goroutines int) (heap uint64) {
	g.Helper()
	g.eventually("sessions have ended", func() bool {
		_, text := g.get("/metrics")
		return strings.Contains(text, "vela_sessions 0")
	})
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			g.Fatalf("%d goroutines before, %d after\n%s", goroutines, runtime.NumGoroutine(), stacks())
		}
	}
	runtime.GC()
	runtime.GC() // the second one empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
