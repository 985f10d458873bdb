package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"nhooyr.io/websocket"

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

// Who comes later is told of what changes back to how it was when others were told last.
func TestWatchFromLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorks(t, withDevices(map[string]*device{one: newDevice()}))
		synctest.Wait()
		for range w.Watch(t.Context()) {
			break // it is told once, and leaves
		}
		w.must(w.Connect(t.Context(), one))
		later, stop := context.WithCancel(t.Context())
		states := make(chan State, 16)
		var watch sync.WaitGroup
		watch.Go(func() {
			for all := range w.Watch(later) {
				states <- all[0].State
			}
		})
		synctest.Wait()
		w.must(w.Disconnect(t.Context(), one))
		time.Sleep(2 * newsEvery)
		stop()
		watch.Wait()
		close(states)
		var last State
		for last = range states {
		}
		if last != Disconnected {
			t.Errorf("the last that was told is %s", last)
		}
	})
}

// Watchers are told at once, and of changes at most twice a second, however many there are.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		w := newWorks(t, withDevices(map[string]*device{one: d}))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		var mu sync.Mutex
		var times int
		var last Source
		watch.Go(func() {
			for all := range w.Watch(ctx) {
				mu.Lock()
				times++
				last = all[0]
				mu.Unlock()
			}
		})
		told := func() (int, Source) { // since it was asked last
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			n := times
			times = 0
			return n, last
		}
		if n, s := told(); n != 1 || s.State != Disconnected {
			t.Errorf("at once told %d times, of %+v", n, s)
		}
		w.must(w.Connect(t.Context(), one))
		for i := range 200 { // at a rate that changes twice a second
			for range i/10%5 + 1 {
				d.says <- "x"
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n, s := told(); n < 18 || n > 21 || s.State != Connected || s.EventsPerSecond < 20 {
			t.Errorf("told %d times in 10 s, last of %+v", n, s)
		}
		time.Sleep(2 * time.Second)
		if n, s := told(); n == 0 || s.EventsPerSecond != 0 {
			t.Errorf("told %d times that nothing comes any more, last of %+v", n, s)
		}
		time.Sleep(time.Minute)
		if n, _ := told(); n != 0 {
			t.Errorf("told %d times of nothing", n)
		}
		w.must(w.Disconnect(t.Context(), one))
		if n, s := told(); n != 1 || s.State != Disconnected {
			t.Errorf("of a change after a pause told %d times, of %+v", n, s)
		}
		cancel()
		watch.Wait()
		if err := w.do(t.Context(), func(k *keeper) error {
			if len(k.watchers) != 0 {
				t.Errorf("%d watchers are left", len(k.watchers))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		watch.Go(func() {
			for range w.Watch(t.Context()) {
			}
		})
		synctest.Wait()
		w.end()
		watch.Wait() // a watch ends with what it watches
	})
}

// What runs on this machine is looked for at the start, every half minute, and when somebody asks; not twice at once.
func TestScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked, busy atomic.Int32
		w := newWorks(t, Config{Look: func(context.Context) []Found {
			n := looked.Add(1)
			if busy.Add(1) > 1 {
				t.Error("two look at once")
			}
			time.Sleep(300 * time.Millisecond)
			busy.Add(-1)
			return []Found{{ID: fmt.Sprint("local:midi:", n), Protocol: MIDI, Available: true}}
		}})
		var asked sync.WaitGroup
		for range 3 {
			asked.Go(func() {
				if all, err := w.Scan(t.Context()); err != nil || len(all) != 1 {
					t.Errorf("a scan: %v, %v", all, err)
				}
			})
		}
		asked.Wait()
		if looks := looked.Load(); looks != 1 {
			t.Errorf("%d looks for one scan", looks)
		}
		time.Sleep(scanEvery + time.Second)
		if looks := looked.Load(); looks != 2 {
			t.Errorf("%d looks after %v", looks, scanEvery)
		}
		if all, err := w.Scan(t.Context()); err != nil || looked.Load() != 3 || len(all) != 3 || all[0].State != Unavailable || all[2].State != Disconnected {
			t.Errorf("asked for again: %d looks, %+v, %v", looked.Load(), all, err)
		}
		asked.Go(func() {
			if _, err := w.Scan(t.Context()); err != nil && !errors.Is(err, ErrOver) {
				t.Error(err)
			}
		})
		synctest.Wait()
		w.end() // in the middle of a scan
		asked.Wait()
	})
}

// A disconnect while a connection is in the making ends that, and a connect after it begins another.
func TestConnectAndDisconnectAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := withDevices(map[string]*device{one: nil})
		dials := 0
		slow := make(chan struct{})
		cfg.MIDI = func(ctx context.Context, _ string) (Feed, error) {
			if dials++; dials == 1 {
				<-ctx.Done()
				<-slow // as if it took its time to notice
				return nil, context.Cause(ctx)
			}
			return newDevice(), nil
		}
		w := newWorks(t, cfg)
		synctest.Wait()
		w.must(w.Connect(t.Context(), one))
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Disconnect(brief, one); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a disconnect that takes too long: %v", err)
		}
		w.must(w.Connect(t.Context(), one))
		if got := w.after(time.Second, one); got != "connecting" || dials != 1 {
			t.Errorf("it is %q with %d dials", got, dials)
		}
		close(slow)
		if got := w.after(time.Second, one); got != "connected" || dials != 2 {
			t.Errorf("then it is %q with %d dials", got, dials)
		}
		for _, err := range []error{second(w.Connect(t.Context(), "x")), second(w.Disconnect(t.Context(), "x")), second(w.SetKey(t.Context(), "x", "")), second(w.PasteKey(t.Context(), "x")), second(w.Choose(t.Context(), "x", "")), w.Stop(t.Context(), "x"), w.Remove(t.Context(), "x")} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("of no source: %v", err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Whoever is quicker than the first scan waits for it.
func TestConnectBeforeAnythingWasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		cfg := withDevices(map[string]*device{one: d})
		look := cfg.Look
		cfg.Look = func(ctx context.Context) []Found {
			pause(ctx, time.Second)
			return look(ctx)
		}
		w := newWorks(t, cfg)
		w.must(w.Connect(t.Context(), one))
		d.says <- "x"
		synctest.Wait()
		if w.count(one) != 1 {
			t.Error("it is not connected")
		}
		if _, err := w.Connect(t.Context(), two); !errors.Is(err, ErrUnknown) {
			t.Errorf("of no source: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if _, err := newWorks(t, Config{}).Connect(t.Context(), one); !errors.Is(err, ErrUnknown) {
			t.Errorf("where nothing is looked for: %v", err)
		}
	})
}

// A failure is what is shown until somebody connects or disconnects.
func TestAFailureStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := withDevices(map[string]*device{one: nil})
		cfg.MIDI = func(context.Context, string) (Feed, error) { return nil, fault{"Another program has it.", true} }
		w := newWorks(t, cfg)
		synctest.Wait()
		w.must(w.Connect(t.Context(), one))
		if got := w.after(time.Hour, one); got != "error Another program has it." {
			t.Errorf("it is %q", got)
		}
		w.must(w.Disconnect(t.Context(), one))
		if got := w.after(0, one); got != "disconnected" {
			t.Errorf("then it is %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		cfg := withDevices(map[string]*device{one: nil})
		cfg.MIDI = nil
		w := newWorks(t, cfg)
		synctest.Wait()
		w.must(w.Connect(t.Context(), one))
		if got := w.after(time.Second, one); got != "error This gateway opens no MIDI devices." {
			t.Errorf("without devices it is %q", got)
		}
	})
}

// What was added is kept, and taken up by another process: with its id and its colour, and without its key.
func TestWhatIsAddedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept Kept
		var fails error
		keep := func(k Kept) error { kept = k; return fails }
		n := newNetwork(t)
		w := newWorks(t, Config{dial: n.dial, Keep: keep})
		ctx := t.Context()
		for _, url := range []string{"ws://a.test", "ws://b.test", "ws://c.test"} {
			w.must(w.Add(ctx, "", url, "secret"))
		}
		fails = errors.New("no space left")
		if _, err := w.Add(ctx, "", "ws://d.test", ""); !errors.Is(err, fails) || w.source("remote:4").State != "gone" {
			t.Errorf("what cannot be kept is there: %v", err)
		}
		fails = nil
		for _, bad := range [][2]string{{"ftp://x", ""}, {"ws://x.test", "two\nlines"}, {"http://169.254.169.254", ""}} {
			var m Mistake
			if _, err := w.Add(ctx, "", bad[0], bad[1]); !errors.As(err, &m) {
				t.Errorf("%q was added: %v", bad, err)
			}
		}
		n.serve("b.test", n.socket(func(_ context.Context, c *websocket.Conn, _ *http.Request) { listen(context.Background(), c) }))
		w.must(w.Connect(ctx, "remote:2"))
		synctest.Wait()
		if err := w.Remove(ctx, "remote:2"); err != nil || w.source("remote:2").State != "gone" {
			t.Errorf("a connected source is removed: %v", err)
		}
		w.end()
		want := Kept{Added: 5, Sources: []KeptSource{
			{ID: "remote:1", Name: "a.test", URL: "ws://a.test", Keyed: true}, {ID: "remote:3", Name: "c.test", URL: "ws://c.test", Keyed: true},
		}}
		if !reflect.DeepEqual(kept, want) {
			t.Errorf("kept %+v, want %+v", kept, want)
		}
		kept.Sources = append(kept.Sources, KeptSource{ID: "local:ollama", Name: "x", URL: "ws://x.test"}, KeptSource{ID: "remote:1", Name: "twice", URL: "ws://x.test"}, KeptSource{ID: "remote:9", Name: "x", URL: "file:///x"})
		again := newWorks(t, Config{Kept: kept})
		all, err := again.List(ctx)
		if err != nil || len(all) != 2 || all[1].ID != "remote:3" || all[1].Colour != palette[2] || all[1].HasKey || all[1].Name != "c.test" || all[1].State != Disconnected {
			t.Errorf("taken up: %+v, %v", all, err)
		}
		if s := again.must(again.Add(ctx, "", "ws://e.test", "")); s.ID != "remote:6" {
			t.Errorf("the next is %s: no id is given twice", s.ID)
		}
	})
}

// What was connected is connected again by another process; what was disconnected, by either end, is not; and what had a key
// says that this has to be set.
func TestWhatWasConnectedIsConnectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var kept Kept
		keep := func(k Kept) error { kept = k; return nil }
		keys := make(chan string, 16)
		stays := n.socket(func(_ context.Context, c *websocket.Conn, r *http.Request) {
			keys <- r.Host + " " + r.Header.Get("Authorization")
			listen(context.Background(), c)
		})
		for _, name := range []string{"a.test", "b.test", "c.test", "d.test"} {
			n.serve(name, stays)
		}
		n.serve("e.test", n.socket(func(_ context.Context, c *websocket.Conn, r *http.Request) {
			keys <- r.Host
			_ = c.Close(websocket.StatusNormalClosure, "")
		}))
		w := newWorks(t, Config{dial: n.dial, Keep: keep})
		ctx := t.Context()
		for _, x := range [][2]string{{"a.test"}, {"b.test"}, {"c.test"}, {"d.test", "secret"}, {"e.test"}, {"away.test"}} {
			s := w.must(w.Add(ctx, "", "ws://"+x[0], x[1]))
			if x[0] != "c.test" {
				w.must(w.Connect(ctx, s.ID))
			}
		}
		synctest.Wait()
		w.must(w.Disconnect(ctx, "remote:2"))
		w.must(w.Choose(ctx, "remote:3", "small"))
		synctest.Wait()
		w.end()

		states := func(w *works) string {
			t.Helper()
			all, err := w.List(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			var s []string
			for _, one := range all {
				s = append(s, strings.TrimSpace(string(one.State)+" "+one.Error))
			}
			return strings.Join(s, "\n")
		}
		drain := func() (all []string) {
			for len(keys) > 0 {
				all = append(all, <-keys)
			}
			slices.Sort(all)
			return all
		}
		drain()
		want := "connected\ndisconnected\ndisconnected\nerror " + errKeyGone + "\ndisconnected\nconnecting The source cannot be reached yet; it is tried again."
		model := "small"
		// Twice: what waits for its key still does.
		for range 2 {
			w = newWorks(t, Config{dial: n.dial, Keep: keep, Kept: kept})
			synctest.Wait()
			if got := states(w); got != want {
				t.Errorf("after a restart\n%s\nwant\n%s", got, want)
			}
			if got := drain(); !slices.Equal(got, []string{"a.test "}) {
				t.Errorf("connected to %q", got)
			}
			if s := w.source("remote:3"); s.Model != model {
				t.Errorf("the model is %q", s.Model)
			}
			model += "er"
			w.must(w.Choose(ctx, "remote:3", model)) // all is kept anew
			w.end()
		}
		w = newWorks(t, Config{dial: n.dial, Keep: keep, Kept: kept})
		w.must(w.SetKey(ctx, "remote:4", "secret"))
		synctest.Wait()
		if got := drain(); w.source("remote:4").State != Connected || !slices.Equal(got, []string{"a.test ", "d.test Bearer secret"}) {
			t.Errorf("with its key: %q, connected to %q", states(w), got)
		}
		w.end()
		w = newWorks(t, Config{dial: n.dial, Keep: keep, Kept: kept})
		if s := w.must(w.SetKey(ctx, "remote:4", "")); s.State != Disconnected || s.Error != "" {
			t.Errorf("without a key, as somebody says: %+v", s)
		}
		w.end()
		w = newWorks(t, Config{dial: n.dial, Kept: Kept{Sources: []KeptSource{{ID: "remote:1", Name: "x", URL: "ws://a.test", Model: strings.Repeat("m", maxModel+1)}}}})
		if s := w.source("remote:1"); s.Model != "" || s.State != Disconnected {
			t.Errorf("of a file that somebody wrote: %+v", s)
		}
	})
}

// Who is connected is, whether or not that can be kept.
func TestWhatCannotBeKeptConnectsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve("a.test", n.socket(func(_ context.Context, c *websocket.Conn, _ *http.Request) { listen(context.Background(), c) }))
		var fails error
		w := newWorks(t, Config{dial: n.dial, Keep: func(Kept) error { return fails }})
		s := w.must(w.Add(t.Context(), "", "ws://a.test", ""))
		fails = errors.New("no space left")
		w.must(w.Connect(t.Context(), s.ID))
		w.is(s.ID, Connected)
		w.must(w.SetKey(t.Context(), s.ID, "secret"))
		w.must(w.Disconnect(t.Context(), s.ID))
	})
}

// OpenClaw's token is filled in where there is none, connects OpenClaw once, and is pasted when a person says so: never for
// another machine.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			token string
			why   error
		}
		var token atomic.Pointer[answer]
		token.Store(&answer{token: "found"})
		n := newNetwork(t) // in which nobody answers
		w := newWorks(t, Config{
			dial: n.dial, Token: func() (string, error) {
				a := token.Load()
				return a.token, a.why
			},
			Look: func(context.Context) []Found {
				return []Found{{ID: OpenClawID, Label: "OpenClaw", Protocol: Gateway, URL: "ws://127.0.0.1:18789", Available: true}}
			},
		})
		ctx := t.Context()
		synctest.Wait()
		if s := w.source(OpenClawID); s.State != Connecting || !s.HasKey || !s.TokenAutoFilled {
			t.Errorf("found with its token it is %+v", s)
		}
		w.must(w.Disconnect(ctx, OpenClawID))
		if got := w.after(time.Hour, OpenClawID); got != "disconnected" {
			t.Errorf("what a person disconnects is %q an hour later", got)
		}
		if s := w.must(w.SetKey(ctx, OpenClawID, "")); s.HasKey {
			t.Error("the key is still there")
		}
		if s := w.after(time.Hour, OpenClawID); w.source(OpenClawID).HasKey {
			t.Errorf("a key that a person took away comes back: %s", s)
		}
		if s := w.must(w.PasteKey(ctx, OpenClawID)); !s.HasKey || !s.TokenAutoFilled {
			t.Errorf("pasted: %+v", s)
		}
		w.must(w.SetKey(ctx, OpenClawID, "mine"))
		token.Store(&answer{token: "another"})
		if s := w.must(w.PasteKey(ctx, OpenClawID)); !s.TokenAutoFilled {
			t.Errorf("pasted over another: %+v", s)
		}
		away := w.must(w.Add(ctx, "", "wss://openclaw.example.org", ""))
		here := w.must(w.Add(ctx, "", "http://localhost:18789/", ""))
		plain := w.must(w.Add(ctx, "", "ws://localhost:9", ""))
		for id, may := range map[string]bool{away.ID: false, here.ID: true, plain.ID: false} {
			if _, err := w.PasteKey(ctx, id); (err == nil) != may {
				t.Errorf("pasted into %s: %v", id, err)
			}
		}
		for _, why := range []error{fmt.Errorf("read %w", fs.ErrNotExist), fmt.Errorf("x: %w", fault{"There is no token.", true})} {
			token.Store(&answer{why: why})
			_, err := w.PasteKey(ctx, OpenClawID)
			var m Mistake
			if !errors.As(err, &m) || strings.Contains(err.Error(), "not exist") {
				t.Errorf("no token: %v", err)
			}
		}
	})
}

func TestClaudeCodeConnectsByItselfOnlyWhereThatIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{}
		var away atomic.Bool
		cfg := withClaude(h)
		look := cfg.Look
		cfg.Claude, cfg.Look = true, func(ctx context.Context) []Found {
			if away.Load() {
				return nil
			}
			return look(ctx)
		}
		w := newWorks(t, cfg)
		if got := w.after(time.Second, ClaudeCodeID); got != "connected" {
			t.Errorf("by itself it is %q", got)
		}
		w.must(w.Disconnect(t.Context(), ClaudeCodeID))
		if got := w.after(time.Hour, ClaudeCodeID); got != "disconnected" {
			t.Errorf("what a person disconnects is %q an hour later", got)
		}
		away.Store(true)
		if got := w.after(scanEvery, ClaudeCodeID); got != "unavailable" {
			t.Errorf("gone, it is %q", got)
		}
		away.Store(false)
		if got := w.after(scanEvery, ClaudeCodeID); got != "connected" {
			t.Errorf("back again it is %q", got)
		}
	})
}

func TestWhatIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		d := newDevice()
		cfg := withDevices(map[string]*device{one: d, two: newDevice()})
		cfg.Metrics = NewMetrics(registry)
		w := newWorks(t, cfg)
		synctest.Wait()
		w.must(w.Connect(t.Context(), one))
		for range 3 {
			d.says <- "x"
		}
		w.must(w.Disconnect(t.Context(), one))
		w.must(w.Connect(t.Context(), two))
		synctest.Wait()
		w.source(one)
		got := map[string]float64{}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		want := map[string]float64{
			"vela_source_signals_total midi": 3, "vela_source_dropped_total midi": 0,
			"vela_sources connected": 1, "vela_sources disconnected": 1, "vela_sources connecting": 0, "vela_sources error": 0, "vela_sources unavailable": 0,
		}
		if !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
	})
}
