package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/session"
	"vela/turn"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

// A session of version 2 is cut off from its client after any of its events, and resumed: what the client has then been
// shown, put together, is what it would have been shown without the cut, byte for byte but for the times.

// exchange is what a client does, one thing after the other once nothing moves any more: it sends a message, or lets
// time pass.
type exchange []any

// settled is longer than any of these exchanges.
const settled = 10 * time.Second

// exchanges are the turns that are cut. In a timed one it matters when the client does something: it must not be away
// then.
var exchanges = map[string]struct {
	do    exchange
	timed bool
}{
	"spoken":                    {do: exchange{piece, piece, piece, commit, settled}},
	"spoken, binary":            {do: exchange{session.Audio{PCM: make([]byte, 640)}, session.Audio{PCM: make([]byte, 2)}, commit, settled}},
	"nothing said":              {do: exchange{commit, settled}},
	"cleared":                   {do: exchange{piece, piece, protocol.InputAudioClear{}, piece, commit, settled}},
	"cancelled while listening": {do: exchange{piece, cancel, settled}},
	"typed":                     {do: exchange{typed("hello there"), settled}},
	"typed while listening":     {do: exchange{piece, typed("never mind"), settled}},
	"triggered":                 {do: exchange{trigger, settled}},
	"slow":                      {do: exchange{typed("slow"), settled}},
	"works":                     {do: exchange{typed("works"), settled}},
	"works hard":                {do: exchange{typed("works hard"), settled}},
	"fails":                     {do: exchange{typed("fails"), settled}},
	"fails at once":             {do: exchange{typed("fails at once"), settled}},
	"panics":                    {do: exchange{typed("panics"), settled}},
	"stops":                     {do: exchange{typed("stops"), settled}},
	"says nothing":              {do: exchange{typed("says nothing"), settled}},
	"asks":                      {do: exchange{typed("asks"), settled}},
	"cancelled while thinking":  {do: exchange{typed("slow"), 50 * time.Millisecond, cancel, settled}, timed: true},
	"cancelled while speaking":  {do: exchange{typed("slow"), 150 * time.Millisecond, cancel, settled}, timed: true},
	"spoken over":               {do: exchange{typed("slow"), 150 * time.Millisecond, piece, piece, commit, settled}, timed: true},
	"typed over":                {do: exchange{typed("slow"), 250 * time.Millisecond, typed("works"), settled}, timed: true},
	"triggered, spoken over":    {do: exchange{trigger, 30 * time.Millisecond, piece, commit, settled}, timed: true},
	"over and over": {do: exchange{typed("slow"), 150 * time.Millisecond, typed("slow"), 150 * time.Millisecond, piece, commit,
		0 * time.Second, typed("slow"), 50 * time.Millisecond, cancel, settled}, timed: true},
}

func typed(text string) protocol.Message { return protocol.InputTextSubmit{Text: text} }

// varied does what the engine that is named by the text does, and repeats any other text.
var varied = engine(func(ctx context.Context, req turn.Request, yield yieldSignal) {
	e := engines[req.Text]
	if e == nil {
		e = engines2[req.Text]
	}
	if e == nil {
		e = echo.Engine{}
	}
	e.Run(ctx, req)(yield)
})

// cut is how a connection is lost after an event, and how the client comes back.
type cut struct {
	away   time.Duration // how long nobody is there
	before bool          // the new connection comes before the gateway notices that the old one is lost
	older  uint64        // so many of the events that were shown have been lost, too
	future bool          // the client first claims to have what has not happened
}

func (c cut) String() string {
	return fmt.Sprintf("away %v, before %t, older %d, future %t", c.away, c.before, c.older, c.future)
}

// follower is a client that comes back after each cut, and what it has been shown.
type follower struct {
	t       *testing.T
	session *session.Session
	cuts    map[uint64]cut

	mu   sync.Mutex // the session's goroutine and those that come back share what follows
	here *sitting   // nil while nobody is
	got  []session.Event
	bad  []string
}

// sitting is one of its connections: a [session.Peer].
type sitting struct {
	follower *follower
	lost     bool
	liar     bool                  // it claims to have what has not happened
	ready    protocol.SessionReady // its first event
	shown    int
}

// Send implements [session.Peer].
func (p *sitting) Send(e session.Event) {
	f := p.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.lost {
		return
	}
	p.shown++
	ready, ok := e.Message.(protocol.SessionReady)
	switch {
	case ok != (p.shown == 1):
		f.bad = append(f.bad, fmt.Sprintf("event %d of a connection is %s", p.shown, e.Message.Type()))
	case ok:
		p.ready = ready
		if len(f.got) > 0 && (!ready.Resumed || ready.Recovered == p.liar) {
			f.bad = append(f.bad, fmt.Sprintf("resumed %t, recovered %t for one who lies: %t", ready.Resumed, ready.Recovered, p.liar))
		}
	case p.liar && e.Seq != 0 && e.Seq <= p.ready.LastSeq:
		f.bad = append(f.bad, fmt.Sprintf("who is not recovered is shown %d of %d", e.Seq, p.ready.LastSeq))
	case !p.liar && e.Seq != 0:
		f.note(p, e)
	}
}

// note takes an event, and loses the connection if it is to be.
func (f *follower) note(p *sitting, e session.Event) {
	f.got = append(f.got, e)
	c, ok := f.cuts[e.Seq]
	if !ok {
		return
	}
	delete(f.cuts, e.Seq)
	p.lost, f.here = true, nil
	go f.comeBack(p, c)
}

// comeBack leaves and resumes, from a goroutine of its own: a peer must not call its session.
func (f *follower) comeBack(p *sitting, c cut) {
	if !c.before {
		f.session.Leave(p)
	}
	time.Sleep(c.away)
	if c.future {
		liar := &sitting{follower: f, liar: true}
		f.join(liar, session.Hello{Resume: true, After: 1 << 40})
	}
	f.mu.Lock()
	f.got = f.got[:len(f.got)-int(min(c.older, uint64(len(f.got)-1)))]
	next := &sitting{follower: f}
	after := uint64(len(f.got))
	f.mu.Unlock()
	f.join(next, session.Hello{Resume: true, After: after})
	f.mu.Lock()
	if !next.lost {
		f.here = next
	}
	f.mu.Unlock()
	if c.before {
		f.session.Leave(p)
	}
}

func (f *follower) join(p *sitting, h session.Hello) {
	if err := f.session.Join(f.t.Context(), p, h); err != nil {
		f.t.Error(err)
	}
}

// Resend implements [session.Peer].
func (p *sitting) Resend(events []session.Event) {
	for _, e := range events {
		p.Send(e)
	}
}

// Close implements [session.Peer].
func (p *sitting) Close(protocol.CloseCode, string) {}

func (f *follower) present() *sitting {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.here
}

// follow plays the exchanges and returns all that the client has been shown, in the end.
func follow(t *testing.T, do exchange, cuts map[uint64]cut) []session.Event {
	t.Helper()
	cfg := agentBacked(recogniser(counts), varied)
	cfg.Mock = deterministic.Engine{Pace: 20 * time.Millisecond}
	s := session.New(version2(cfg))
	if err := s.Configure(protocol.SessionStart{Audio: &protocol.AudioFormats{
		Input: &protocol.Format{Encoding: "pcm16", Rate: 16000, Framing: "binary"}}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); s.Run(ctx) }()
	f := &follower{t: t, session: s, cuts: cuts}
	f.here = &sitting{follower: f}
	f.join(f.here, session.Hello{})
	for _, what := range do {
		synctest.Wait()
		if d, ok := what.(time.Duration); ok {
			time.Sleep(d)
			continue
		}
		for f.present() == nil {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if err := s.Receive(t.Context(), f.present(), "", what.(protocol.Message)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Minute) // everybody is back
	synctest.Wait()
	f.session.Leave(f.present()) // what it is told at the end is no part of this
	synctest.Wait()
	stop()
	<-over
	for _, what := range f.bad {
		t.Error(what)
	}
	for i, e := range f.got {
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
	}
	return f.got
}

// timeless is the events as they are written, without the times.
func timeless(events []session.Event) []string {
	var lines []string
	for _, e := range events {
		m := e.Message
		if metrics, ok := m.(protocol.TurnMetrics); ok {
			for _, ms := range []**int64{&metrics.SttMs, &metrics.FirstTokenMs, &metrics.FirstAudioMs} {
				if *ms != nil {
					*ms = new(int64)
				}
			}
			metrics.TotalMs, metrics.GatewayMs = 0, 0
			m = metrics
		}
		if status, ok := m.(ganglia.Status); ok {
			status.StartedAt = 0
			m = status
		}
		lines = append(lines, string(protocol.AppendEnvelope(nil, protocol.Envelope{Seq: e.Seq, Message: m})))
	}
	return lines
}

// sameBut compares what was shown with cuts with what was shown without.
func sameBut(t *testing.T, do exchange, cuts map[uint64]cut, whole []string) {
	t.Helper()
	said := fmt.Sprint(cuts) // follow uses it up
	var got []string
	synctest.Test(t, func(t *testing.T) { got = timeless(follow(t, do, cuts)) })
	if !slices.Equal(got, whole) {
		t.Errorf("cut %s: shown\n  %s\nwant\n  %s", said, strings.Join(got, "\n  "), strings.Join(whole, "\n  "))
	}
}

func uncut(t *testing.T, do exchange) []string {
	t.Helper()
	var whole []string
	synctest.Test(t, func(t *testing.T) { whole = timeless(follow(t, do, nil)) })
	return whole
}

func TestACutAfterEachEventShowsNothingTwiceAndLosesNothing(t *testing.T) {
	for name, x := range exchanges {
		t.Run(name, func(t *testing.T) {
			twice := slices.Concat(x.do, x.do) // the ids of the second turn are others
			whole := uncut(t, twice)
			if len(whole) < 3 {
				t.Fatalf("the whole of it is %q", whole)
			}
			kinds := []cut{{}, {before: true}, {older: 3}, {future: true}}
			if !x.timed {
				kinds = append(kinds, cut{away: 70 * time.Millisecond}, cut{away: 7 * time.Second})
			}
			for k := range whole {
				for _, c := range kinds {
					sameBut(t, twice, map[uint64]cut{uint64(k + 1): c}, whole)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// Several turns in a row are cut at random, often in the middle of one that was just resumed.
func TestRandomCuts(t *testing.T) {
	most := 10_000
	if testing.Short() {
		most = 500
	}
	var names []string
	for name := range exchanges {
		names = append(names, name)
	}
	slices.Sort(names)
	for seed, cuts := uint64(0), 0; cuts < most; seed++ {
		r := rand.New(rand.NewPCG(seed, 2))
		var do exchange
		timed := false
		for range 1 + r.IntN(4) {
			x := exchanges[pick(r, names...)]
			do = append(do, x.do...)
			timed = timed || x.timed
		}
		whole := uncut(t, do)
		for range 8 {
			at := map[uint64]cut{}
			for range 1 + r.IntN(8) {
				c := cut{before: r.IntN(3) == 0, older: uint64(pick(r, 0, 0, 0, 1, 5, 1000)), future: r.IntN(6) == 0}
				if !timed {
					c.away = pick(r, 0, 0, time.Millisecond, 33*time.Millisecond, time.Second)
				}
				at[1+r.Uint64N(uint64(len(whole)))] = c
			}
			cuts += len(at)
			sameBut(t, do, at, whole)
			if t.Failed() {
				t.Fatalf("seed %d: %v", seed, do)
			}
		}
	}
}

// What has fallen out of the log is not resumed, and neither is a part of it.
func TestResumeBeyondTheLog(t *testing.T) {
	const kept = 4096
	synctest.Test(t, func(t *testing.T) {
		c := start(t, version2(agentBacked(nil, says(slices.Repeat([]string{"x"}, 5000)...))))
		c.join()
		c.send(typed("go on"))
		synctest.Wait()
		last := c.shown[len(c.shown)-1].Seq
		for _, after := range []uint64{0, 1, last - kept - 1, last - kept, last - kept + 1, last - 1, last, last + 1, ^uint64(0)} {
			shown, recovered := resumed(t, c.session, after)
			if want := after <= last && after >= last-kept; recovered != want {
				t.Fatalf("after %d of %d: recovered is %t", after, last, recovered)
			}
			if recovered && !slices.Equal(shown, c.shown[uint64(len(c.shown))-(last-after):]) {
				t.Fatalf("after %d of %d: it is shown %d events", after, last, len(shown))
			}
		}
	})
}

// The same where the events are few and large: as many as 8 MiB hold can be resumed, and no more.
func TestResumeBeyondTheBytesOfTheLog(t *testing.T) {
	const piece, most = 1 << 18, 8 << 20
	synctest.Test(t, func(t *testing.T) {
		c := start(t, version2(agentBacked(nil, says(slices.Repeat([]string{strings.Repeat("x", piece)}, 20)...))))
		c.join()
		c.send(typed("go on"), typed("go on"))
		synctest.Wait()
		last := c.shown[len(c.shown)-1].Seq
		oldest := last
		for after := range last {
			shown, recovered := resumed(t, c.session, after)
			if !recovered && after > oldest {
				t.Errorf("after %d is recovered, after %d is not", oldest, after)
			}
			if recovered {
				oldest = min(oldest, after)
			}
			if recovered && uint64(len(shown)) != last-after {
				t.Errorf("after %d of %d: it is shown %d events", after, last, len(shown))
			}
		}
		size := func(events []session.Event) (n int) {
			for _, e := range events {
				n += len(protocol.AppendEnvelope(nil, protocol.Envelope{Message: e.Message}))
			}
			return n
		}
		held := c.shown[uint64(len(c.shown))-(last-oldest):]
		if n := size(held); n > most+most/10 || n < most-2*20*piece {
			t.Errorf("the log holds %d bytes", n)
		}
		if n := size(c.shown[uint64(len(c.shown))-(last-oldest)-1:]); n < most-most/10 {
			t.Errorf("one event more would be %d bytes", n)
		}
	})
}

// resumed is what a client that has the events up to after is shown of the others.
func resumed(t *testing.T, s *session.Session, after uint64) (shown []session.Event, recovered bool) {
	t.Helper()
	c := &client{t: t, session: s}
	if err := s.Join(t.Context(), c, session.Hello{Resume: true, After: after}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	ready := c.shown[0].Message.(protocol.SessionReady)
	rest := c.shown[1:]
	if !ready.Recovered { // where the session is, and nothing else
		if len(rest) != 1 || rest[0].Seq != 0 || rest[0].Message.Type() != "session.state" {
			t.Fatalf("not recovered, it is shown %v", rest)
		}
		rest = nil
	}
	if !ready.Resumed {
		t.Error("it is not resumed")
	}
	return rest, ready.Recovered
}
