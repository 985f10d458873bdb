package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"vela/gateway/closedport"
)

// TestMain is also the helper processes of the tests, which are this program once more.
func TestMain(m *testing.M) {
	ackWait = time.Minute // longer than any machine stands still
	if run, ok := helpers[os.Getenv(helperVar)]; ok {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// external is a NATS server beside us.
type external struct {
	server *server.Server
	dir    string
	port   int
}

func startExternal(t testing.TB, change func(*server.Options)) *external {
	port := netip.MustParseAddrPort(closedport.New(t)).Port() // its own, also while it is stopped
	x := &external{dir: t.TempDir(), port: int(port)}
	x.start(t, change)
	t.Cleanup(x.stop)
	return x
}

func (x *external) start(t testing.TB, change func(*server.Options)) {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: x.port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: x.dir}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the external server does not start")
	}
	x.server = s
}

func (x *external) stop() {
	x.server.Shutdown()
	x.server.WaitForShutdown()
}

func (x *external) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", x.port) }

// backends are where a bus can live; each call is a new empty one. What reopen of it means is said by lasting.
var backends = []struct {
	name    string
	lasting bool
	config  func(t testing.TB) Config
}{
	{"memory", false, func(testing.TB) Config { return Config{} }},
	{"dir", true, func(t testing.TB) Config { return Config{Dir: t.TempDir()} }},
	{"external", true, func(t testing.TB) Config { return Config{URL: startExternal(t, nil).url()} }},
}

func everywhere(t *testing.T, test func(t *testing.T, c Config, lasting bool)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { test(t, b.config(t), b.lasting) })
	}
}

func open(t testing.TB, c Config) *Bus {
	t.Helper()
	b, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon is a context for what must not take long.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*ackWait)
	t.Cleanup(cancel)
	return ctx
}

func event(seq uint64) []byte {
	return fmt.Appendf(nil, `{"seq":%d,"ts":1,"type":"response.text.delta","payload":{"text":"word %d "}}`, seq, seq)
}

// fresh is a new conversation, saved.
func fresh(t testing.TB, b *Bus, id string) *Session {
	t.Helper()
	s := b.Session(id)
	must(t, s.Save(soon(t), []byte("state")))
	return s
}

func appendAll(t testing.TB, s *Session, from, to uint64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		must(t, s.Append(soon(t), seq, event(seq)))
	}
}

// flood appends without waiting for each, and waits for the last.
func flood(s *Session, from, to uint64, make func(uint64) []byte) error {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	var told atomic.Uint64
	told.Store(from - 1)
	for seq := from; seq <= to; seq++ {
		for {
			wg.Add(1)
			err := s.AppendAsync(seq, make(seq), func(err error) {
				defer wg.Done()
				if err == nil && !told.CompareAndSwap(seq-1, seq) {
					err = fmt.Errorf("event %d was told after %d", seq, told.Load())
				}
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			})
			if err == nil {
				break
			}
			wg.Done()
			if !errors.Is(err, ErrBehind) {
				wg.Wait()
				if first := failed.Load(); first != nil { // it comes after an event that failed
					return *first
				}
				return err
			}
			runtime.Gosched()
		}
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func kept(t testing.TB, b *Bus) map[string]Stored {
	t.Helper()
	all := map[string]Stored{}
	for one, err := range b.Sessions(soon(t)) {
		must(t, err)
		all[one.Session.ID()] = one
	}
	return all
}

func wantEvents(t testing.TB, s Stored, first, last uint64) {
	t.Helper()
	if s.First != first || s.First+uint64(len(s.Events)) != last+1 {
		t.Fatalf("events %d to %d are kept, not %d to %d", s.First, s.First+uint64(len(s.Events))-1, first, last)
	}
	for i, e := range s.Events {
		if want := event(first + uint64(i)); !bytes.Equal(e, want) {
			t.Fatalf("event %d is %q, not %q", first+uint64(i), e, want)
		}
	}
}

func TestWhatIsAppendedIsKept(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, lasting bool) {
		b := open(t, c)
		for i := range 5 {
			s := b.Session(fmt.Sprintf("s-%d", i))
			must(t, s.Save(soon(t), []byte("first")))
			appendAll(t, s, 1, 20)
			must(t, flood(s, 21, 500, event))
			must(t, s.Save(soon(t), fmt.Appendf(nil, "state %d", i)))
			if s.Next() != 501 {
				t.Errorf("next is %d", s.Next())
			}
		}
		check := func() {
			t.Helper()
			all := kept(t, b)
			if len(all) != 5 {
				t.Fatalf("%d sessions are kept", len(all))
			}
			for i := range 5 {
				s := all[fmt.Sprintf("s-%d", i)]
				if want := fmt.Sprintf("state %d", i); string(s.State) != want {
					t.Errorf("the state is %q, not %q", s.State, want)
				}
				wantEvents(t, s, 1, 500)
			}
		}
		check()
		if lasting {
			must(t, b.Close())
			b = open(t, c)
			check()
			goOn := kept(t, b)["s-1"].Session
			appendAll(t, goOn, 501, 505)
			wantEvents(t, kept(t, b)["s-1"], 1, 505)
		}
	})
}

func TestASessionGoesOnWhereItStands(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		appendAll(t, fresh(t, b, "a"), 1, 10)
		again := b.Session("a")
		must(t, flood(again, 11, 30, event)) // asks where it stands, while 20 wait
		wantEvents(t, kept(t, b)["a"], 1, 30)

		// A repetition of the last message is no harm: its answer may have been lost.
		same := b.Session("a")
		must(t, same.Append(soon(t), 30, event(30)))
		must(t, same.Append(soon(t), 31, event(31)))
		wantEvents(t, kept(t, b)["a"], 1, 31)
	})
}

// What a lost connection kept from being heard of is appended again, one by one: it is there once.
func TestWhatWasStoredUnheardIsThereOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		unheard := func(id string, from, to uint64) {
			var batch []pending
			for seq := from; seq <= to; seq++ {
				batch = append(batch, pending{seq: seq, event: event(seq)})
			}
			_, err := b.nc.Request(eventSubject(id), encodeBatch(batch), time.Minute)
			must(t, err)
		}
		s := fresh(t, b, "a")
		appendAll(t, s, 1, 10)
		unheard("a", 11, 20)
		appendAll(t, s, 11, 25)
		wantEvents(t, kept(t, b)["a"], 1, 25)

		other := fresh(t, b, "b")
		appendAll(t, other, 1, 10)
		unheard("b", 11, 20)
		appendAll(t, other, 11, 14)
		if err := other.Append(soon(t), 15, []byte("something else")); !errors.Is(err, ErrConflict) {
			t.Errorf("other words under a number that is there: %v", err)
		}
		wantEvents(t, kept(t, b)["b"], 1, 20)
	})
}

func TestOrderIsHeld(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		s := fresh(t, b, "a")
		if err := s.Append(soon(t), 0, event(0)); !errors.Is(err, ErrOrder) {
			t.Errorf("event 0: %v", err)
		}
		appendAll(t, s, 1, 3)
		for _, seq := range []uint64{3, 5} {
			if err := s.Append(soon(t), seq, event(seq)); !errors.Is(err, ErrOrder) {
				t.Errorf("event %d after 3: %v", seq, err)
			}
		}
		if err := b.Session("a").Append(soon(t), 5, event(5)); !errors.Is(err, ErrOrder) {
			t.Errorf("event 5 after 3, by a session that has to ask: %v", err)
		}
		appendAll(t, s, 4, 6)
		late := fresh(t, b, "b") // begins with what a session has that was not kept before
		must(t, late.Append(soon(t), 77, event(77)))
		must(t, late.Append(soon(t), 78, event(78)))
		wantEvents(t, kept(t, b)["b"], 77, 78)
		wantEvents(t, kept(t, b)["a"], 1, 6)
	})
}

func TestTwoWritersCannotBothGoOn(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		other := b
		if c.URL != "" { // as two gateways would that do not know of each other
			var err error
			other, err = start(t.Context(), c)
			must(t, err)
			t.Cleanup(func() { other.Close() })
		}
		first, second := fresh(t, b, "a"), other.Session("a")
		appendAll(t, first, 1, 3)
		must(t, second.Append(soon(t), 4, []byte("of the second")))
		for range 2 { // and it stays so
			if err := first.Append(soon(t), 4, event(4)); !errors.Is(err, ErrConflict) {
				t.Errorf("the first goes on: %v", err)
			}
		}
		must(t, second.Append(soon(t), 5, event(5)))
		must(t, second.Delete(soon(t)))
		third := fresh(t, b, "a")
		appendAll(t, third, 1, 1)
		must(t, b.Session("a").Delete(soon(t)))
		if err := third.Append(soon(t), 2, event(2)); !errors.Is(err, ErrConflict) {
			t.Errorf("a deleted conversation goes on: %v", err)
		}
		if n := len(kept(t, b)); n != 0 {
			t.Errorf("%d sessions are kept", n)
		}
	})
}

func TestDeleteLeavesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, lasting bool) {
		b := open(t, c)
		stays, goes := b.Session("stays"), b.Session("goes")
		for _, s := range []*Session{stays, goes} {
			must(t, s.Save(soon(t), []byte("state")))
			must(t, flood(s, 1, 200, event))
		}
		told := make(chan error, 100)
		for seq := uint64(201); seq <= 300; seq++ {
			must(t, goes.AppendAsync(seq, event(seq), func(err error) { told <- err }))
		}
		must(t, goes.Delete(soon(t)))
		for range 100 {
			if err := <-told; err != nil && !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
		}
		if err := goes.Append(soon(t), 301, event(301)); !errors.Is(err, ErrClosed) {
			t.Errorf("append after delete: %v", err)
		}
		if err := goes.Save(soon(t), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("save after delete: %v", err)
		}
		must(t, goes.Delete(soon(t)))
		for range 2 {
			all := kept(t, b)
			if len(all) != 1 {
				t.Fatalf("%d sessions are kept", len(all))
			}
			wantEvents(t, all["stays"], 1, 200)
			if !lasting {
				return
			}
			must(t, b.Close())
			b = open(t, c)
		}
	})
}

func TestTheLastEventsAreKept(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		s := fresh(t, b, "many")
		const last = 3*maxEvents + 17
		must(t, flood(s, 1, last, event))
		wantEvents(t, kept(t, b)["many"], last-maxEvents+1, last)

		large := func(seq uint64) []byte { return bytes.Repeat(event(seq), 600) }
		s = fresh(t, b, "large")
		must(t, flood(s, 1, 1000, large))
		one := kept(t, b)["large"]
		size := 0
		for i, e := range one.Events {
			size += len(e)
			if !bytes.Equal(e, large(one.First+uint64(i))) {
				t.Fatalf("event %d is another", one.First+uint64(i))
			}
		}
		if next := len(one.Events[0]); size > maxEventBytes || size+2*next < maxEventBytes {
			t.Errorf("%d bytes are kept", size)
		}
		if one.First+uint64(len(one.Events)) != 1001 {
			t.Errorf("the last is %d", one.First+uint64(len(one.Events))-1)
		}

		// Single messages, each of one event, are trimmed as well.
		s = fresh(t, b, "single")
		appendAll(t, s, 1, maxEvents+1100)
		wantEvents(t, kept(t, b)["single"], 1101, maxEvents+1100)
		stream, err := b.js.Stream(soon(t), eventStream)
		must(t, err)
		info, err := stream.Info(soon(t))
		must(t, err)
		if info.State.Bytes > 4*maxEventBytes {
			t.Errorf("the stream holds %d bytes", info.State.Bytes)
		}
	})
}

func TestTooMuch(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		c.MaxBytes = 1 << 20
		b := open(t, c)
		s := fresh(t, b, "a")
		huge := make([]byte, b.nc.MaxPayload()+1)
		if err := s.Append(soon(t), 1, huge); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a huge event: %v", err)
		}
		if err := s.Save(soon(t), huge); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a huge state: %v", err)
		}
		must(t, s.Append(soon(t), 1, event(1)))
		other := fresh(t, b, "b")
		appendAll(t, other, 1, 1)
		err := flood(other, 2, 100, func(uint64) []byte { return make([]byte, 100<<10) })
		if !errors.Is(err, ErrFull) {
			t.Fatalf("the bound is reached: %v", err)
		}
		if !strings.Contains(err.Error(), "no room") {
			t.Errorf("it says %q", err)
		}
		if n := other.Next(); n < 2 || n > 14 { // ten fit, and a few more while the server counts
			t.Errorf("it is to go on with %d", n)
		}
		must(t, s.Save(soon(t), []byte("state"))) // nothing else is harmed
		wantEvents(t, kept(t, b)["a"], 1, 1)
		must(t, other.Delete(soon(t)))
		appendAll(t, s, 2, 50)
		wantEvents(t, kept(t, b)["a"], 1, 50)
	})
}

func TestIDs(t *testing.T) {
	b := open(t, Config{})
	for _, id := range []string{"", "a.b", "*", ">", "a b", "ä", strings.Repeat("x", 129), "a\"b"} {
		s := b.Session(id)
		for what, err := range map[string]error{
			"append": s.Append(soon(t), 1, event(1)), "save": s.Save(soon(t), nil), "delete": s.Delete(soon(t)),
		} {
			if !errors.Is(err, ErrID) {
				t.Errorf("%s with the id %q: %v", what, id, err)
			}
		}
	}
}

func TestClosed(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		s := fresh(t, b, "a")
		appendAll(t, s, 1, 1)
		told := make(chan error, 1000)
		for seq := uint64(2); seq <= 1001; seq++ {
			must(t, s.AppendAsync(seq, event(seq), func(err error) { told <- err }))
		}
		must(t, b.Close())
		for range 1000 {
			if err := <-told; err != nil && !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
		}
		for what, err := range map[string]error{"append": s.Append(soon(t), s.Next(), event(1)), "save": s.Save(soon(t), nil)} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, err := range b.Sessions(soon(t)) {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("sessions: %v", err)
			}
		}
		must(t, b.Close())
	})
}

func TestEveryWaitEndsWithItsContext(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		appendAll(t, fresh(t, b, "a"), 1, 10)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := fresh(t, b, "b")
		for what, err := range map[string]error{
			"append": s.Append(ctx, 1, event(1)), "save": s.Save(ctx, nil), "delete": s.Delete(ctx),
		} {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, err := range b.Sessions(ctx) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("sessions: %v", err)
			}
		}
		if _, err := Open(ctx, c); err == nil || c.URL != "" && !errors.Is(err, context.Canceled) {
			t.Errorf("open: %v", err)
		}
	})
}

func TestOpenSaysWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	dir := t.TempDir()
	open(t, Config{Dir: dir})
	plain := startExternal(t, func(o *server.Options) { o.JetStream = false })
	gone := startExternal(t, nil)
	gone.stop()
	taken := startExternal(t, nil)
	open(t, Config{URL: taken.url()})
	for _, c := range []struct {
		config Config
		says   string
	}{
		{Config{Dir: "x", URL: "y"}, "exclude each other"},
		{Config{Dir: file}, "make the folder"},
		{Config{Dir: dir}, "the folder " + dir + " is in use"},
		{Config{URL: taken.url()}, "the NATS server is in use by another gateway"},
		{Config{URL: plain.url()}, "start it with -js"},
		{Config{URL: gone.url()}, "is a nats-server running"},
		{Config{URL: "nats://a b"}, "connect"},
	} {
		_, err := Open(soon(t), c.config)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
	for _, c := range []Config{{Dir: dir}, {URL: taken.url()}} {
		if _, err := Open(soon(t), c); !errors.Is(err, ErrInUse) {
			t.Errorf("in use: %v", err)
		}
	}
}

func TestAServerIsOneGatewaysAlone(t *testing.T) {
	x := startExternal(t, nil)
	opened := make(chan *Bus, 8)
	for range cap(opened) {
		go func() {
			b, err := Open(soon(t), Config{URL: x.url()})
			if err != nil && !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
			opened <- b
		}()
	}
	var alone []*Bus
	for range cap(opened) {
		if b := <-opened; b != nil {
			alone = append(alone, b)
		}
	}
	if len(alone) > 1 {
		t.Errorf("%d gateways have the server at once", len(alone))
	}
	for _, b := range alone {
		must(t, b.Close())
	}
	b := open(t, Config{URL: x.url()}) // those that were refused, or have ended, are not in the way
	x.stop()
	x.start(t, nil)
	for ctx := soon(t); ; runtime.Gosched() { // and it is the gateway's again when both are back
		other, err := Open(ctx, Config{URL: x.url()})
		if errors.Is(err, ErrInUse) {
			break
		}
		must(t, err)
		must(t, other.Close())
	}
	must(t, b.Close())
	must(t, open(t, Config{URL: x.url()}).Close())
}

func TestAnExternalServerGoesAndComesBack(t *testing.T) {
	x := startExternal(t, nil)
	b := open(t, Config{URL: x.url()})
	s := fresh(t, b, "a")
	appendAll(t, s, 1, 10)
	for range 3 {
		told := make(chan error, 200)
		next := s.Next()
		for seq := next; seq < next+200; seq++ { // the server goes while these are on their way
			must(t, s.AppendAsync(seq, event(seq), func(err error) { told <- err }))
		}
		x.stop()
		for range 200 {
			if err := <-told; err != nil && !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if err := s.Append(soon(t), s.Next(), event(s.Next())); !errors.Is(err, ErrUnavailable) {
			t.Errorf("append while the server is away: %v", err)
		}
		if err := s.Save(soon(t), nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("save while the server is away: %v", err)
		}
		x.start(t, nil)
		for ctx := soon(t); ; runtime.Gosched() {
			err := s.Append(ctx, s.Next(), event(s.Next()))
			if err == nil {
				break
			} else if !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
		}
		must(t, flood(s, s.Next(), s.Next()+300, event)) // with those that failed, or were stored unheard
		wantEvents(t, kept(t, b)["a"], 1, s.Next()-1)
	}
}

func TestNothingGoesToStderrAndNothingIsLeft(t *testing.T) {
	must(t, os.MkdirAll(filepath.Join(t.TempDir(), "tmp"), 0o700))
	tmp := filepath.Join(t.TempDir())
	t.Setenv("TMPDIR", tmp)
	before := runtime.NumGoroutine()
	var log bytes.Buffer
	for _, c := range []Config{{}, {Dir: filepath.Join(t.TempDir(), "new", "folder")}} {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		b, err := Open(t.Context(), c)
		must(t, err)
		appendAll(t, fresh(t, b, "a"), 1, 3)
		left, err := os.ReadDir(tmp)
		must(t, err)
		if len(left) != 0 {
			t.Errorf("there is %v while it is open", left)
		}
		must(t, b.Close())
	}
	if log.Len() > 0 {
		t.Errorf("a good run warns:\n%s", log.String())
	}
	for ctx := soon(t); runtime.NumGoroutine() > before; runtime.Gosched() {
		if ctx.Err() != nil {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(encodeBatch([]pending{{seq: 1, event: []byte("one")}, {seq: 2, event: nil}}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		first, events, err := decodeBatch(data)
		if err != nil {
			return
		}
		batch := make([]pending, len(events))
		for i, e := range events {
			batch[i] = pending{seq: first + uint64(i), event: e}
		}
		again, same, err := decodeBatch(encodeBatch(batch))
		if err != nil || again != first || len(same) != len(events) {
			t.Fatalf("%d events from %d become %d from %d: %v", len(events), first, len(same), again, err)
		}
	})
}
