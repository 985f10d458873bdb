package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// remote is a server that is reached over HTTP. Every request goes through it, gets the header, and ends with it.
type remote struct {
	url    string
	header http.Header
	under  *http.Transport
	ctx    context.Context // done once the link is cut
	cancel context.CancelFunc
	conn   atomic.Pointer[sdk.Connection] // the SDK's, once there is one
	status atomic.Int32                   // of the last answer
}

func reach(cfg Config) (*remote, error) {
	under, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("mcp: the program's HTTP transport is not the standard one")
	}
	r := &remote{url: cfg.URL, header: cfg.Header, under: under.Clone()}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

func (r *remote) transport() sdk.Transport { return r }

// Connect implements [sdk.Transport]. It keeps the connection, to close it: the SDK's tries again on its own for a while
// when its requests fail, and no context that we have ends that.
func (r *remote) Connect(ctx context.Context) (sdk.Connection, error) {
	inner := sdk.StreamableClientTransport{
		Endpoint:     r.url,
		HTTPClient:   &http.Client{Transport: r, CheckRedirect: sameHost},
		MaxEventSize: maxMessage,
	}
	conn, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	r.conn.Store(&conn)
	if r.ctx.Err() != nil {
		r.cut()
	}
	return conn, nil
}

func (r *remote) cut() {
	r.cancel()
	if conn := r.conn.Load(); conn != nil {
		_ = (*conn).Close() // it may be done twice, and its farewell to the server does not get out any more
	}
}

func (r *remote) end() {
	r.cut()
	r.under.CloseIdleConnections()
}

func (r *remote) why(err error) error {
	var unreachable *net.OpError
	switch status := int(r.status.Load()); {
	case errors.As(err, &unreachable) && unreachable.Op == "dial":
		return fmt.Errorf("%w (does the server run, and is its url right?)", err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: it answered %d (has the variable of key_env the right key?)", err, status)
	case status >= 400:
		return fmt.Errorf("%w: it answered %d (is its url right?)", err, status)
	}
	return err
}

// sameHost keeps the header, which may be a key, from going elsewhere.
func sameHost(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme || len(via) > 3 {
		return errors.New("it leads to another place")
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.ctx, cancel)
	free := func() { stop(); cancel() }
	req = req.Clone(ctx)
	for name, values := range r.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := r.under.RoundTrip(req)
	if err != nil {
		free()
		return nil, err
	}
	r.status.Store(int32(resp.StatusCode))
	left := int64(maxMessage)
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" && resp.StatusCode == http.StatusOK {
		left = -1 // each event is bounded, not the stream
	}
	resp.Body = &body{resp.Body, left, free}
	return resp, nil
}

// body is bounded, and lets go of its request when it is closed.
type body struct {
	io.ReadCloser
	left int64 // bytes; negative: any
	free func()
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("mcp: the answer is longer than %d MiB", maxMessage>>20)
	}
	if b.left > 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}

// redact takes out of a text what may be a key: the query of the URL, the values of the header, and what the command has
// in its environment.
func (c Config) redact(text string) string {
	if u, err := url.Parse(c.URL); err == nil && u.RawQuery != "" {
		text = strings.ReplaceAll(text, u.RawQuery, "…")
	}
	for _, values := range c.Header {
		for _, v := range values {
			text = without(without(text, v), strings.TrimPrefix(v, "Bearer "))
		}
	}
	for _, v := range c.Env {
		_, value, _ := strings.Cut(v, "=")
		text = without(text, value)
	}
	return text
}

// without is a text without what may be a key. What is shorter than 4 bytes is none, and stands in every other word.
func without(text, key string) string {
	if len(key) < 4 {
		return text
	}
	return strings.ReplaceAll(text, key, "…")
}
