// Package gateway puts the parts together: it is the only place that knows which engines, recognisers and servers
// there are. Start at [Config], [New] and [Gateway.Run]; the program in cmd/vela does nothing but fill the one and
// call the others, and so may a test or another program.
//
// The packages below: server is HTTP and the socket, room is LiveKit's rooms, bus keeps conversations and signals, auth
// knows who may come in, cert has the certificate, pipeline is what signals set off, source and discovery who else there
// is to listen to, tap how Claude Code and other programs are listened to and midi how devices are, watch tells when a
// folder changes, feed who follows signals and webhook one who is told of them; client is the protocol's client in Go,
// script the scripted turns.
//
// The files here: file.go reads vela.yaml, and file_agents.go, file_mcp.go and file_speech.go have its parts, file_yaml.go
// and file_anchors.go how it is written. agents.go is who answers, agents_make.go makes them of the file, agents_mcp.go their
// tools of MCP servers, agents_report.go says whether they are there and agents_absent.go stands for one that is not;
// offered.go is who might answer without a file, found.go what runs on this machine. ears.go, voices.go and detectors.go are
// who recognises, who speaks and what tells speech from silence, engines.go and sherpa.go what of that works in this process,
// speechservers.go whether the others are there, and hear.go asks the ears alone; recent.go has nobody be asked too often.
// kept.go is what outlives the process, rooms.go where LiveKit is, signals.go, follow.go and run.go the way of signals, who
// follows them and what they set off, sources.go and taps.go who else there is to listen to, journal.go and telemetry.go what
// is written down, listen.go where a gateway may listen.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"vela/gateway/auth"
	"vela/gateway/bus"
	"vela/gateway/cert"
	"vela/gateway/feed"
	"vela/gateway/room"
	"vela/gateway/server"
	"vela/gateway/webhook"
	"vela/session"
	"vela/session/opus"
	"vela/session/speech"
	"vela/turn/deterministic"
	"vela/web"
)

// DefaultAddr is where a gateway listens unless told otherwise.
const DefaultAddr = "127.0.0.1:8080"

// Config is what a gateway is made of. The zero value works.
type Config struct {
	Addr        string     // host:port; beyond loopback only with Keys and TLS; default [DefaultAddr]
	Keys        []auth.Key // server keys; none: everybody may come in
	TLS         TLS
	Turns       session.Turns // for clients that do not ask; default deterministic
	Pace        time.Duration // between the events of a deterministic answer; 0 answers at once
	Origins     []string      // of other pages that may connect, such as "https://example.org"
	MaxSessions int           // default 1,000
	Idle        time.Duration // after which a session without a word ends; default 10 minutes
	Resume      time.Duration // how long a session of version 2 outlives its connection; default 2 minutes
	Data        string        // folder where conversations lie, to survive a restart; empty: they end with the process
	NATS        string        // a NATS server that keeps them instead, such as nats://host:4222
	Wiring      string        // wiring.json: what signals set off; empty: that is kept in memory alone
	ClaudeCode  bool          // connect to Claude Code by itself, which puts hooks into its settings
	Project     string        // folder of the project whose Claude Code that is; default the working directory
	MIDI        string        // folder in which MIDI devices appear; default [midi.Usual]
	Webhook     Webhook       // who is told of signals; its zero value is nobody
	Journal     string        // folder where every session writes what its mailbox took; empty: none does
	Agents      File          // from vela.yaml; its zero value has the built-in agent alone
	Speech      Speech
	Log         *slog.Logger // nil discards
}

// Webhook is who is told of signals by HTTP.
type Webhook struct {
	URL    string   // empty: nobody
	Secret string   // whsec_…, as Standard Webhooks has it
	Types  []string // of signals; none: user.*
}

// Gateway is a gateway. Make it with [New].
type Gateway struct {
	cfg      Config
	log      *slog.Logger
	server   *server.Server
	engines  *engines
	detects  *detectors
	agents   *agents
	ears     *ears
	voices   *voices
	spoken   recent[spoken] // what of both is there
	finder   *finder
	codec    speech.Codec // nil where Opus is not in the build
	sessions *session.Metrics
	flow     *bus.Metrics
	journals *journals
	bus      *bus.Bus // of the signals; of conversations, too, where they outlive the process
	signals  *signals
	sources  sources
	taps     *taps
	offers   *offers
	webhook  *webhook.Webhook // nil where nobody is told
	traces   *traces
	tracer   trace.Tracer // nil where traces go nowhere
	rooms    *room.Rooms  // nil where there is no LiveKit

	authority *auth.Authority   // nil: everybody may come in
	cert      *cert.Certificate // nil: plain HTTP
}

// New checks the configuration and puts a gateway together. Nothing runs and nothing listens before [Gateway.Run].
func New(cfg Config) (_ *Gateway, err error) {
	if cfg.Addr == "" {
		cfg.Addr = DefaultAddr
	}
	if cfg.Turns == "" {
		cfg.Turns = session.Deterministic
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := mayListen(cfg.Addr, len(cfg.Keys) > 0, cfg.TLS.on()); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g := &Gateway{
		cfg:      cfg,
		log:      cfg.Log.With("component", "gateway"),
		engines:  newEngines(cfg.Speech, cfg.Log),
		detects:  newDetectors(cfg.Speech.Silero, cfg.Agents.vad, cfg.Log),
		sessions: session.NewMetrics(registry),
		flow:     bus.NewMetrics(registry),
		finder:   newFinder(),
		spoken:   newRecent[spoken](),
	}
	g.signals = &signals{log: cfg.Log.With("component", "signals"), feed: feed.New(feed.NewMetrics(registry))}
	if g.signals.run, err = newRun(cfg.Wiring, g.signals.log); err != nil {
		return nil, err
	}
	g.signals.run.shown = g.signals.commanded
	if g.webhook, err = cfg.makeWebhook(registry); err != nil {
		return nil, err
	}
	if g.agents, err = makeAgents(cfg.Agents, cfg.Log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.agents.close()
		}
	}()
	if g.ears, err = makeEars(cfg.Agents, g.engines, cfg.Log); err != nil {
		return nil, err
	}
	if g.voices, err = makeVoices(cfg.Agents, cfg.Log); err != nil {
		return nil, err
	}
	if codec, err := opus.New(); err == nil {
		g.codec = codec
	}
	if g.authority, err = newAuthority(cfg.Keys); err != nil {
		return nil, err
	}
	if g.cert, err = cfg.TLS.certificate(cfg.Addr); err != nil {
		return nil, err
	}
	if g.journals, err = openJournals(cfg.Journal, g.log); err != nil {
		return nil, err
	}
	if g.rooms, err = g.makeRooms(registry); err != nil {
		return nil, err
	}
	g.taps = makeTaps(cfg)
	if g.sources, err = g.makeSources(registry); err != nil {
		return nil, err
	}
	g.taps.sources = g.sources.Sources
	g.offers = &offers{look: g.taps.look, sources: g.sources.Sources, log: cfg.Log}
	if len(cfg.Agents.agents) == 0 && len(cfg.Keys) == 0 { // beyond this machine only what its operator has named is for anybody
		if err := g.agents.offer(g.offers); err != nil {
			return nil, err
		}
	}
	g.server, err = server.New(server.Config{
		NewSession:  g.newSession,
		Auth:        g.authority,
		TLS:         g.tlsConfig(),
		OwnName:     g.ownName,
		Page:        page(),
		Engines:     func(ctx context.Context) any { return g.Report(ctx) },
		Agents:      func(ctx context.Context) any { return g.agents.lately(ctx) },
		Discover:    func(ctx context.Context) any { return map[string]any{"services": g.taps.services(ctx)} },
		Signals:     g.signals,
		Run:         g.signals.run,
		Sources:     g.sources,
		Tap:         g.taps,
		Ready:       g.ready,
		Origins:     cfg.Origins,
		MaxSessions: cfg.MaxSessions,
		Log:         cfg.Log.With("component", "server"),
		Metrics:     registry,
		Rooms:       g.roomsServed(),
		Signalling:  g.signalling(),
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (c *Config) makeWebhook(registry *prometheus.Registry) (*webhook.Webhook, error) {
	metrics := webhook.NewMetrics(registry)
	if c.Webhook.URL == "" {
		return nil, nil
	}
	return webhook.New(webhook.Config{
		URL: c.Webhook.URL, Secret: c.Webhook.Secret, Types: c.Webhook.Types,
		Metrics: metrics, Log: c.Log.With("component", "webhook"),
	})
}

func page() fs.FS {
	if !web.Built() {
		return nil
	}
	return web.FS()
}

// Run listens and serves until ctx is done, then ends every session and returns: within 3 s, if clients do not answer,
// and a second more for each of a webhook and a collector of traces that does not, either.
// ready is called with the address as soon as connections are taken; it may be nil.
func (g *Gateway) Run(ctx context.Context, ready func(net.Addr)) error {
	defer g.agents.close()
	l, err := net.Listen("tcp", g.cfg.Addr)
	if err != nil {
		return fmt.Errorf("gateway: listen on %s: %w; choose another address or port with --addr", g.cfg.Addr, errors.Unwrap(err))
	}
	g.openTraces(ctx)
	defer g.closeTraces()
	if err := g.openBus(ctx); err != nil {
		_ = l.Close()
		return err
	}
	defer g.closeBus()
	if err := g.restore(ctx); err != nil {
		_ = l.Close()
		return err
	}
	defer g.engines.close()
	defer g.ears.close()
	var beside sync.WaitGroup
	working, rest := context.WithCancel(context.WithoutCancel(ctx)) // until the last signal of the last session
	beside.Go(func() { g.signals.run.work(working) })
	if g.webhook != nil {
		told := make(chan struct{})
		beside.Go(func() { g.webhook.Run(working, g.signals.feed, func() { close(told) }) })
		<-told // nothing is missed that comes from now on
	}
	if hooks := g.taps.listen(l.Addr(), g.cert != nil); hooks != nil {
		beside.Go(func() {
			if err := g.server.ServeHooks(ctx, hooks); err != nil {
				g.log.Warn("hooks of Claude Code are not taken any more", "error", err)
			}
		})
	}
	g.offers.running.Store(true)
	beside.Go(func() { g.sources.Run(ctx) })
	beside.Go(func() { g.taps.watch(ctx) })
	beside.Go(func() { g.offerEars(ctx) })
	for _, m := range g.ears.models {
		beside.Go(m.load)
	}
	if g.ears.local() {
		beside.Go(g.engines.load)
	} else {
		g.engines.skip()
	}
	beside.Go(func() { _, _ = g.detects.load() }) // which says itself what it could not
	defer beside.Wait()
	if g.rooms != nil {
		beside.Go(func() { g.rooms.Run(ctx) })
	}
	defer rest()
	defer g.agents.start(ctx)()
	g.log.Info("listening", "address", l.Addr().String())
	if ready != nil {
		ready(l.Addr())
	}
	return g.server.Serve(ctx, l)
}

// ready is nil once turns can be served.
func (g *Gateway) ready() error {
	for _, m := range g.ears.models {
		select {
		case <-m.loaded:
		default:
			return errLoading
		}
	}
	return g.engines.ready()
}

// offerEars says in the log, once, that there are better ones on this machine.
func (g *Gateway) offerEars(ctx context.Context) {
	if !g.ears.plain() {
		return
	}
	for _, o := range g.finder.lately(ctx) {
		g.log.Info("better ears run on this machine; put this below ears in vela.yaml to use them", "what", o.label, "ear", o.line)
	}
}

func (g *Gateway) newSession(n server.NewSession) *session.Session {
	return session.New(g.sessionConfig(n, uuid.NewString()))
}

func (g *Gateway) sessionConfig(n server.NewSession, id string) session.Config {
	turns := n.Turns
	if turns == "" {
		turns = g.cfg.Turns
	}
	return session.Config{
		ID:          id,
		Version:     n.Version,
		Token:       n.Token,
		Window:      g.cfg.Resume,
		Turns:       turns,
		Mock:        deterministic.Engine{Pace: g.cfg.Pace},
		Agents:      g.agents.named(),
		Transcriber: g.ears.transcriber(),

		Voices: g.voices.list,
		Codec:  g.codec,

		Detector: g.detects.stream,
		VAD:      g.detects.vad,

		Follow: g.follow(n, id),
		Emits:  n.Emits,

		Mirror:    g.mirror(),
		Only:      n.Only,
		Allowance: n.Audio,
		Idle:      g.cfg.Idle,
		Store:     g.store(id, n.Version),
		Journal:   func() io.WriteCloser { return g.journals.of(id) },
		Observe:   g.signals.of(id),
		Log:       g.cfg.Log.With("component", "session"),
		Metrics:   g.sessions,
		Tracer:    g.tracer,
	}
}

// follow is how a session's client follows what other agents do; nil where it may not.
func (g *Gateway) follow(n server.NewSession, id string) session.Follow {
	if !n.Follows {
		return nil
	}
	return g.signals.followedBy(id)
}
