// Package server is the gateway's face on HTTP: the socket at /ws, the page at /, and what operators ask for.
//
// Start at [New]; [Server.Serve] accepts connections until its context is done, then drains. One connection is a
// socket (socket.go), which is a [session.Peer]; what waits to be written to it stands in its outbox (outbox.go);
// sessions.go counts the sessions that run and waits for them; access.go says which pages may come in and auth.go who,
// by what credential.go finds in a request; signals.go takes signals and streams them, signaller.go has them in a socket, run.go
// is what they set off, sources.go where else they come from; tokens.go makes tokens, rooms.go is what LiveKit and its
// participants ask for, rtc.go what is passed on to it, tls.go is for listening with a certificate.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"vela/gateway/auth"
	"vela/protocol"
	"vela/session"
)

// Config is what a server is made of.
type Config struct {
	// NewSession returns a session that has not run yet, and may never run.
	NewSession func(NewSession) *session.Session

	Auth        *auth.Authority           // who may come in; nil: everybody
	TLS         *tls.Config               // nil: plain HTTP
	OwnName     func(string) bool         // with TLS: whether we are known under this host name; nil: under none
	Page        fs.FS                     // the built page; nil: a text that says how to build it
	Engines     func(context.Context) any // what /api/engines answers, as JSON
	Agents      func(context.Context) any // what /api/agents answers, as JSON, within some seconds
	Discover    func(context.Context) any // what /api/discover/local answers, as JSON; nil: no such route
	Signals     Signals                   // nil: there are none
	Run         Run                       // nil: signals set nothing off
	Sources     Sources                   // nil: there are none
	Tap         Tap                       // nil: Claude Code has no hooks of ours
	Ready       func() error              // nil once turns can be served; its error is shown at /readyz
	Origins     []string                  // origins, such as "https://example.org", of other pages that may connect
	MaxSessions int                       // default 1,000
	FirstWord   time.Duration             // how long a client of version 2 has to begin; default 10 s
	Ping        time.Duration             // between pings; default 20 s. A client has as long to answer
	Drain       time.Duration             // how long clients have to say goodbye when the server stops; default 2 s
	MaxMessage  int                       // bytes; default 1 MiB
	Log         *slog.Logger              // nil discards
	Metrics     *prometheus.Registry      // nil: a new one
	Rooms       Rooms                     // nil: there is no LiveKit
	Signalling  string                    // http address of a LiveKit that participants reach through us; empty: they reach it themselves
}

// NewSession is what the server knows of a session that a client asks for.
type NewSession struct {
	Version int           // of the protocol
	Turns   session.Turns // empty where the address did not say
	Token   string        // resumes it; empty in version 1

	Only  []session.Turns   // the kinds of turns that the client may have; empty for all
	Audio session.Allowance // what the client's audio is taken from; nil is without limit

	Follows, Emits bool // what the client may do with signals: see everybody's, emit its own
}

// Server serves HTTP. Make it with [New].
type Server struct {
	cfg      Config
	log      *slog.Logger
	echo     *echo.Echo
	origins  origins
	throttle auth.Throttle
	leaving  atomic.Int32  // sockets that are being turned away
	upgraded atomic.Uint64 // sockets there have been
	sessions *sessions
	streams  atomic.Int32 // event streams that are open
	metrics  *metrics
}

// New returns a server that does not listen yet. It returns an error for an origin that is none.
func New(cfg Config) (*Server, error) {
	cfg.setDefaults()
	allowed, err := parseOrigins(cfg.Origins)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     cfg,
		log:     cfg.Log,
		echo:    echo.New(),
		origins: allowed,
		metrics: newMetrics(cfg.Metrics),
	}
	s.sessions = newSessions(cfg.MaxSessions, s.metrics)
	s.routes()
	return s, nil
}

func (c *Config) setDefaults() {
	if c.MaxSessions == 0 {
		c.MaxSessions = 1000
	}
	if c.FirstWord == 0 {
		c.FirstWord = 10 * time.Second
	}
	if c.Ping == 0 {
		c.Ping = 20 * time.Second
	}
	if c.Drain == 0 {
		c.Drain = 2 * time.Second
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = 1 << 20
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Agents == nil {
		c.Agents = func(context.Context) any { return struct{}{} }
	}
	if c.Engines == nil {
		c.Engines = func(context.Context) any { return struct{}{} }
	}
}

func (s *Server) routes() {
	e := s.echo
	e.HideBanner, e.HidePort = true, true
	e.Use(s.ownHostOnly, secureHeaders, s.authenticate)
	e.GET("/ws", s.serveSocket)
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.serveReady)
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{})), s.serverKeyOnly)
	e.POST("/api/tokens", s.serveTokens, s.serverKeyOnly)
	e.GET("/asyncapi.yaml", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/yaml", protocol.AsyncAPI)
	})
	e.GET("/api/engines", func(c echo.Context) error { return c.JSON(http.StatusOK, s.cfg.Engines(c.Request().Context())) })
	e.GET("/api/agents", func(c echo.Context) error {
		return c.JSON(http.StatusOK, s.cfg.Agents(c.Request().Context()))
	})
	s.rooms()
	s.rtc()
	if s.cfg.Discover != nil {
		e.GET("/api/discover/local", func(c echo.Context) error {
			return c.JSON(http.StatusOK, s.cfg.Discover(c.Request().Context()))
		}, s.serverKeyOnly, s.ownPagesOnly)
	}
	s.signalRoutes()
	s.runRoutes()
	s.sourceRoutes()
	s.tapRoutes()
	e.Any("/api/*", func(echo.Context) error { return echo.NewHTTPError(http.StatusNotFound, noRoute) })
	s.page()
}

const noRoute = "There is no such route, or it takes another method: POST where something is asked for or sent."

func (s *Server) serveReady(c echo.Context) error {
	err := s.cfg.Ready()
	if s.sessions.draining() {
		err = errDraining
	}
	if err != nil {
		return c.String(http.StatusServiceUnavailable, err.Error()+"\n")
	}
	return c.String(http.StatusOK, "ready\n")
}

// Serve accepts connections on l until ctx is done. Then it takes no more sessions, closes the running ones with 1001,
// and returns when all of them have ended, at most a second after the time that clients have to say goodbye. It closes
// l, and returns nil unless accepting failed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := s.bounded(s.echo)
	served := make(chan error, 1)
	go func() { served <- s.accept(h, l) }()
	var failed error
	select {
	case failed = <-served:
	case <-ctx.Done():
	}
	s.drain(h)
	if failed == nil {
		failed = <-served
	}
	if errors.Is(failed, http.ErrServerClosed) {
		return nil
	}
	return failed
}

// bounded serves a handler, with bounds for what a request may take.
func (s *Server) bounded(what http.Handler) *http.Server {
	return &http.Server{
		Handler:           what,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// drain ends what runs: sockets first, since they are the conversations, then plain requests.
func (s *Server) drain(h *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Drain)
	defer cancel()
	s.sessions.drain(ctx)
	if err := h.Shutdown(ctx); err != nil {
		_ = h.Close()
	}
}
