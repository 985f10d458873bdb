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
		if end, err := l.End(soon(t)); err != nil || end.seq != 0 {
			t.Errorf("the end of an empty log is %v, %v", end, err)
		}
		l.log(1, KeptSignals+321)
		all := read(t, l, Place{}, KeptSignals+321)
		wantSignals(t, all, 322, KeptSignals+321)
		place := ParsePlace(all[99].Place.String())
		wantSignals(t, read(t, l, place, KeptSignals+321), 422, KeptSignals+321)
		if end, err := l.End(soon(t)); err != nil || end != all[len(all)-1].Place {
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
		end, err := l.End(soon(t))
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
		s, err := l.stream(soon(t))
		must(t, err)
		if n := s.CachedInfo().State.Consumers; n != 0 {
			t.Errorf("the server remembers %d readers that have left", n)
		}
	})
}

// Readers that stand still hold up nobody: what is appended is stored, others read all of it, and they themselves go on
// later, and know how much they have missed.
func TestNoReaderHoldsUpAnybody(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		l := signals(t, open(t, c))
		const total = KeptSignals + 1500
		l.Append(signalText(1))
		var readers, standing sync.WaitGroup
		stand, result := make(chan struct{}), make(chan error, 8)
		var progress [8]atomic.Int64
		reader := func(i int, stands bool) {
			number := 0
			for e, err := range l.Follow(soon(t), Place{}) {
				if err != nil {
					result <- err
					return
				}
				number += int(e.Missed) + 1
				progress[i].Store(int64(number))
				if want := signalText(number); !bytes.Equal(e.Text, want) || e.Missed > 0 && !stands {
					result <- fmt.Errorf("%q after %d missed, want %q", e.Text, e.Missed, want)
					return
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
			result <- nil
		}
		standing.Add(8)
		for i := range 8 {
			readers.Go(func() { reader(i, i < 5) })
		}
		standing.Wait()
		for from := 2; from <= total; from += 500 { // as fast as the three others read: they would miss some as well
			for i := 5; i < 8; {
				if progress[i].Load() >= int64(from-KeptSignals/2) {
					i++
				} else if len(result) > 0 {
					t.Fatal(<-result)
				}
				runtime.Gosched()
			}
			l.log(from, min(from+499, total))
		}
		for range 3 {
			must(t, <-result)
		}
		close(stand)
		readers.Wait()
		for range 5 {
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
		if _, err := l.End(soon(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("the end of a closed log: %v", err)
		}
		l.Append(signalText(1))
		if l.Dropped() == 0 {
			t.Error("what is appended to a closed log is not counted as dropped")
		}
	})
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
	l := signals(t, open(t, Config{}))
	l.mu.Lock()
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
