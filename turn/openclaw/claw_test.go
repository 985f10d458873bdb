package openclaw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

const token = "example-token-0123456789abcdef" // that of the recordings

// claw plays an OpenClaw by a recording: the same challenge and hello, and to each question what followed on it then,
// with the ids of now.
type claw struct {
	greeting  []byte
	hello     []byte   // as recorded
	helloID   string   // of the connect request as recorded
	closeCode int      // after the hello, if it was a refusal
	answer    [][]byte // frames after a question
	runID     string   // as recorded
	sendID    string   // of the question as recorded
	onStop    [][]byte // frames after a stop
	stopID    string

	asked func(c *conn, q call) // instead of the answer, if there is one

	calls  chan call  // every request but connect, in order
	mu     sync.Mutex // guards what follows
	conns  []*conn
	heads  []http.Header
	hellos []call
}

// call is a request as Vela makes it.
type call struct {
	Type   string         `json:"type"`
	ID     string         `json:"id"`
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

func (q call) param(name string) string {
	s, _ := q.Params[name].(string)
	return s
}

// play makes a claw of a recording. A recording with several questions plays the first.
func play(t testing.TB, name string) *claw {
	t.Helper()
	c := &claw{calls: make(chan call, 4096)}
	var last *[][]byte
	for _, l := range recording(t, name) {
		var f struct {
			Type, Event, ID, Method string
			Params                  struct{ IdempotencyKey string }
		}
		if l.Dir != "close" {
			if err := json.Unmarshal(l.Frame, &f); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case l.Dir == "close":
			c.closeCode = l.Code
		case f.Event == "connect.challenge":
			c.greeting = l.Frame
		case f.Method == "connect":
			c.helloID = f.ID
		case f.Method == "chat.send" && c.sendID == "":
			c.sendID, c.runID, last = f.ID, f.Params.IdempotencyKey, &c.answer
		case f.Method == "chat.abort" && c.stopID == "":
			c.stopID, last = f.ID, &c.onStop
		case l.Dir == "send":
			last = nil
		case f.Type == "res" && f.ID == c.helloID:
			c.hello = l.Frame
		case last != nil:
			*last = append(*last, l.Frame)
		}
	}
	return c
}

// conn is one connection of a claw, over whatever carries it.
type conn struct {
	claw *claw
	read func() ([]byte, error)
	put  func([]byte) error
	end  func(code int)
	gone chan struct{} // closed when nothing more is read
	mu   sync.Mutex
}

func (n *conn) write(frames ...[]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range frames {
		if n.put(f) != nil {
			return // the client is gone
		}
	}
}

// tick says every 30 s that it is there.
func (n *conn) tick(long time.Duration) {
	for range long / (30 * time.Second) {
		select {
		case <-time.After(30 * time.Second):
			n.write([]byte(`{"type":"event","event":"tick","payload":{"ts":1}}`))
		case <-n.gone:
			return
		}
	}
}

// serve plays the connection to its end.
func (n *conn) serve() {
	c := n.claw
	n.write(c.greeting)
	var connect call
	message, err := n.read()
	if err != nil || json.Unmarshal(message, &connect) != nil {
		return
	}
	c.mu.Lock()
	c.hellos, c.conns = append(c.hellos, connect), append(c.conns, n)
	c.mu.Unlock()
	n.write(renamed([][]byte{c.hello}, requestID(c.helloID), requestID(connect.ID))...)
	if bytes.Contains(c.hello, []byte(`"ok":false`)) {
		n.end(c.closeCode)
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		message, err := n.read()
		var q call
		if err != nil || json.Unmarshal(message, &q) != nil {
			close(n.gone)
			return
		}
		c.calls <- q
		wg.Go(func() { n.reply(q) })
	}
}

func (n *conn) reply(q call) {
	switch {
	case n.claw.asked != nil:
		n.claw.asked(n, q)
	case q.Method == "chat.send":
		n.write(n.claw.answers(q)...)
	default:
		n.write(n.claw.stops(q)...)
	}
}

// answers are the recorded frames after a question, for this one.
func (c *claw) answers(q call) [][]byte {
	return renamed(c.answer, requestID(c.sendID), requestID(q.ID), c.runID, q.param("idempotencyKey"))
}

func (c *claw) stops(q call) [][]byte {
	if c.onStop == nil {
		return [][]byte{[]byte(`{"type":"res","id":"` + q.ID + `","ok":true,"payload":{"ok":true,"aborted":false,"runIds":[]}}`)}
	}
	return renamed(c.onStop, requestID(c.stopID), requestID(q.ID), c.runID, q.param("runId"))
}

func requestID(id string) string { return `"id":"` + id + `"` }

func renamed(frames [][]byte, oldnew ...string) [][]byte {
	r := strings.NewReplacer(oldnew...)
	var out [][]byte
	for _, f := range frames {
		out = append(out, []byte(r.Replace(string(f))))
	}
	return out
}

// connections is how many there were.
func (c *claw) connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// hangUp ends the newest connection.
func (c *claw) hangUp() {
	c.mu.Lock()
	n := c.conns[len(c.conns)-1]
	c.mu.Unlock()
	n.end(1012)
}

// next is the next request of a method; others are passed over.
func (c *claw) next(t testing.TB, method string) call {
	t.Helper()
	for {
		if q := c.any(t); q.Method == method {
			return q
		}
	}
}

// any is the next request.
func (c *claw) any(t testing.TB) call {
	t.Helper()
	select {
	case q := <-c.calls:
		return q
	case <-time.After(20 * time.Second):
		t.Fatal("no request came")
		return call{}
	}
}

// listen serves the claw on a real socket and returns its address.
func (c *claw) listen(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.CloseNow() }()
		ws.SetReadLimit(maxMessage)
		c.mu.Lock()
		c.heads = append(c.heads, r.Header)
		c.mu.Unlock()
		n := &conn{
			claw: c,
			gone: make(chan struct{}),
			read: func() ([]byte, error) { _, m, err := ws.Read(r.Context()); return m, err },
			put:  func(m []byte) error { return ws.Write(r.Context(), websocket.MessageText, m) },
			end:  func(code int) { _ = ws.Close(websocket.StatusCode(max(code, 1000)), "") },
		}
		n.serve()
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

// pipe is a socket in memory, for tests that own the time.
type pipe struct {
	toVela, fromVela chan []byte
	once             sync.Once
	gone             chan struct{}
}

var errGone = errors.New("the other side is gone")

func (p *pipe) Read(ctx context.Context) ([]byte, error)  { return take(ctx, p.gone, p.toVela) }
func (p *pipe) Write(ctx context.Context, m []byte) error { return hand(ctx, p.gone, p.fromVela, m) }
func (p *pipe) Close() error                              { p.once.Do(func() { close(p.gone) }); return nil }

func take(ctx context.Context, gone chan struct{}, from chan []byte) ([]byte, error) {
	select {
	case m := <-from:
		return m, nil
	case <-gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func hand(ctx context.Context, gone chan struct{}, to chan []byte, m []byte) error {
	select {
	case to <- m:
		return nil
	case <-gone:
		return errGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// dialed serves the claw in memory.
func (c *claw) dialed(context.Context, string) (socket, error) {
	p := &pipe{toVela: make(chan []byte), fromVela: make(chan []byte), gone: make(chan struct{})}
	n := &conn{
		claw: c,
		gone: make(chan struct{}),
		read: func() ([]byte, error) { return take(context.Background(), p.gone, p.fromVela) },
		put:  func(m []byte) error { return hand(context.Background(), p.gone, p.toVela, m) },
		end:  func(int) { _ = p.Close() },
	}
	go n.serve()
	return p, nil
}

// started runs a client on the configuration until the test ends.
func started(t testing.TB, cfg Config) *Client {
	t.Helper()
	if cfg.Token == nil {
		cfg.Token = func() (string, error) { return token, nil }
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
	return c
}

// engineOf is an engine on a claw over a real socket.
func engineOf(t testing.TB, c *claw) *Engine {
	t.Helper()
	return engine(t, started(t, Config{URL: c.listen(t)}))
}

func engine(t testing.TB, c *Client) *Engine {
	t.Helper()
	e, err := NewEngine(c, EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// until waits for a status. It is for real sockets, where nothing tells when the client has got so far.
func until(t testing.TB, c *Client, what string, reached func(Status) bool) Status {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if s := c.Status(); reached(s) {
			return s
		} else if time.Now().After(end) {
			t.Fatalf("never %s: %+v", what, s)
		}
	}
}

func in(phases ...Phase) func(Status) bool {
	return func(s Status) bool { return slices.Contains(phases, s.Phase) }
}

// logTo is a logger whose words a test reads.
func logTo() (*slog.Logger, *safeBuffer) {
	b := &safeBuffer{}
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})), b
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
