package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
)

// works runs sources until the test ends, and then sees that they end.
type works struct {
	*testing.T
	*Sources
	end func() // and wait

	mu    sync.Mutex
	taken map[string][]signal.Raw
	more  chan struct{} // has room for one: something was taken
}

func newWorks(t *testing.T, cfg Config) *works {
	w := &works{T: t, taken: map[string][]signal.Raw{}, more: make(chan struct{}, 1)}
	cfg.Take = func(id string, r signal.Raw) {
		if err := signal.Check(r); err != nil {
			t.Errorf("%s: %v", r.Append(nil), err)
		}
		w.mu.Lock()
		w.taken[id] = append(w.taken[id], r)
		w.mu.Unlock()
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
	w.Sources = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { w.Sources.Run(ctx) })
	w.end = func() { cancel(); run.Wait() }
	t.Cleanup(w.end)
	return w
}

// of is what came through a source, a signal a line.
func (w *works) of(id string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.taken[id] {
		all = append(all, fmt.Sprintf("%s %s", r.Type, r.Payload))
	}
	return all
}

func (w *works) count(id string) int { return len(w.of(id)) }

// heard waits for the nth signal of a source.
func (w *works) heard(id string, n int) []string {
	w.Helper()
	for w.count(id) < n {
		select {
		case <-w.more:
		case <-w.Context().Done():
			w.Fatalf("%d signals of %s", w.count(id), id)
		case <-time.After(time.Minute): // nothing to do with speed: it never comes
			s := w.source(id)
			w.Fatalf("%d signals of %s, which is %s %q", w.count(id), id, s.State, s.Error)
		}
	}
	return w.of(id)
}

func (w *works) source(id string) Source {
	w.Helper()
	all, err := w.List(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s Source) bool { return s.ID == id })
	if i < 0 {
		return Source{State: "gone"}
	}
	return all[i]
}

// until waits until a source is as wanted.
func (w *works) until(id string, wanted func(Source) bool) Source {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var last Source
	for all := range w.Watch(ctx) {
		for _, s := range all {
			if s.ID == id {
				if last = s; wanted(s) {
					return s
				}
			}
		}
	}
	w.Fatalf("%s stays %s %q", id, last.State, last.Error)
	return last
}

func (w *works) is(id string, state State) Source {
	w.Helper()
	return w.until(id, func(s Source) bool { return s.State == state })
}

func (w *works) must(s Source, err error) Source {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// device is a [Feed] that a test speaks through. Each message is the type of a signal.
type device struct {
	says   chan string
	ends   chan error
	closed chan struct{}
}

func newDevice() *device {
	return &device{make(chan string), make(chan error), make(chan struct{})}
}

func (d *device) Next(ctx context.Context) ([]byte, error) {
	select {
	case said := <-d.says:
		return []byte(said), nil
	case err := <-d.ends:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *device) Parse(message []byte) []signal.Raw {
	r, _ := signal.Intake{Source: "midi", NewID: func() string { return "1" }}.Accept([]byte(`{"type":"`+string(message)+`"}`), 1)
	return []signal.Raw{r}
}

func (d *device) Close() error { close(d.closed); return nil }

const one, two = "local:midi:1", "local:midi:2"

// withDevices are sources of which these are found.
func withDevices(devices map[string]*device) Config {
	return Config{
		Look: func(context.Context) []Found {
			var all []Found
			for id := range devices {
				all = append(all, Found{ID: id, Label: id, Protocol: MIDI, URL: "midi://x/y/" + id, Available: true})
			}
			slices.SortFunc(all, func(a, b Found) int { return strings.Compare(a.ID, b.ID) })
			return all
		},
		MIDI: func(_ context.Context, address string) (Feed, error) {
			d := devices[strings.TrimPrefix(address, "midi://x/y/")]
			if d == nil {
				return nil, errors.New("none")
			}
			return d, nil
		},
	}
}

func TestASourceIsConnectedHeardAndDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		devices := map[string]*device{one: d}
		w := newWorks(t, withDevices(devices))
		synctest.Wait()
		if s := w.source(one); s.State != Disconnected {
			t.Errorf("found, it is %s", s.State)
		}
		if s := w.must(w.Connect(t.Context(), one)); s.State != Connecting {
			t.Errorf("at once it is %s", s.State)
		}
		synctest.Wait()
		if s := w.must(w.Connect(t.Context(), one)); s.State != Connected {
			t.Errorf("then it is %s", s.State)
		}
		for i := range 5 {
			d.says <- fmt.Sprint("note", i)
		}
		synctest.Wait()
		if got, want := w.of(one), []string{"note0 {}", "note1 {}", "note2 {}", "note3 {}", "note4 {}"}; !slices.Equal(got, want) {
			t.Errorf("it said %q, want %q", got, want)
		}
		if s := w.source(one); s.EventsPerSecond != 5 {
			t.Errorf("%d events per second", s.EventsPerSecond)
		}
		s := w.must(w.Disconnect(t.Context(), one))
		select {
		case <-d.closed:
		default:
			t.Error("Disconnect returns before the connection is closed")
		}
		if s.State != Disconnected || s.Error != "" {
			t.Errorf("disconnected, it is %s %q", s.State, s.Error)
		}
		devices[one] = newDevice()
		w.must(w.Connect(t.Context(), one))
		devices[one].says <- "again"
		devices[one].ends <- errors.New("unplugged")
		synctest.Wait()
		if s := w.source(one); w.count(one) != 6 || s.State != Connecting {
			t.Errorf("broken, it is %s after %q", s.State, w.of(one))
		}
		w.end() // in the middle of the wait for the next try
		if _, err := w.List(t.Context()); !errors.Is(err, ErrOver) {
			t.Errorf("at the end: %v", err)
		}
	})
}
