package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"nhooyr.io/websocket"

	"vela/protocol"
)

// maxMessage bounds what a gateway may send in one message, in bytes.
const maxMessage = 4 << 20

// socket is the WebSocket. This file is the only one of the package that knows the library.
type socket struct {
	conn *websocket.Conn

	// Our own close takes its half of the handshake from under whoever reads, so the reader asks it how that went.
	closing atomic.Bool
	closed  chan struct{} // closed when our close has come to its end
	end     error         // how; to be read after that
}

// dialSocket upgrades. Every connection has a transport of its own, so that nothing is left of one that failed.
func dialSocket(ctx context.Context, a Address, o Options) (*socket, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: o.DialContext, DisableKeepAlives: true}
	conn, resp, err := websocket.Dial(ctx, a.Socket(o.Turns), &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: transport},
		HTTPHeader:   o.header(),
		Subprotocols: o.Subprotocols,
	})
	if err != nil {
		return nil, dialError(a, resp, err)
	}
	conn.SetReadLimit(maxMessage)
	return &socket{conn: conn, closed: make(chan struct{})}, nil
}

// header is what goes with the handshake.
func (o Options) header() http.Header {
	if o.Token == "" {
		return o.Header
	}
	h := http.Header{}
	if o.Header != nil {
		h = o.Header.Clone()
	}
	h.Set("Authorization", "Bearer "+o.Token)
	return h
}

func dialError(a Address, resp *http.Response, err error) error {
	e := &DialError{Address: a.Host(), Err: err}
	if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		e.Status, e.Detail = resp.StatusCode, detail(resp.Body)
	}
	return e
}

// maxDetail is how much of an answer is worth showing: a refusal is a sentence, a page is not.
const maxDetail = 200

// detail is what an answer says: the message of a JSON object, or one line of text.
func detail(body io.Reader) string {
	if body == nil {
		return ""
	}
	b, _ := io.ReadAll(body) // the library cuts it at 1024 bytes
	var told struct{ Message string }
	if json.Unmarshal(b, &told) == nil && told.Message != "" {
		return told.Message
	}
	text := strings.TrimSpace(string(b))
	if len(text) > maxDetail || strings.ContainsAny(text, "\n<{") {
		return ""
	}
	return text
}

func (s *socket) subprotocol() string { return s.conn.Subprotocol() }

func (s *socket) write(ctx context.Context, data []byte, binary bool) error {
	kind := websocket.MessageText
	if binary {
		kind = websocket.MessageBinary
	}
	if err := s.conn.Write(ctx, kind, data); err != nil {
		return s.ended(ctx, "send", err)
	}
	return nil
}

func (s *socket) read(ctx context.Context) (data []byte, binary bool, err error) {
	kind, data, err := s.conn.Read(ctx)
	if err != nil {
		return nil, false, s.ended(ctx, "receive", err)
	}
	return data, kind == websocket.MessageBinary, nil
}

func (s *socket) ping(ctx context.Context) error { return s.conn.Ping(ctx) }

// ended makes the library's error into the package's. The library closes the connection at every error.
func (s *socket) ended(ctx context.Context, act string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("client: %s: %w", act, context.Cause(ctx))
	}
	if websocket.CloseStatus(err) == -1 && s.closing.Load() {
		<-s.closed
		err = s.end
	}
	return closeError(err)
}

func closeError(err error) *CloseError {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return &CloseError{Code: protocol.CloseCode(closed.Code), Reason: closed.Reason}
	}
	return &CloseError{Code: CloseAbnormal, Err: err}
}

// close is not an error when the other side has closed first, or there has been a close before. Whoever reads may have
// taken the gateway's half of the handshake; then what is left to read is the end.
func (s *socket) close() error {
	if s.closing.Swap(true) {
		<-s.closed
		return nil
	}
	defer close(s.closed)
	s.end = s.conn.Close(websocket.StatusNormalClosure, "")
	if s.end == nil { // the gateway has answered with the same code
		s.end = websocket.CloseError{Code: websocket.StatusNormalClosure}
		return nil
	}
	if gone := errors.Is(s.end, io.EOF) || errors.Is(s.end, net.ErrClosed); gone || websocket.CloseStatus(s.end) != -1 {
		return nil
	}
	return fmt.Errorf("client: close: %w", s.end)
}

func (s *socket) drop() { _ = s.conn.CloseNow() } // it can only have been closed already
