// Package openclaw speaks to an OpenClaw gateway over its WebSocket protocol, versions 3 and 4, and makes a turn engine
// of one of its agents.
//
// Start at [Client]: it owns the one connection, and [Client.Run] is its life. An [Engine] on it answers turns: a turn is
// a run of OpenClaw's. What a run says is made into signals by [Translator], the only place that knows OpenClaw's events;
// whoever only listens uses it too, through a [Listener] and an [Observer]. [LocalToken] finds the token where OpenClaw keeps it.
//
//	client, err := openclaw.New(openclaw.Config{URL: "ws://127.0.0.1:18789", Token: token})
//	go client.Run(ctx)
//	engine, err := openclaw.NewEngine(client, openclaw.EngineConfig{})
//
// OpenClaw keeps the conversation itself, by session key, so the history of a request is not sent. What is known of the
// protocol was recorded from OpenClaw 2026.9.6 and 2026.4.29 and read in docs/gateway of its npm package; testdata has
// the recordings.
package openclaw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"time"
)

// DefaultURL is where OpenClaw listens unless it is told otherwise.
const DefaultURL = "ws://127.0.0.1:18789"

// What a [Config] leaves open.
const (
	defaultConnectWithin = 30 * time.Second
	defaultAnswerWithin  = 120 * time.Second
)

// Config says which OpenClaw to reach, and how long a turn waits for it.
type Config struct {
	URL string // [DefaultURL] when empty; ws only for this machine, since the token goes over it, wss for any other

	// Token returns OpenClaw's shared token. It is asked before every connection, so that a token that changes, or that
	// comes later than Vela, is found. Required.
	Token func() (string, error)

	ConnectWithin time.Duration // until OpenClaw has taken a turn, the connection included; 30 s by default
	AnswerWithin  time.Duration // from there to the first sign of the run; 120 s by default

	Log *slog.Logger // nil discards

	dial func(ctx context.Context, url string) (socket, error) // for tests; nil is a WebSocket
}

// Client is one connection to an OpenClaw gateway, made again when it is lost. [Client.Run] owns it; everything else may
// be called from any goroutine.
type Client struct {
	cfg  Config
	log  *slog.Logger
	asks chan *run // turns to begin
	ends chan *run // turns that nobody listens to any more
	runs atomic.Bool
	over chan struct{} // closed when Run has returned

	status atomic.Pointer[Status]
}

// New checks the configuration. Nothing is connected before [Client.Run].
func New(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	if err := checkURL(cfg.URL); err != nil {
		return nil, err
	}
	if cfg.Token == nil {
		return nil, errors.New("openclaw: no token is configured")
	}
	if cfg.ConnectWithin <= 0 {
		cfg.ConnectWithin = defaultConnectWithin
	}
	if cfg.AnswerWithin <= 0 {
		cfg.AnswerWithin = defaultAnswerWithin
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.dial == nil {
		cfg.dial = dialWebSocket
	}
	c := &Client{cfg: cfg, log: cfg.Log, asks: make(chan *run), ends: make(chan *run), over: make(chan struct{})}
	c.status.Store(&Status{Phase: Connecting})
	return c, nil
}

// checkURL refuses an address that would give the token away. It does not repeat the address, which may hold a secret.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return errors.New("openclaw: url is not of the form ws://127.0.0.1:18789 or wss://host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("openclaw: url holds more than an address; the token has its own setting")
	case u.Scheme == "ws" && !loopback(u.Hostname()):
		return errors.New("openclaw: ws:// would send the token in the clear; use wss://, or a tunnel from this machine")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Local says whether the URL is on this machine: the token that OpenClaw keeps here is for no other.
func Local(address string) bool {
	if address == "" {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && loopback(u.Hostname())
}

// Phase says where a connection stands.
type Phase string

// The phases. A connection that is Idle has given up: the next turn begins anew.
const (
	Connecting Phase = "connecting"
	Connected  Phase = "connected"
	Waiting    Phase = "waiting" // for its next try
	Idle       Phase = "idle"
	Closed     Phase = "closed"
)

// Status is what can be said of a connection. It names no address and no secret.
type Status struct {
	Phase    Phase
	Why      string // unless connected: what went wrong last, and what to do
	Version  string // of OpenClaw, such as 2026.9.6; empty before the first connection
	Protocol int    // that was agreed on; 0 before the first connection
	Missed   int64  // events of this connection that never came, by their numbers
}

// Status says where the connection stands now.
func (c *Client) Status() Status { return *c.status.Load() }

func (s Status) String() string {
	if s.Why == "" {
		return fmt.Sprintf("%s, OpenClaw %s, protocol %d", s.Phase, s.Version, s.Protocol)
	}
	return fmt.Sprintf("%s: %s", s.Phase, s.Why)
}
