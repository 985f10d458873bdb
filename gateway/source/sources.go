package source

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"vela/protocol/signal"
)

// Config is what [Sources] are made of. Take is required.
type Config struct {
	// Take is given every signal, with the id of the source that it came through. It is called from several goroutines,
	// and must not wait.
	Take func(id string, r signal.Raw)

	// Look finds what runs on this machine, within a second; nil: nothing is looked for.
	Look func(ctx context.Context) []Found
	// Token finds OpenClaw's token on this machine; nil: it is not looked for. Its error is a [Refusal], or not shown.
	Token func() (string, error)
	Hooks Hooks // of Claude Code; nil: it cannot be connected to
	// Claude says that Claude Code may be connected to by itself, which changes its settings; otherwise a person does so.
	Claude bool
	// MIDI opens the device of an address such as midi://maker/name/port; nil: there is none.
	MIDI func(ctx context.Context, address string) (Feed, error)

	Kept Kept             // of another process
	Keep func(Kept) error // is called whenever that changes, and must not take long; nil: it ends with the process

	dial func(ctx context.Context, network, address string) (net.Conn, error) // for tests; nil is a [Dialer]

	NewID   func() string // of signals and prompts; UUIDs unless given
	Log     *slog.Logger  // nil discards
	Metrics *Metrics      // nil counts nothing
}

// Hooks puts Claude Code's hooks into its settings, and takes them out again. Both may be called again without harm, one
// at a time. An error that is a [Refusal] is shown; of any other only that there was one.
type Hooks interface {
	Install(ctx context.Context) error
	Remove(ctx context.Context) error
}

// Feed is a connection to a source, and the way in which what it says becomes signals. Its methods are called from one
// goroutine. An error of Next that is a [Refusal] is shown.
type Feed interface {
	Conn
	// Parse makes signals of one message, each of them valid.
	Parse(message []byte) []signal.Raw
}

// Sources are all sources at work. Make them with [New]; everything but [Sources.Run] may be called from any goroutine,
// and waits for Run.
type Sources struct {
	cfg   Config
	log   *slog.Logger
	stamp Stamp
	calls chan func(*keeper)
	found chan struct{} // closed when it is known for the first time what runs on this machine
	over  chan struct{} // closed when Run has returned
}

// ErrOver comes from sources that are not run any more.
var ErrOver = errors.New("source: they are not run any more")

// New returns sources of which none is connected. Nothing happens before [Sources.Run].
func New(cfg Config) *Sources {
	if cfg.NewID == nil {
		cfg.NewID = uuid.NewString
	}
	if cfg.dial == nil {
		cfg.dial = Dialer(dialTime).DialContext
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	s := &Sources{
		cfg: cfg, log: cfg.Log, stamp: Stamp{NewID: cfg.NewID, Now: time.Now},
		calls: make(chan func(*keeper)), found: make(chan struct{}), over: make(chan struct{}),
	}
	if cfg.Look == nil {
		close(s.found)
	}
	return s
}

// Run looks after all sources until ctx is done, then disconnects them, and returns when the last has ended. It is called
// once.
func (s *Sources) Run(ctx context.Context) {
	defer close(s.over)
	k := newKeeper(ctx, s)
	k.resume()
	k.scan()
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for done := ctx.Done(); done != nil || k.busy(); {
		select {
		case <-done:
			done = nil
			k.stop()
		case call := <-s.calls:
			call(k)
			k.tell(time.Now(), false)
		case now := <-tick.C:
			k.sample(now)
			k.tell(now, true)
		case <-k.scans.C:
			k.scan()
		}
	}
}

// tell has the goroutine of Run call a function. It is for those that Run waits for.
func (s *Sources) tell(call func(*keeper)) { s.calls <- call }

// do has the goroutine of Run call a function, and waits for it. The error is that of the function, [ErrOver], or the
// context's cause.
func (s *Sources) do(ctx context.Context, call func(*keeper) error) error {
	done := make(chan error, 1)
	select {
	case s.calls <- func(k *keeper) { done <- call(k) }:
		return <-done
	case <-s.over:
		return ErrOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change is do for a function that changes one source, which is returned as it is then.
func (s *Sources) change(ctx context.Context, id string, call func(*keeper) error) (now Source, err error) {
	err = s.do(ctx, func(k *keeper) error {
		if err := call(k); err != nil {
			return err
		}
		now, err = k.get(id)
		return err
	})
	return now, err
}

// List is all sources as they are now.
func (s *Sources) List(ctx context.Context) (all []Source, err error) {
	err = s.do(ctx, func(k *keeper) error {
		all = k.list(time.Now())
		return nil
	})
	return all, err
}

// Access is one source and its key, for whoever asks its model without listening to it. The key is for nobody else.
func (s *Sources) Access(ctx context.Context, id string) (now Source, key string, err error) {
	now, err = s.change(ctx, id, func(k *keeper) error {
		key = k.Key(id)
		return nil
	})
	return now, key, err
}

// Watch yields all sources as they are now, and again whenever something has changed, at most twice a second, until ctx is
// done or Run ends. Who is slow misses what is old.
func (s *Sources) Watch(ctx context.Context) iter.Seq[[]Source] {
	return func(yield func([]Source) bool) {
		news := make(chan []Source, 1)
		if s.do(ctx, func(k *keeper) error {
			all := k.list(time.Now())
			k.watchers[news] = all
			news <- all
			return nil
		}) != nil {
			return
		}
		defer func() {
			_ = s.do(context.WithoutCancel(ctx), func(k *keeper) error { delete(k.watchers, news); return nil })
		}()
		for {
			select {
			case all := <-news:
				if !yield(all) {
					return
				}
			case <-ctx.Done():
				return
			case <-s.over:
				return
			}
		}
	}
}

// Add adds a remote source, with its key if it is not empty. A [Mistake] says what is wrong.
func (s *Sources) Add(ctx context.Context, name, address, key string) (added Source, err error) {
	err = s.do(ctx, func(k *keeper) error {
		added, err = k.add(name, address, key)
		return err
	})
	return added, err
}

// Remove disconnects a remote source, and forgets it with its key. It may be called for one that connects meanwhile.
func (s *Sources) Remove(ctx context.Context, id string) error {
	for {
		var gone <-chan struct{}
		err := s.do(ctx, func(k *keeper) (err error) {
			gone, err = k.remove(id)
			return err
		})
		if err != nil || gone == nil {
			return err
		}
		if err := s.await(ctx, gone); err != nil {
			return err
		}
	}
}

// Scan looks for what runs on this machine, and returns all sources as they are then.
func (s *Sources) Scan(ctx context.Context) ([]Source, error) {
	var scanned <-chan struct{}
	err := s.do(ctx, func(k *keeper) error {
		scanned = k.scan()
		return nil
	})
	if err == nil {
		err = s.await(ctx, scanned)
	}
	if err != nil {
		return nil, err
	}
	return s.List(ctx)
}

// Connect begins to connect to a source, unless it is or does. How that goes is seen in the source. A source that is not
// known may be one on this machine that is about to be found.
func (s *Sources) Connect(ctx context.Context, id string) (Source, error) {
	connect := func(k *keeper) error { return k.connect(id) }
	now, err := s.change(ctx, id, connect)
	if !errors.Is(err, ErrUnknown) {
		return now, err
	}
	if err := s.await(ctx, s.found); err != nil {
		return Source{}, err
	}
	return s.change(ctx, id, connect)
}

// Disconnect ends the connection to a source, stops its prompts, and returns when both have ended.
func (s *Sources) Disconnect(ctx context.Context, id string) (Source, error) {
	var gone <-chan struct{}
	now, err := s.change(ctx, id, func(k *keeper) error {
		gone = k.disconnect(id)
		return nil
	})
	if err != nil || gone == nil {
		return now, err
	}
	if err := s.await(ctx, gone); err != nil {
		return Source{}, err
	}
	return s.change(ctx, id, func(*keeper) error { return nil })
}

// SetKey keeps a source's key, or forgets it with an empty one. It counts from the next connection, or prompt, on.
func (s *Sources) SetKey(ctx context.Context, id, key string) (Source, error) {
	return s.change(ctx, id, func(k *keeper) error { return k.setKey(id, func() error { return k.SetKey(id, key, false) }) })
}

// PasteKey takes a source's key from where its program keeps it on this machine: of an OpenClaw that is here, for its key is
// for no other.
func (s *Sources) PasteKey(ctx context.Context, id string) (Source, error) {
	now, err := s.change(ctx, id, func(*keeper) error { return nil })
	if err != nil {
		return Source{}, err
	}
	if now.Protocol != Gateway || !onThisMachine(now.URL) {
		return Source{}, Mistake("Only the key of an OpenClaw on this machine can be found by itself. Type the key.")
	}
	token, err := s.Token()
	if err != nil {
		return Source{}, err
	}
	return s.change(ctx, id, func(k *keeper) error { return k.setKey(id, func() error { return k.Paste(id, token) }) })
}

// Token is the token of the OpenClaw on this machine. The error is a [Mistake].
func (s *Sources) Token() (string, error) {
	if s.cfg.Token == nil {
		return "", Mistake("OpenClaw's token is not looked for on this machine.")
	}
	token, err := s.cfg.Token()
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		return "", Mistake(refusal.Error())
	case err != nil:
		return "", Mistake("OpenClaw's token was not found on this machine.")
	}
	return token, nil
}

// Choose chooses the model that a source's prompts go to.
func (s *Sources) Choose(ctx context.Context, id, model string) (Source, error) {
	return s.change(ctx, id, func(k *keeper) error { return k.choose(id, model) })
}

// Prompt asks the chosen model of a source. It returns as soon as that has begun, with the correlation id of the signals that
// follow: a task_dispatch, the answer, and a completion or an error.
func (s *Sources) Prompt(ctx context.Context, id, text string) (correlation string, err error) {
	err = s.do(ctx, func(k *keeper) error {
		correlation, err = k.prompt(id, text)
		return err
	})
	return correlation, err
}

// Stop stops a source's prompts. Nothing more comes of them.
func (s *Sources) Stop(ctx context.Context, id string) error {
	return s.do(ctx, func(k *keeper) error { return k.stopPrompts(id) })
}

// Heard takes a signal from a source that is not dialled but speaks up itself, as Claude Code does through its hooks. The
// error is [ErrUnknown] or [ErrNotConnected]. What is too much is dropped, and seen in the source.
func (s *Sources) Heard(id string, r signal.Raw) error {
	var via *child
	err := s.do(context.Background(), func(k *keeper) (err error) {
		via, err = k.connected(id)
		return err
	})
	if err != nil {
		return err
	}
	if passes, _ := via.gate.admit(len(r.Payload) + len(r.Metadata)); passes {
		via.take(r)
	}
	return nil
}

// await waits for something that Run does.
func (s *Sources) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-s.over:
		return ErrOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
