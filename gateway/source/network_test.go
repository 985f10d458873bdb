package source

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nhooyr.io/websocket"
)

// network is one in memory, for bubbles, which hold no sockets.
type network struct {
	*testing.T
	mu    sync.Mutex
	hosts map[string]*host
}

func newNetwork(t *testing.T) *network { return &network{T: t, hosts: map[string]*host{}} }

var errNobody = errors.New("connection refused")

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	h := n.hosts[strings.TrimSuffix(address, ":80")]
	n.mu.Unlock()
	if h == nil {
		return nil, errNobody
	}
	ours, theirs := net.Pipe()
	select {
	case h.conns <- theirs:
		return ours, nil
	case <-h.closed:
		return nil, errNobody
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// host is a [net.Listener].
type host struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (h *host) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *host) Close() error   { h.once.Do(func() { close(h.closed) }); return nil }
func (h *host) Addr() net.Addr { return &net.TCPAddr{} }

// serve has a host answer until the test ends, or the function that is returned is called.
func (n *network) serve(name string, handler http.HandlerFunc) (stop func()) {
	h := &host{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.hosts[name] = h
	n.mu.Unlock()
	var served sync.WaitGroup
	handling := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		defer served.Done()
		handler(w, r)
	})
	s := &http.Server{Handler: handling}
	var run sync.WaitGroup
	run.Go(func() { _ = s.Serve(h) })
	stop = sync.OnceFunc(func() {
		n.mu.Lock()
		if n.hosts[name] == h {
			delete(n.hosts, name)
		}
		n.mu.Unlock()
		_ = s.Close()
		run.Wait()
		served.Wait()
	})
	n.Cleanup(stop)
	return stop
}

// socket makes a handler of what talks on a WebSocket. The socket is closed without a word when it returns.
func (n *network) socket(talk func(ctx context.Context, c *websocket.Conn, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			n.Error(err)
			return
		}
		defer func() { _ = c.CloseNow() }()
		ctx, cancel := context.WithCancel(context.Background())
		n.Cleanup(cancel)
		talk(ctx, c, r)
	}
}

func say(t *testing.T, ctx context.Context, c *websocket.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := c.Write(ctx, websocket.MessageText, []byte(m)); err != nil && ctx.Err() == nil {
			t.Errorf("say %.40q: %v", m, err)
		}
	}
}

// listen reads, and so answers pings, until the other side is gone.
func listen(ctx context.Context, c *websocket.Conn) {
	for {
		if _, _, err := c.Read(ctx); err != nil {
			return
		}
	}
}

// write writes a piece of an HTTP answer at once.
func write(w http.ResponseWriter, text string) {
	_, _ = w.Write([]byte(text)) // whoever is gone does not read it
	_ = http.NewResponseController(w).Flush()
}

// added are sources of which one is added, and connects.
func (n *network) added(address, key string) (*works, string) {
	n.Helper()
	w := newWorks(n.T, Config{dial: n.dial})
	s, err := w.Add(n.Context(), "", address, key)
	if err != nil {
		n.Fatal(err)
	}
	w.must(w.Connect(n.Context(), s.ID))
	return w, s.ID
}

// after says how a source is after some time.
func (w *works) after(d time.Duration, id string) string {
	time.Sleep(d) // in fake time
	synctest.Wait()
	s := w.source(id)
	return strings.TrimSpace(string(s.State) + " " + s.Error)
}
