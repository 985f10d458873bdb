package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vela/gateway"
	"vela/gateway/client"
	"vela/protocol"
	"vela/session"
)

// These tests cut connections to a real gateway, in this process, and hold what is put together to what an uncut
// connection shows: byte for byte but for ts and for the times in turn.metrics, which no two turns share.

// serve runs a gateway until the test ends, and returns its address.
func serve(t *testing.T, cfg gateway.Config) string {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return <-ready
}

// said is one turn: what a client sends.
type said []protocol.Message

// kinds are the turns that come out the same every time.
var kinds = map[string]struct {
	settings protocol.SessionStart
	turn     said
}{
	"mocked":       {protocol.SessionStart{Turns: "deterministic"}, said{protocol.MockedTurnTrigger{}}},
	"push to talk": {protocol.SessionStart{Turns: "deterministic"}, said{protocol.InputAudioAppend{Chunk: "a"}, protocol.InputAudioAppend{Chunk: "b"}, protocol.InputAudioCommit{}}},
	"typed":        {protocol.SessionStart{Turns: "deterministic"}, said{protocol.InputTextSubmit{Text: "hello"}}},
	"typed, to the echo agent": {protocol.SessionStart{Turns: "agent"},
		said{protocol.InputTextSubmit{Text: "how far is the harbour, and is it deep enough for us?"}}},
	"nothing said, to the agent": {protocol.SessionStart{Turns: "agent"}, said{protocol.InputAudioCommit{}}},
}

// plain is an event without what differs from turn to turn.
func plain(e protocol.Envelope) string {
	e.TS = 0
	if m, ok := e.Message.(protocol.TurnMetrics); ok {
		zero := int64(0)
		m.GatewayMs, m.TotalMs = 0, 0
		for _, ms := range []**int64{&m.SttMs, &m.FirstTokenMs, &m.FirstAudioMs} {
			if *ms != nil {
				*ms = &zero
			}
		}
		e.Message = m
	}
	return string(protocol.AppendEnvelope(nil, e))
}

// talker holds a conversation and says one thing after the other, each again if it was lost.
type talker struct {
	c   *client.Conversation
	log []string // the session's events, as they came
	on  func(protocol.Envelope)
}

// take receives one event.
func (k *talker) take(ctx context.Context) (protocol.Envelope, error) {
	e, err := k.c.Receive(ctx)
	if err != nil {
		return e, err
	}
	if e.Seq != 0 {
		k.log = append(k.log, plain(e))
	}
	if k.on != nil {
		k.on(e)
	}
	return e, nil
}

// say sends m until the session shows that it took it, as the documentation of [client.Conversation] has it.
func (k *talker) say(ctx context.Context, m protocol.Message) error {
	shows := "transcript.final"
	if _, ok := m.(protocol.InputAudioAppend); ok {
		shows = "transcript.partial"
	}
	_, sendErr := k.c.Send(ctx, m)
	back, known := false, uint64(0) // there was a resume, and what the session had done by then
	for {
		e, err := k.take(ctx)
		if err != nil {
			return err
		}
		ready, isReady := e.Message.(protocol.SessionReady)
		switch {
		case isReady && !ready.Recovered:
			return errors.New("not recovered")
		case isReady:
			back, known = true, ready.LastSeq
		case e.Seq == 0:
			return fmt.Errorf("%s, after the error %v", plain(e), sendErr)
		case e.Message.Type() == shows:
			return nil
		}
		if back && k.c.Seq() >= known {
			back = false
			_, sendErr = k.c.Send(ctx, m)
		}
	}
}

// turn says all of a turn and waits until it has had so many events.
func (k *talker) turn(ctx context.Context, t said, events int) error {
	end := len(k.log) + events
	for _, m := range t {
		if err := k.say(ctx, m); err != nil {
			return err
		}
	}
	for len(k.log) < end {
		if _, err := k.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

func talk(ctx context.Context, address string, o client.ConversationOptions, on func(*talker, protocol.Envelope)) (*talker, error) {
	c, err := client.Converse(ctx, address, o)
	if err != nil {
		return nil, err
	}
	k := &talker{c: c}
	if on != nil {
		k.on = func(e protocol.Envelope) { on(k, e) }
	}
	for len(k.log) < 1 { // the session.state of the beginning
		if _, err := k.take(ctx); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// quickly is a back-off that is over before it is felt.
var quickly = client.Backoff{First: time.Millisecond, Most: 20 * time.Millisecond}

// uncut is what so many turns look like over one connection, and how many events each of them has.
func uncut(t *testing.T, address string, settings protocol.SessionStart, turn said, turns int) (log []string, events int) {
	t.Helper()
	k, err := talk(within(t), address, client.ConversationOptions{Settings: settings}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.c.Close()
	for range turns {
		if err := k.turn(within(t), turn, 0); err != nil {
			t.Fatal(err)
		}
		for over := false; !over; {
			e, err := k.take(within(t))
			if err != nil {
				t.Fatal(err)
			}
			over = e.Message == protocol.SessionState{Value: protocol.Idle}
		}
	}
	return k.log, (len(k.log) - 1) / turns
}

// TestCutAtEveryEvent cuts the connection after each event of each kind of turn, once with the turn still running and
// once with it over.
func TestCutAtEveryEvent(t *testing.T) {
	for pace, address := range map[string]string{
		"at once": serve(t, gateway.Config{}), "paced": serve(t, gateway.Config{Pace: 3 * time.Millisecond}),
	} {
		for name, kind := range kinds {
			t.Run(pace+"/"+name, func(t *testing.T) {
				want, events := uncut(t, address, kind.settings, kind.turn, 1)
				for cut := range want {
					o := client.ConversationOptions{Settings: kind.settings, Backoff: quickly}
					k, err := talk(within(t), address, o, func(k *talker, e protocol.Envelope) {
						if e.Seq == uint64(cut+1) {
							k.c.Drop()
						}
					})
					if err == nil {
						err = k.turn(within(t), kind.turn, events)
					}
					if err != nil {
						t.Fatalf("cut after %d: %v", cut+1, err)
					}
					check(t, fmt.Sprintf("cut after %d", cut+1), k.log, want)
					_ = k.c.Close()
				}
			})
		}
	}
}

func check(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: event %d is\n%s\nwant\n%s", what, i+1, got[i], want[i])
			return
		}
	}
	t.Errorf("%s: %d events, want %d", what, len(got), len(want))
}

// TestRandomCuts cuts connections at any byte of either direction, the handshake's too, until there were 10,000 cuts, a
// tenth of them by a proxy on the way that stalls and resets.
func TestRandomCuts(t *testing.T) {
	cuts := int64(10_000)
	if testing.Short() {
		cuts = 500
	}
	address := serve(t, gateway.Config{Pace: time.Millisecond, Turns: session.Agent})
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	const turns, workers = 20, 24
	type expected struct {
		log    []string
		events int
	}
	want := map[string]expected{}
	for _, name := range names {
		log, events := uncut(t, address, kinds[name].settings, kinds[name].turn, turns)
		want[name] = expected{log, events}
	}
	proxy := newProxy(t, address)
	scissors := &scissors{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	var sessions, events atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; scissors.cuts.Load() < cuts*9/10 || proxy.cuts.Load() < cuts/10; i++ {
				name := names[i%len(names)]
				o := client.ConversationOptions{Settings: kinds[name].settings, Backoff: quickly}
				o.DialContext = scissors.dial
				to := address
				if w%6 == 0 && proxy.cuts.Load() < cuts/10 || scissors.cuts.Load() >= cuts*9/10 {
					to, o.DialContext = proxy.address, nil
				}
				log, err := cutSession(ctx, to, o, kinds[name].turn, want[name].events, turns)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				check(t, name, log, want[name].log)
				sessions.Add(1)
				events.Add(int64(len(log)))
			}
		})
	}
	wg.Wait()
	t.Logf("%d cuts at any byte and %d by the proxy, over %d sessions with %d events, in %v",
		scissors.cuts.Load(), proxy.cuts.Load(), sessions.Load(), events.Load(), time.Since(began).Round(time.Millisecond))
}

// cutSession holds one conversation; the first connection may take several attempts, since those are cut as well.
func cutSession(ctx context.Context, address string, o client.ConversationOptions, turn said, events, turns int) ([]string, error) {
	k, err := talk(ctx, address, o, nil)
	for ; err != nil && ctx.Err() == nil; k, err = talk(ctx, address, o, nil) {
		var dial *client.DialError
		var closed *client.CloseError
		if !errors.As(err, &dial) && !errors.As(err, &closed) {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	for range turns {
		if err := k.turn(ctx, turn, events); err != nil {
			return nil, fmt.Errorf("after %d events: %w", len(k.log), err)
		}
	}
	_ = k.c.Close()
	return k.log, nil
}

// scissors cut connections after a random number of bytes.
type scissors struct{ cuts atomic.Int64 }

func (s *scissors) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &shortConn{Conn: conn, cuts: &s.cuts}
	c.left.Store(200 + rand.Int64N(3000)) // the handshake takes about 700
	return c, nil
}

// shortConn ends after so many bytes in both directions.
type shortConn struct {
	net.Conn
	left atomic.Int64
	cuts *atomic.Int64
	once sync.Once
}

var errCut = errors.New("cut by the test")

func (c *shortConn) cut() {
	c.once.Do(func() {
		c.cuts.Add(1)
		_ = c.Conn.Close()
	})
}

func (c *shortConn) Read(b []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		c.cut()
		return 0, errCut
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.left.Add(int64(-n))
	return n, err
}

func (c *shortConn) Write(b []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		c.cut()
		return 0, errCut
	}
	n, err := c.Conn.Write(b[:min(int64(len(b)), left)])
	if c.left.Add(int64(-n)) <= 0 && err == nil {
		c.cut()
		err = errCut
	}
	return n, err
}

// proxy is a TCP proxy that stalls every connection for a while, and then resets it.
type proxy struct {
	address string
	to      string
	cuts    atomic.Int64
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.pass(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return p
}

// pass carries a connection up to a random byte of what the gateway sends, lets it stall there, and resets both sides.
func (p *proxy) pass(in *net.TCPConn) {
	defer in.Close()
	conn, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	out := conn.(*net.TCPConn)
	defer out.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = io.Copy(out, in); _ = out.CloseWrite() })
	_, err = io.CopyN(in, out, 200+rand.Int64N(3000))
	if err == nil {
		p.cuts.Add(1)
		time.Sleep(rand.N(15 * time.Millisecond))
		_ = in.SetLinger(0)
		_ = out.SetLinger(0)
	}
	_ = in.Close()
	_ = out.Close()
}

// TestWhatCannotBeRecovered: the gateway says so, and the conversation goes on without a part of it.
func TestWhatCannotBeRecovered(t *testing.T) {
	address := serve(t, gateway.Config{})
	c := dial2(t, address)
	ready, err := c.Start(within(t), protocol.SessionStart{})
	if err != nil {
		t.Fatal(err)
	}
	c.Drop()
	c = dial2(t, address)
	again, err := c.Resume(within(t), ready.ResumeToken, 99)
	if err != nil || again.Recovered || !again.Resumed || again.SessionID != ready.SessionID {
		t.Errorf("%+v and the error %v", again, err)
	}
	for _, token := range []string{"", "none", ready.ResumeToken + "x", strings.Repeat("A", 43)} {
		var told *client.EventError
		c := dial2(t, address)
		if _, err := c.Resume(within(t), token, 0); !errors.As(err, &told) || told.Event.Code != protocol.CodeSessionGone {
			t.Errorf("%q: %v", token, err)
		}
		_, err = c.Receive(within(t))
		checkClosed(t, err, protocol.CloseSessionGone, "the gateway closed the connection with 4006")
	}
}

func dial2(t *testing.T, address string) *client.Client {
	t.Helper()
	return dial(t, address, client.Options{Subprotocols: []string{client.Version2}})
}

// TestTakenOver: the conversation that lost its session to another one does not fight for it.
func TestTakenOver(t *testing.T) {
	address := serve(t, gateway.Config{})
	k, err := talk(within(t), address, client.ConversationOptions{Backoff: quickly}, nil)
	if err != nil {
		t.Fatal(err)
	}
	thief := dial2(t, address)
	if _, err := thief.Resume(within(t), k.c.Terms().ResumeToken, 1); err != nil {
		t.Fatal(err)
	}
	_, err = k.take(within(t))
	checkClosed(t, err, protocol.CloseTakenOver, "the gateway closed the connection with 4002")
}

// TestCloseEndsTheSession for good: nobody resumes it.
func TestCloseEndsTheSession(t *testing.T) {
	address := serve(t, gateway.Config{})
	k, err := talk(within(t), address, client.ConversationOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = k.c.Receive(context.Background())
		}
		received <- err
	}()
	if err := k.c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-received; err == nil {
		t.Error("no error")
	}
	_, err = dial2(t, address).Resume(within(t), k.c.Terms().ResumeToken, 1)
	var told *client.EventError
	var closed *client.CloseError
	gone := errors.As(err, &told) && told.Event.Code == protocol.CodeSessionGone
	if !gone && !(errors.As(err, &closed) && closed.Code == protocol.CloseSessionGone) { // a session on its way out says only this
		t.Errorf("the error is %v", err)
	}
}

// TestAudioFraming: speech goes as was agreed, as a binary message or in one of text.
func TestAudioFraming(t *testing.T) {
	address := serve(t, gateway.Config{})
	for _, framing := range []string{"json", "binary"} {
		c := dial2(t, address)
		format := protocol.Format{Encoding: "pcm16", Rate: 16000, Framing: framing}
		ready, err := c.Start(within(t), protocol.SessionStart{Turns: "deterministic", Audio: &protocol.AudioFormats{Input: &format}})
		if err != nil || *ready.Audio.Input != format || *c.Terms().Audio.Input != format {
			t.Fatalf("%+v and the error %v", ready, err)
		}
		if err := c.SendAudio(within(t), []int16{1, 2}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"session.state", "session.state", "transcript.partial"} {
			if m, err := c.Receive(within(t)); err != nil || m.Type() != want {
				t.Errorf("%s: %v and the error %v, want %s", framing, m, err, want)
			}
		}
	}
}
