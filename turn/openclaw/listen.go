package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"nhooyr.io/websocket"
)

// ListenConfig says which OpenClaw to listen to. URL and Token are required.
type ListenConfig struct {
	URL   string // as in [Config]
	Token string
	// Dial connects; nil is any connection, through the proxy of the environment where there is one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	dial func(ctx context.Context, url string) (socket, error) // for tests; nil is a WebSocket
}

// Listener hears all that an OpenClaw says to whoever may read, the arguments of tools included, and asks for nothing. Its
// methods belong to one goroutine.
type Listener struct {
	socket socket
	quiet  time.Duration // after which OpenClaw is gone: it says something more often than that
}

// Listen connects, with the right to read alone. Its errors, and those of [Listener.Next], have words that are fit for a
// client, and a method Refused() bool that says whether it is of no use to try again.
func Listen(ctx context.Context, cfg ListenConfig) (*Listener, error) {
	if err := checkURL(cfg.URL); err != nil {
		return nil, errAddress.because(err)
	}
	if cfg.Token == "" {
		return nil, errKey
	}
	dial := cfg.dial
	switch {
	case dial == nil && cfg.Dial == nil:
		dial = dialWebSocket
	case dial == nil:
		dial = func(ctx context.Context, url string) (socket, error) {
			return dialBy(ctx, url, &http.Transport{DialContext: cfg.Dial})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	s, err := dial(ctx, cfg.URL)
	if err != nil {
		return nil, silent(err)
	}
	h, err := handshake(ctx, s, cfg.Token, toListen)
	if err == nil {
		err = subscribe(ctx, s)
	}
	if err != nil {
		_ = s.Close() // what matters is why
		return nil, err
	}
	return &Listener{s, 2 * h.tick()}, nil
}

// subscribe asks for what tools do, in the sessions of everybody. The answer is not waited for: an OpenClaw that does not
// know the request sends what it does without.
func subscribe(ctx context.Context, s socket) error {
	message, err := json.Marshal(request{"req", "subscribe", "sessions.subscribe", struct{}{}})
	if err != nil {
		return fmt.Errorf("openclaw: subscribe: %w", err)
	}
	if err := s.Write(ctx, message); err != nil {
		return silent(err)
	}
	return nil
}

// Next returns the next frame, for an [Observer]. It is [io.EOF] when OpenClaw has ended the connection well.
func (l *Listener) Next(ctx context.Context) ([]byte, error) {
	quiet, cancel := context.WithTimeoutCause(ctx, l.quiet, errors.New("openclaw: it has gone silent"))
	defer cancel()
	message, err := l.socket.Read(quiet)
	switch {
	case err == nil:
		return message, nil
	case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
		return nil, io.EOF
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, silent(err)
}

// Close ends the connection at once.
func (l *Listener) Close() error { return l.socket.Close() }
