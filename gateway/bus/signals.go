package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The log of signals is one stream with one subject, since the type of a signal can be any string: it stays in the body.
const (
	signalStream  = "VELA_SIGNALS"
	signalSubject = "vela.signal"
)

// What the log keeps, and what may be on its way to it.
const (
	// KeptSignals is how many signals the log keeps; the oldest one goes for each that comes beyond.
	KeptSignals = 10_000

	maxSignalBytes = 256 << 20 // of all that is kept: fewer signals, if they are long
	maxOnTheWay    = 4096
)

// Signals is the log of signals: the last 10,000, in the order in which they were appended. Any number of readers follow
// it, each from where it stood, and none of them holds up those who append or one another.
type Signals struct {
	bus   *Bus
	epoch string

	mu       sync.Mutex
	onTheWay map[uint64]func() // what takes the question for each back
	last     uint64            // number of the last one sent
	heard    time.Time         // when the store answered last, or had nothing to answer
	dropped  uint64
	failing  bool
}

// Place is where a reader of the log stands: behind a signal. The zero value is the beginning of what is kept. It is good
// for one life of the log: where the log has begun anew since, reading starts at its beginning.
type Place struct {
	epoch string
	seq   uint64
}

func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	return p.epoch + "-" + strconv.FormatUint(p.seq, 10)
}

// ParsePlace reads what [Place.String] wrote. What is none is the beginning.
func ParsePlace(text string) Place {
	epoch, number, _ := strings.Cut(text, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || epoch == "" || len(epoch) > 16 {
		return Place{}
	}
	return Place{epoch, seq}
}

// Entry is one signal of the log.
type Entry struct {
	Place Place // behind it
	Text  []byte
	// Missed is how many signals before this one the reader was too late for.
	Missed uint64
}

// Signals opens the log, and makes it where it is missing.
func (b *Bus) Signals(ctx context.Context) (*Signals, error) {
	config := jetstream.StreamConfig{
		Name:        signalStream,
		Description: "The last signals of Vela's pipeline.",
		Subjects:    []string{signalSubject},
		MaxMsgs:     KeptSignals,
		MaxBytes:    maxSignalBytes,
		Discard:     jetstream.DiscardOld,
		Storage:     b.storage,
	}
	if err := b.ensure(ctx, config); err != nil {
		return nil, err
	}
	s, err := b.js.Stream(ctx, signalStream)
	if err != nil {
		return nil, fmt.Errorf("bus: open the log of signals: %w", err)
	}
	return &Signals{
		bus: b, onTheWay: map[uint64]func(){}, heard: time.Now(),
		epoch: strconv.FormatInt(s.CachedInfo().Created.UnixMicro(), 36),
	}, nil
}

// Append hands a signal's JSON to the log. It never waits: what the log cannot take is dropped and counted, be it that
// 4,096 signals are on their way already, that the disk is full, or that the store is not there. text belongs to the log
// until it is stored, and so must not change any more.
func (l *Signals) Append(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.onTheWay) == 0 {
		l.heard = time.Now()
	}
	if len(l.onTheWay) >= maxOnTheWay && !l.giveUp() {
		l.drop(ErrBehind)
		return
	}
	if err := l.bus.ready(); err != nil {
		l.drop(err)
		return
	}
	if int64(len(text)) > l.bus.nc.MaxPayload()-headerRoom {
		l.drop(ErrTooLarge)
		return
	}
	l.last++
	number := l.last
	forget, err := l.bus.answers.ask(&nats.Msg{Subject: signalSubject, Data: text}, func(m *nats.Msg, err error) {
		if err == nil {
			_, err = stored(m)
		}
		l.answered(number, err)
	})
	if err != nil {
		l.drop(err)
		return
	}
	l.onTheWay[number] = forget
}

// answered takes the answer for one signal. It waits for Append to be done with it.
func (l *Signals) answered(number uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.onTheWay, number)
	l.heard = time.Now()
	if err != nil {
		l.drop(err)
		return
	}
	l.failing = false
}

// giveUp forgets what is on its way once no answer has come for long. mu is held.
func (l *Signals) giveUp() bool {
	if time.Since(l.heard) < ackWait {
		return false
	}
	l.bus.lost()
	for number, forget := range l.onTheWay {
		forget()
		delete(l.onTheWay, number)
		l.dropped++
	}
	return true
}

// drop counts a signal that is not kept, and says why for the first one. mu is held.
func (l *Signals) drop(why error) {
	l.dropped++
	if !l.failing && !errors.Is(why, ErrClosed) {
		l.failing = true
		l.bus.log.Warn("signals are not kept in the log", "error", why)
	}
}

// Dropped is how many signals were not kept, for all we know.
func (l *Signals) Dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// End is the place behind the last signal.
func (l *Signals) End(ctx context.Context) (Place, error) {
	s, err := l.stream(ctx)
	if err != nil {
		return Place{}, err
	}
	return Place{l.epoch, s.CachedInfo().State.LastSeq}, nil
}

func (l *Signals) stream(ctx context.Context) (jetstream.Stream, error) {
	if l.bus.answers.closed() {
		return nil, ErrClosed
	}
	s, err := l.bus.js.Stream(ctx, signalStream)
	if err != nil {
		return nil, fmt.Errorf("bus: look at the log of signals: %w", ended(ctx, err))
	}
	return s, nil
}

// How much a reader of the log is sent ahead of what it has taken, and how long taking its leave may last.
const (
	readerAhead = 64
	pullFor     = 10 * time.Second
	pulse       = time.Second // a reader that hears nothing for two of them asks anew, from where it was
	leaveWithin = time.Second
)

// Follow yields the signals behind a place, first those that are kept, then each as it comes, until ctx is done, the
// reader leaves, or the bus is closed. The error, which is the last thing yielded, says which. A reader that is so slow
// that signals are gone before it comes to them goes on with the oldest that is left.
func (l *Signals) Follow(ctx context.Context, after Place) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := l.follow(ctx, after, func(e Entry) bool { return yield(e, nil) }); err != nil {
			yield(Entry{}, err)
		}
	}
}

func (l *Signals) follow(ctx context.Context, after Place, give func(Entry) bool) error {
	s, err := l.stream(ctx)
	if err != nil {
		return err
	}
	seq := uint64(0)
	if state := s.CachedInfo().State; after.epoch == l.epoch && after.seq <= state.LastSeq {
		seq = after.seq
	}
	known := seq > 0 // where it stands; otherwise it has missed nothing
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: seq + 1,
	})
	if err != nil {
		return fmt.Errorf("bus: read the log of signals: %w", ended(ctx, err))
	}
	defer l.leave(s, c)
	messages, err := c.Messages(jetstream.PullMaxMessages(readerAhead), jetstream.PullExpiry(pullFor), jetstream.PullHeartbeat(pulse))
	if err != nil {
		return fmt.Errorf("bus: read the log of signals: %w", ended(ctx, err))
	}
	defer messages.Stop()
	stop := context.AfterFunc(l.bus.life, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil && l.bus.answers.closed() {
			return ErrClosed
		}
		if err != nil {
			return fmt.Errorf("bus: read the log of signals: %w", ended(ctx, err))
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("bus: read the log of signals: %w", err)
		}
		e := Entry{Place: Place{l.epoch, meta.Sequence.Stream}, Text: m.Data()}
		if known {
			e.Missed = meta.Sequence.Stream - seq - 1
		}
		seq, known = meta.Sequence.Stream, true
		if !give(e) {
			return nil
		}
	}
}

// leave has the server forget a reader at once, rather than after minutes.
func (l *Signals) leave(s jetstream.Stream, c jetstream.Consumer) {
	if l.bus.answers.closed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	// It forgets a reader by itself, too, only later.
	_ = s.DeleteConsumer(ctx, c.CachedInfo().Name)
}
