package openclaw

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"nhooyr.io/websocket"
)

// socket is a connection that carries text messages. Read and Write may be called at the same time, each from one
// goroutine; both end when their context does.
type socket interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	Close() error // at once; pending reads and writes end
}

// maxMessage bounds one message from OpenClaw, in bytes. OpenClaw's own bound is 25 MiB; what a run says is far smaller,
// and a list of that size is nothing that Vela asks for.
const maxMessage = 8 << 20

// dialWebSocket connects without an Origin header, for which OpenClaw would take all rights away, and follows no
// redirect, since the token would go along.
func dialWebSocket(ctx context.Context, url string) (socket, error) {
	return dialBy(ctx, url, &http.Transport{Proxy: http.ProxyFromEnvironment})
}

func dialBy(ctx context.Context, url string, transport *http.Transport) (socket, error) {
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, CompressionMode: websocket.CompressionDisabled})
	transport.CloseIdleConnections()
	if err != nil {
		return nil, fmt.Errorf("openclaw: connect: %w", err)
	}
	conn.SetReadLimit(maxMessage)
	return webSocket{conn}, nil
}

type webSocket struct{ conn *websocket.Conn }

func (s webSocket) Read(ctx context.Context) ([]byte, error) {
	for {
		kind, message, err := s.conn.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("openclaw: read: %w", err)
		}
		if kind == websocket.MessageText { // the protocol has no binary messages
			return message, nil
		}
	}
}

func (s webSocket) Write(ctx context.Context, message []byte) error {
	if err := s.conn.Write(ctx, websocket.MessageText, message); err != nil {
		return fmt.Errorf("openclaw: write: %w", err)
	}
	return nil
}

func (s webSocket) Close() error {
	if err := s.conn.CloseNow(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("openclaw: close: %w", err)
	}
	return nil
}
