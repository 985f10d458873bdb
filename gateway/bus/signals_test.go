package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func signals(t testing.TB, b *Bus) *Signals {
	t.Helper()
	l, err := b.Signals(soon(t))
	must(t, err)
	return l
}

func signalText(n int) []byte {
	return fmt.Appendf(nil, `{"id":"sig-%d","type":"thinking","timestamp":1,"source":"s","payload":{"agentId":"a","content":"word"}}`, n)
}

// log appends signals, no faster than they are stored.
func (l *Signals) log(from, to int) {
	for n := from; n <= to; n++ {
		for l.waiting() >= maxOnTheWay/2 {
			runtime.Gosched()
		}
		l.Append(signalText(n))
	}
	for l.waiting() > 0 {
		runtime.Gosched()
	}
}

func (l *Signals) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.onTheWay)
}

// read takes what the log has behind a place, until and with the signal number last, which has to be there.
func read(t testing.TB, l *Signals, after Place, last int) []Entry {
	t.Helper()
	var all []Entry
	for e, err := range l.Follow(soon(t), after) {
		must(t, err)
		all = append(all, e)
		if bytes.Equal(e.Text, signalText(last)) {
			break
		}
	}
	return all
}

// wantSignals are the signals first to last, in order.
func wantSignals(t testing.TB, all []Entry, first, last int) {
	t.Helper()
	if len(all) != last-first+1 {
		t.Fatalf("%d signals, want %d to %d", len(all), first, last)
	}
	for i, e := range all {
		if want := signalText(first + i); !bytes.Equal(e.Text, want) || e.Missed != 0 {
			t.Fatalf("%q after %d missed, want %q", e.Text, e.Missed, want)
		}
	}
}

func TestTheLogKeepsTheLast(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, lasting bool) {
		b := open(t, c)
		l := signals(t, b)
		if end, err := l.End(); err != nil || end.seq != 0 {
			t.Errorf("the end of an empty log is %v, %v", end, err)
		}
		l.log(1, KeptSignals+321)
		all := read(t, l, Place{}, KeptSignals+321)
		wantSignals(t, all, 322, KeptSignals+321)
		place := ParsePlace(all[99].Place.String())
		wantSignals(t, read(t, l, place, KeptSignals+321), 422, KeptSignals+321)
		if end, err := l.End(); err != nil || end != all[len(all)-1].Place {
			t.Errorf("the end is %v, %v, want %v", end, err, all[len(all)-1].Place)
		}
		must(t, b.Close())
		b = open(t, c)
		again := signals(t, b)
		if lasting {
			wantSignals(t, read(t, again, place, KeptSignals+321), 422, KeptSignals+321)
			return
		}
		again.log(1, 200)
		wantSignals(t, read(t, again, place, 200), 1, 200) // its number is one of another life
	})
}

func TestAReaderFollows(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		l := signals(t, open(t, c))
		l.log(1, 3)
		end, err := l.End()
		must(t, err)
		next := 4
		l.log(4, 4)
		for e, err := range l.Follow(soon(t), end) { // each is appended when the one before was read
			must(t, err)
			if !bytes.Equal(e.Text, signalText(next)) {
				t.Fatalf("%q, want the signal %d", e.Text, next)
			}
			if next++; next > 50 {
				break
			}
			l.Append(signalText(next))
		}
	})
}

// Readers that stand still hold up nobody: what is appended is stored, others read all of it, and they themselves go on
// later, and know how much they have missed.
func TestNoReaderHoldsUpAnybody(t *testing.T) {
	const total, many, still = KeptSignals + 1500, 50, 5
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		l := signals(t, open(t, c))
		l.Append(signalText(1))
		stand, result := make(chan struct{}), make(chan error, many)
		var standing sync.WaitGroup
		var progress [many]atomic.Int64
		reader := func(i int, stands bool) error {
			number := 0
			for e, err := range l.Follow(soon(t), Place{}) {
				if err != nil {
					return err
				}
				number += int(e.Missed) + 1
				progress[i].Store(int64(number))
				if want := signalText(number); !bytes.Equal(e.Text, want) || e.Missed > 0 && !stands {
					return fmt.Errorf("%q after %d missed, want %q", e.Text, e.Missed, want)
				}
				if number == 1 {
					standing.Done()
					if stands {
						<-stand
					}
				}
				if number == total {
					break
				}
			}
			return nil
		}
		standing.Add(many)
		for i := range many {
			go func() { result <- reader(i, i < still) }()
		}
		standing.Wait()
		for from := 2; from <= total; from += 500 { // as fast as the others read: they would miss some as well
			for i := still; i < many; {
				if progress[i].Load() >= int64(from-KeptSignals/2) {
					i++
				} else if len(result) > 0 {
					t.Fatal(<-result)
				}
				runtime.Gosched()
			}
			l.log(from, min(from+499, total))
		}
		for range many - still {
			must(t, <-result)
		}
		close(stand)
		for range still {
			must(t, <-result)
		}
		if n := l.Dropped(); n != 0 {
			t.Errorf("%d signals were dropped", n)
		}
	})
}

func TestFollowEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		l := signals(t, b)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		ends := func(ctx context.Context, end func()) (last error) {
			end()
			for _, err := range l.Follow(ctx, Place{}) {
				last = err
			}
			return last
		}
		if err := ends(ctx, func() { time.AfterFunc(50*time.Millisecond, func() { cancel(why) }) }); !errors.Is(err, why) {
			t.Errorf("a reader whose context is done: %v", err)
		}
		if err := ends(soon(t), func() { time.AfterFunc(50*time.Millisecond, func() { b.Close() }) }); !errors.Is(err, ErrClosed) {
			t.Errorf("a reader of a bus that closes: %v", err)
		}
		if err := ends(soon(t), func() {}); !errors.Is(err, ErrClosed) {
			t.Errorf("a reader of a closed bus: %v", err)
		}
		if _, err := l.End(); !errors.Is(err, ErrClosed) {
			t.Errorf("the end of a closed log: %v", err)
		}
		l.Append(signalText(1))
		if l.Dropped() == 0 {
			t.Error("what is appended to a closed log is not counted as dropped")
		}
	})
}

// Long signals take the places of more than one.
func TestTheLogIsBoundedInBytes(t *testing.T) {
	l := signals(t, open(t, Config{}))
	long := bytes.Repeat([]byte("x"), 1<<20)
	const fit = maxSignalBytes >> 20
	for range fit + 10 {
		l.Append(long)
	}
	all := 0
	for e, err := range l.Follow(soon(t), Place{}) {
		must(t, err)
		if all++; all == 1 && e.Place.seq != 11 {
			t.Errorf("the oldest is the signal %d, want 11", e.Place.seq)
		}
		if e.Place.seq == fit+10 {
			break
		}
	}
	l.log(1, 5)
	for e, err := range l.Follow(soon(t), Place{}) {
		must(t, err)
		if e.Place.seq != 12 {
			t.Errorf("behind a short one the oldest is the signal %d, want 12", e.Place.seq)
		}
		break
	}
	if all != fit {
		t.Errorf("%d signals of 1 MiB are kept, want %d", all, fit)
	}
}

// Who stood at the end of an empty log has missed all that went since; who stood nowhere has missed nothing.
func TestWhoStoodAtTheBeginningKnowsWhatItMissed(t *testing.T) {
	l := signals(t, open(t, Config{}))
	end, err := l.End()
	must(t, err)
	l.log(1, KeptSignals+7)
	for after, missed := range map[Place]uint64{end: 7, {}: 0, {"elsewhere", 3}: 0} {
		for e, err := range l.Follow(soon(t), after) {
			must(t, err)
			if e.Missed != missed || !bytes.Equal(e.Text, signalText(8)) {
				t.Errorf("behind %v comes %q after %d missed, want %d", after, e.Text, e.Missed, missed)
			}
			break
		}
	}
}

// Readers of a stream that somebody else has made anew are told nothing wrong, and the operator what to do.
func TestAStreamMadeAnewIsNoticed(t *testing.T) {
	var mu sync.Mutex
	var said bytes.Buffer
	b := open(t, Config{URL: startExternal(t, nil).url(), Log: slog.New(slog.NewTextHandler(&locked{&mu, &said}, nil))})
	l := signals(t, b)
	l.log(1, 3)
	s, err := b.js.Stream(soon(t), signalStream)
	must(t, err)
	must(t, b.js.DeleteStream(soon(t), signalStream))
	_, err = b.js.CreateStream(soon(t), s.CachedInfo().Config)
	must(t, err)
	l.log(4, 4)
	mu.Lock()
	defer mu.Unlock()
	if n := l.Dropped(); n != 1 || !strings.Contains(said.String(), "restart the gateway") {
		t.Errorf("%d were dropped, and it said %s", n, said.String())
	}
	wantSignals(t, read(t, l, Place{}, 3), 1, 3)
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]Place{
		"": {}, "abc": {}, "abc-": {}, "-5": {}, "abc-x": {}, "abc--5": {}, strings.Repeat("a", 17) + "-5": {},
		"abc-5": {"abc", 5},
	} {
		if got := ParsePlace(text); got != want {
			t.Errorf("%q is %v", text, got)
		}
		if want != (Place{}) && want.String() != text {
			t.Errorf("%v is written %q", want, want)
		}
	}
	if text := (Place{}).String(); text != "" {
		t.Errorf("the beginning is written %q", text)
	}
	l := signals(t, open(t, Config{}))
	l.log(1, 3)
	for _, after := range []Place{{"elsewhere", 2}, {l.epoch, 4}, {l.epoch, 0}} {
		wantSignals(t, read(t, l, after, 3), 1, 3)
	}
}

// A store that is away is not waited for, and what is lost is counted, and said once.
func TestTheLogDoesNotWaitForItsStore(t *testing.T) {
	x := startExternal(t, nil)
	var mu sync.Mutex
	var said bytes.Buffer
	b := open(t, Config{URL: x.url(), Log: slog.New(slog.NewTextHandler(&locked{&mu, &said}, nil))})
	l := signals(t, b)
	l.log(1, 10)
	l.Append(bytes.Repeat([]byte("x"), 2<<20)) // more than the server takes
	if n := l.Dropped(); n != 1 {
		t.Errorf("%d were dropped, want the long one", n)
	}
	l.log(11, 11)
	x.stop()
	for n := range 3 * maxOnTheWay {
		l.Append(signalText(n))
	}
	for l.waiting() > 0 {
		runtime.Gosched()
	}
	if n := l.Dropped(); n != 1+3*maxOnTheWay {
		t.Errorf("%d were dropped, want all that came while the store was away", n)
	}
	mu.Lock()
	if n := strings.Count(said.String(), "signals are not kept"); n != 2 {
		t.Errorf("that was said %d times, want once for the long one and once for the others:\n%s", n, said.String())
	}
	mu.Unlock()
	x.start(t, nil)
	before := l.Dropped()
	for ctx := soon(t); ; runtime.Gosched() {
		l.log(12, 12)
		if l.Dropped() == before {
			break
		}
		if before = l.Dropped(); ctx.Err() != nil {
			t.Fatal("it does not go on when the store is back")
		}
	}
	wantSignals(t, read(t, l, Place{}, 12), 1, 12)
}

type locked struct {
	mu  *sync.Mutex
	buf *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// Answers that never come do not keep the log from going on.
func TestTheLogGivesUpOnAnswersThatDoNotCome(t *testing.T) {
	r := prometheus.NewRegistry()
	l := signals(t, open(t, Config{Dir: t.TempDir(), Metrics: NewMetrics(r)}))
	l.mu.Lock()
	l.heard = time.Now().Add(time.Hour) // no wait is over, however slow the machine
	forgotten := 0
	for n := range uint64(maxOnTheWay) {
		l.onTheWay[1<<40+n] = func() { forgotten++ }
	}
	l.mu.Unlock()
	l.Append(signalText(1))
	if l.Dropped() != 1 || forgotten != 0 {
		t.Errorf("with all the room taken %d were dropped, %d questions taken back", l.Dropped(), forgotten)
	}
	l.mu.Lock()
	l.heard = time.Now().Add(-ackWait)
	l.mu.Unlock()
	l.Append(signalText(1))
	l.log(2, 5)
	if l.Dropped() != 1+maxOnTheWay || forgotten != maxOnTheWay {
		t.Errorf("after the wait %d were dropped, %d questions taken back", l.Dropped(), forgotten)
	}
	wantSignals(t, read(t, l, Place{}, 5), 1, 5)
	for range l.Follow(soon(t), Place{}) {
		wantCounted(t, r, map[string]float64{
			"vela_signals_total": 5, "vela_signals_dropped_total": 1 + maxOnTheWay, "vela_signal_readers": 1,
		})
		break
	}
	wantCounted(t, r, map[string]float64{"vela_signal_readers": 0})
}

// wantCounted looks at metrics.
func wantCounted(t testing.TB, r *prometheus.Registry, want map[string]float64) {
	t.Helper()
	families, err := r.Gather()
	must(t, err)
	for _, f := range families {
		m := f.GetMetric()[0]
		got := m.GetCounter().GetValue() + m.GetGauge().GetValue() // it is one of them
		if n, asked := want[f.GetName()]; asked && n != got {
			t.Errorf("%s is %v, want %v", f.GetName(), got, n)
		}
		delete(want, f.GetName())
	}
	if len(want) > 0 {
		t.Errorf("%v are not counted", want)
	}
}

func BenchmarkSignals(b *testing.B) {
	benchBackends(b, func(b *testing.B, bus *Bus) {
		l := signals(b, bus)
		text := signalText(1)
		for b.Loop() {
			for l.waiting() >= maxOnTheWay {
				runtime.Gosched()
			}
			l.Append(text)
		}
		for l.waiting() > 0 {
			runtime.Gosched()
		}
	})
}
