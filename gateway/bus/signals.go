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

// Where the bus outlives the process the log is one stream with one subject, since the type of a signal can be any
// string: it stays in the body.
const (
	signalStream  = "VELA_SIGNALS"
	signalSubject = "vela.signal"
)

// What the log keeps, and what may be on its way to its stream.
const (
	// KeptSignals is how many signals the log keeps; the oldest one goes for each that comes beyond.
	KeptSignals = 10_000

	maxSignalBytes = 64 << 20 // of all that is kept: fewer signals, if they are long
	maxOnTheWay    = 4096
)

// Signals is the log of signals: the last 10,000, in the order in which they were appended. Any number of readers follow
// it, each from where it stood, and none of them holds up those who append or one another.
//
// All that is read is in memory. Where the bus outlives the process a signal goes to the stream first, and is there for
// readers once that has it, so that a place that a reader has been told is good after a restart as well.
type Signals struct {
	bus   *Bus
	epoch string
	ring  ring

	mu       sync.Mutex
	last     uint64            // number of the last one that was taken
	onTheWay map[uint64]func() // to the stream, by number; what takes the question back
	heard    time.Time         // when the stream answered last, or had nothing to answer
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

// Signals opens the log, with what is kept of it. It may be called once for a bus.
func (b *Bus) Signals(ctx context.Context) (*Signals, error) {
	l := &Signals{bus: b, onTheWay: map[uint64]func(){}, heard: time.Now()}
	if !b.lasts() {
		l.epoch = epoch(time.Now())
		return l, nil
	}
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
	if err := l.restore(ctx); err != nil {
		return nil, fmt.Errorf("bus: read the log of signals: %w", err)
	}
	return l, nil
}

// restore reads what the stream has.
func (l *Signals) restore(ctx context.Context) error {
	s, err := l.bus.js.Stream(ctx, signalStream)
	if err != nil {
		return ended(ctx, err)
	}
	info := s.CachedInfo()
	l.epoch, l.ring.last = epoch(info.Created), info.State.LastSeq
	return l.bus.each(ctx, signalStream, info.State.LastSeq, func(m jetstream.Msg, seq uint64) error {
		l.ring.add(seq, m.Data())
		return nil
	})
}

// epoch names a life of the log by when it began.
func epoch(began time.Time) string { return strconv.FormatInt(began.UnixMicro(), 36) }

// Append hands a signal's JSON to the log. It never waits: what the log cannot take is dropped and counted, be it that
// 4,096 signals are on their way already, that the disk is full, or that the store is not there. text is the log's from
// then on, and must not change any more.
func (l *Signals) Append(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.bus.ready(); err != nil {
		l.drop(err)
		return
	}
	if int64(len(text)) > l.bus.nc.MaxPayload()-headerRoom {
		l.drop(ErrTooLarge)
		return
	}
	if l.bus.lasts() {
		l.send(text)
		return
	}
	l.last++
	l.take(l.last, text)
}

// send has the stream take a signal. mu is held.
func (l *Signals) send(text []byte) {
	if len(l.onTheWay) == 0 {
		l.heard = time.Now()
	}
	if len(l.onTheWay) >= maxOnTheWay && !l.giveUp() {
		l.drop(ErrBehind)
		return
	}
	l.last++
	number := l.last
	forget, err := l.bus.answers.ask(&nats.Msg{Subject: signalSubject, Data: text}, func(m *nats.Msg, err error) {
		var seq uint64
		if err == nil {
			seq, err = stored(m)
		}
		l.answered(number, seq, text, err)
	})
	if err != nil {
		l.drop(err)
		return
	}
	l.onTheWay[number] = forget
}

// answered takes the stream's answer for one signal. Answers come in the order of the stream.
func (l *Signals) answered(number, seq uint64, text []byte, err error) {
	l.mu.Lock() // once send is done with it
	defer l.mu.Unlock()
	delete(l.onTheWay, number)
	l.heard = time.Now()
	if err == nil && seq <= l.ring.end() {
		err = errAnew
	}
	if err != nil {
		l.drop(err)
		return
	}
	l.take(seq, text)
}

// errAnew means that no place which readers know is good any more.
var errAnew = errors.New("bus: somebody has made the stream " + signalStream + " anew: restart the gateway")

// take has readers see a signal. mu is held.
func (l *Signals) take(seq uint64, text []byte) {
	l.failing = false
	l.bus.metrics.took()
	l.ring.add(seq, text)
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
		l.bus.metrics.lost()
	}
	return true
}

// drop counts a signal that is not kept, and says why for the first one. mu is held.
func (l *Signals) drop(why error) {
	l.dropped++
	l.bus.metrics.lost()
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

// End is the place behind the last signal. The error is [ErrClosed].
func (l *Signals) End() (Place, error) {
	if l.bus.answers.closed() {
		return Place{}, ErrClosed
	}
	return Place{l.epoch, l.ring.end()}, nil
}

// readerAhead is how many signals a reader takes out of the log at once.
const readerAhead = 64

// Follow yields the signals behind a place, first those that are kept, then each as it comes, until ctx is done, the
// reader leaves, or the bus is closed. The error, which is the last thing yielded, says which. A reader that is so slow
// that signals are gone before it comes to them goes on with the oldest that is left. Where it stands it needs next to no
// memory and no goroutine.
func (l *Signals) Follow(ctx context.Context, after Place) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := l.follow(ctx, after, func(e Entry) bool { return yield(e, nil) }); err != nil {
			yield(Entry{}, err)
		}
	}
}

func (l *Signals) follow(ctx context.Context, after Place, give func(Entry) bool) error {
	defer l.bus.metrics.reads()()
	known := after.epoch == l.epoch && after.seq <= l.ring.end() // otherwise it stands nowhere, and has missed nothing
	seq := uint64(0)
	if known {
		seq = after.seq
	}
	var some [readerAhead]logged
	for {
		n, added := l.ring.next(seq, some[:])
		for _, k := range some[:n] {
			if err := l.over(ctx); err != nil {
				return err
			}
			e := Entry{Place: Place{l.epoch, k.seq}, Text: k.text}
			if known {
				e.Missed = k.seq - seq - 1
			}
			seq, known = k.seq, true
			if !give(e) {
				return nil
			}
		}
		clear(some[:n])
		if n == 0 {
			select {
			case <-added:
			case <-ctx.Done():
			case <-l.bus.life.Done():
			}
		}
		if err := l.over(ctx); err != nil {
			return err
		}
	}
}

// over is why reading ends, or nil.
func (l *Signals) over(ctx context.Context) error {
	if l.bus.life.Err() != nil {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return fmt.Errorf("bus: read the log of signals: %w", context.Cause(ctx))
	}
	return nil
}
