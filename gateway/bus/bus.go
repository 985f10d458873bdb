// Package bus keeps conversations where a crash of the process does not reach them, and the last signals, for whoever
// follows them.
//
// Start at [Open]. A [Bus] is NATS JetStream: a server inside this process without a listener, its streams in memory or
// in a folder, or a server elsewhere by its address; what stands above cannot tell. A conversation has one place on it,
// its [Session], with two things: its events, appended in order, and a small state, the last of which counts. What the
// store has acknowledged survives the process being killed at any moment, because it has been handed to the operating
// system by then; it is not forced onto the disk for each event, so a power failure may take the last two minutes.
// After a start [Bus.Sessions] gives back all that is kept.
//
// The methods of Bus and Session may be called from any goroutine. [Session.AppendAsync] never waits; all that waits
// takes a context and ends with it. Everything is bounded: what is kept of a conversation, and what is on its way.
//
// [Signals] is the log of signals, which is read from memory. It has a stream of its own where the bus outlives the
// process; being quick goes before being kept.
//
// On the wire the conversations are two streams, whose messages lie on vela.session.<id>.event and vela.session.<id>.state. One
// message carries the events that gathered while the one before was on its way, and is taken only if the subject's last
// message is the one that the writer knows of: two writers of one conversation cannot both go on.
package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config says where the bus lives. The zero value keeps everything in memory.
type Config struct {
	// Dir is the folder of the embedded server's streams; it is made where it is missing, and belongs to one process at
	// a time. Empty keeps them in memory.
	Dir string
	// URL is a NATS server with JetStream elsewhere, such as nats://host:4222; Dir has to be empty then. Its streams
	// VELA_EVENTS and VELA_STATES are made where they are missing, and left as they are otherwise.
	URL string
	// MaxBytes bounds all the events together; [ErrFull] is what comes after. 0 means 1 GiB in memory, and elsewhere
	// whatever the disk has.
	MaxBytes int64
	// Metrics counts signals. Nil counts nothing.
	Metrics *Metrics
	// Log gets what the server and the connection have to say. Nil discards it.
	Log *slog.Logger
}

const (
	eventStream = "VELA_EVENTS"
	stateStream = "VELA_STATES"

	defaultMemory = 1 << 30

	// maxMessage is the largest message of the embedded server; a server elsewhere has its own bound, 1 MiB by default.
	maxMessage = 8 << 20

	connectWait   = 5 * time.Second
	reconnectWait = 50 * time.Millisecond
)

// ackWait is how long the bus waits for an answer before it takes the question for lost. A variable for the tests.
var ackWait = 5 * time.Second

// Bus is an open store of conversations.
type Bus struct {
	log      *slog.Logger
	metrics  *Metrics
	embedded *embedded // nil where the server is elsewhere
	nc       *nats.Conn
	claim    *nats.Conn // says that a server elsewhere is taken; nil where it is embedded
	js       jetstream.JetStream
	answers  answers
	storage  jetstream.StorageType // of what is kept
	life     context.Context       // ends with Close
	over     context.CancelFunc

	closing  sync.Once
	closeErr error
}

// Open starts the embedded server, or connects to the one at the address, and makes sure that the streams are there, and that
// no other gateway has them: that is [ErrInUse]. [Bus.Close] gives back what it took.
func Open(ctx context.Context, c Config) (*Bus, error) {
	b, err := start(ctx, c)
	if err != nil || c.URL == "" {
		return b, err // a folder is locked
	}
	if err := b.occupy(ctx, c.URL); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func start(ctx context.Context, c Config) (*Bus, error) {
	if c.Dir != "" && c.URL != "" {
		return nil, errors.New("bus: a folder and an address exclude each other: leave one of them empty")
	}
	b := &Bus{log: c.Log, metrics: c.Metrics, storage: jetstream.FileStorage}
	b.life, b.over = context.WithCancel(context.Background())
	if c.URL == "" && c.Dir == "" {
		b.storage = jetstream.MemoryStorage
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if c.URL == "" {
		e, err := openEmbedded(c.Dir, b.log)
		if err != nil {
			return nil, err
		}
		b.embedded = e
	}
	if err := b.connect(ctx, c.URL); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := b.ensureStreams(ctx, c); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if b.embedded != nil {
		b.embedded.keep(func() { b.answers.failAll(fmt.Errorf("%w: the disk is full", ErrFull)) })
	}
	return b, nil
}

// Close ends the connection and the embedded server. What was on its way fails with [ErrClosed]. Only the first call
// does anything.
func (b *Bus) Close() error {
	b.closing.Do(func() {
		b.answers.close()
		b.over()
		for _, nc := range []*nats.Conn{b.claim, b.nc} {
			if nc != nil {
				nc.Close()
			}
		}
		if b.embedded != nil {
			b.closeErr = b.embedded.close()
		}
	})
	return b.closeErr
}

func (b *Bus) connect(ctx context.Context, url string) (err error) {
	options := []nats.Option{
		nats.ReconnectBufSize(-1), // an event that cannot be sent now fails now
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if !b.answers.closed() {
				b.log.Warn("bus disconnected", "error", err)
			}
			b.answers.failAll(fmt.Errorf("%w: the connection broke", ErrUnavailable))
		}),
		nats.ReconnectHandler(func(*nats.Conn) { b.log.Info("bus connected again") }),
	}
	if b.embedded != nil {
		options = append(options, nats.InProcessServer(b.embedded))
	}
	if b.nc, err = b.dial(ctx, url, options...); err != nil {
		return err
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		return fmt.Errorf("bus: connect: %w", err)
	}
	return b.answers.listen(b.nc)
}

// dial makes a connection that comes back by itself until it is closed.
func (b *Bus) dial(ctx context.Context, url string, options ...nats.Option) (*nats.Conn, error) {
	d := &dialer{ctx: ctx}
	options = append([]nats.Option{
		nats.Name("vela"),
		nats.SetCustomDialer(d),
		nats.Timeout(connectWait),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.log.Warn("bus", "error", err) }),
	}, options...)
	stop := context.AfterFunc(ctx, d.cut)
	nc, err := nats.Connect(url, options...)
	if !stop() && err == nil {
		nc.Close()
		err = context.Cause(ctx)
	}
	d.opened()
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
		return nil, fmt.Errorf("bus: connect: %w: is a nats-server running at the address, and does it let us in?", err)
	}
	return nc, nil
}

func (b *Bus) ensureStreams(ctx context.Context, c Config) error {
	events := jetstream.StreamConfig{
		Name:              eventStream,
		Description:       "The events of Vela's conversations.",
		Subjects:          []string{eventSubject("*")},
		MaxMsgsPerSubject: 2 * maxEvents, // out of reach, since we trim
		MaxBytes:          -1,
		Discard:           jetstream.DiscardNew, // full is an error, never somebody else's conversation
		Storage:           b.storage,
	}
	if c.MaxBytes > 0 {
		events.MaxBytes = c.MaxBytes
	}
	states := events
	states.Name = stateStream
	states.Description = "The states of Vela's conversations."
	states.Subjects = []string{stateSubject("*")}
	states.MaxMsgsPerSubject = 64 // out of reach as well
	states.AllowRollup = true     // which Save does, and which leaves one
	states.AllowMsgTTL = true     // for the mark of an end
	states.MaxBytes = -1
	if b.storage == jetstream.MemoryStorage && c.MaxBytes <= 0 {
		events.MaxBytes = defaultMemory
	}
	if err := b.ensure(ctx, events); err != nil {
		return err
	}
	return b.ensure(ctx, states)
}

// ensure makes a stream where it is missing. It asks again where no answer comes: a server that is asked for the same stream
// by several at once was seen to leave one without.
func (b *Bus) ensure(ctx context.Context, c jetstream.StreamConfig) error {
	err := b.ensureOnce(ctx, c)
	for tries := 1; tries < 3 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; tries++ {
		err = b.ensureOnce(ctx, c)
	}
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("bus: the NATS server has no JetStream: start it with -js: %w", err)
	}
	if err != nil {
		return fmt.Errorf("bus: open stream %s: %w", c.Name, err)
	}
	return nil
}

func (b *Bus) ensureOnce(ctx context.Context, c jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	_, err := b.js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err = b.js.CreateStream(ctx, c); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // another gateway was quicker
		}
	}
	return err
}

// ready says why nothing can be stored just now, or nil.
func (b *Bus) ready() error {
	switch {
	case b.answers.closed():
		return ErrClosed
	case b.embedded != nil:
		return b.embedded.room()
	case !b.nc.IsConnected():
		return fmt.Errorf("%w: not connected to the NATS server", ErrUnavailable)
	}
	return nil
}

// lasts says whether what is kept outlives the process.
func (b *Bus) lasts() bool { return b.storage == jetstream.FileStorage }

// lost is told that an answer did not come.
func (b *Bus) lost() {
	if b.embedded != nil {
		b.embedded.suspect()
	}
}

// dialer lets the context of Open end a connection that is being made, and has no say after that.
type dialer struct {
	mu   sync.Mutex
	ctx  context.Context // of Open; nil once that returned
	conn net.Conn
}

// Dial implements [nats.CustomDialer].
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	ctx := d.ctx
	d.mu.Unlock()
	if ctx == nil {
		ctx = context.Background()
	}
	nd := net.Dialer{Timeout: connectWait}
	conn, err := nd.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx != nil {
		d.conn = conn
		if d.ctx.Err() != nil {
			conn.Close()
		}
	}
	return conn, nil
}

func (d *dialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		d.conn.Close()
	}
}

func (d *dialer) opened() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx, d.conn = nil, nil
}
