package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/turn"
)

// bubble runs a test in which time costs nothing. The claw and the client end with it.
func bubble(t *testing.T, c *claw, cfg Config, test func(t *testing.T, client *Client, e *Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if cfg.dial == nil {
			cfg.dial = c.dialed
		}
		c.calls = make(chan call, 4096)
		client := started(t, cfg)
		synctest.Wait()
		test(t, client, engine(t, client))
	})
}

func TestHandshakes(t *testing.T) {
	for name, want := range map[string]struct {
		phase    Phase
		why      error
		protocol int
	}{
		"hello-v4":             {Connected, nil, 4},
		"hello-v3":             {Connected, nil, 3},
		"hello-no-rights":      {Idle, errNoRights, 0},
		"refused-token":        {Idle, errToken, 0},
		"refused-unpaired":     {Idle, errPairing, 0},
		"refused-protocol":     {Idle, errors.New("OpenClaw speaks version 4 of its protocol, Vela versions 3 to 4. Update the older of the two."), 0},
		"refused-protocol-old": {Idle, errors.New("OpenClaw speaks version 3 of its protocol, Vela versions 3 to 4. Update the older of the two."), 0},
	} {
		t.Run(name, func(t *testing.T) {
			log, told := logTo()
			c := play(t, name)
			address := c.listen(t)
			client := started(t, Config{URL: address, Log: log})
			s := until(t, client, "settled", in(Connected, Idle, Waiting))
			if s.Phase != want.phase || s.Protocol != want.protocol || want.why != nil && s.Why != want.why.Error() || want.why == nil && s.Why != "" {
				t.Errorf("status %v, want %v", s, want)
			}
			if want.why != nil {
				_, err := heard(t.Context(), engine(t, client), request1)
				if err == nil || err.Error() != s.Why || code(err) != protocol.CodeAgentUnavailable {
					t.Errorf("a turn is told %v", err)
				}
				if n := c.connections(); n != 2 {
					t.Errorf("%d connections, want one by itself and one for the turn", n)
				}
			}
			if all := told.String() + s.String(); strings.Contains(all, token) || strings.Contains(s.String(), strings.TrimPrefix(address, "ws://")) {
				t.Errorf("the token or the address was told:\n%s", all)
			}
		})
	}
}

func TestWhatVelaSaysOfItself(t *testing.T) {
	c := play(t, "hello-v4")
	client := started(t, Config{URL: c.listen(t)})
	until(t, client, "connected", in(Connected))
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.heads[0]; h.Get("Origin") != "" || h.Get("Authorization") != "" {
		t.Errorf("headers %v: with an Origin, OpenClaw takes all rights away", h)
	}
	got, err := json.Marshal(c.hellos[0])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"req","id":"connect","method":"connect","params":{"auth":{"token":"` + token + `"},"caps":["tool-events"],` +
		`"client":{"id":"gateway-client","mode":"backend","platform":"linux","version":"vela"},"maxProtocol":4,"minProtocol":3,"role":"operator",` +
		`"scopes":["operator.read","operator.write"]}}`
	if string(got) != want {
		t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
}

func TestReasonsOfARefusal(t *testing.T) {
	for text, want := range map[string]*failure{
		`{"code":"INVALID_REQUEST","details":{"code":"AUTH_TOKEN_MISMATCH"}}`: errToken,
		`{"code":"INVALID_REQUEST","details":{"code":"AUTH_UNAUTHORIZED"}}`:   errToken,
		`{"code":"INVALID_REQUEST","details":{"code":"AUTH_RATE_LIMITED"}}`:   errTooOften,
		`{"code":"NOT_PAIRED","details":{"code":"PAIRING_REQUIRED"}}`:         errPairing,
		`{"code":"NOT_PAIRED"}`:      errPairing,
		`{"code":"UNAVAILABLE"}`:     errStarting,
		`{"code":"INVALID_REQUEST"}`: errRefused,
		`null`:                       errRefused,
	} {
		var r *reason
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if got := refused(r); got.words != want.words || got.lasts != want.lasts || got.Unwrap().Error() == "" {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// queued is all that is heard of a question that OpenClaw has put behind other work.
func queued(q call) []byte {
	return []byte(`{"type":"event","event":"chat","payload":{"runId":"` + q.param("idempotencyKey") + `","state":"final"}}`)
}

func TestAQuestionPutBehindOtherWorkIsAskedAgain(t *testing.T) {
	for name, x := range map[string]struct {
		times    int // that it is put behind other work
		clearing string
		err      error
		want     string
	}{
		"once":            {1, `"ok":true`, nil, "chat.send sessions.abort chat.send"},
		"twice":           {2, `"ok":true`, errStillBusy, "chat.send sessions.abort chat.send"},
		"nothing cleared": {1, `"ok":false`, nil, "chat.send sessions.abort chat.send"},
		"no answer":       {1, "", errStillBusy, "chat.send sessions.abort"},
	} {
		t.Run(name, func(t *testing.T) {
			c := play(t, "turn")
			c.asked = func(n *conn, q call) {
				switch {
				case q.Method == "sessions.abort" && x.clearing != "":
					n.write([]byte(`{"type":"res","id":"` + q.ID + `",` + x.clearing + `}`))
				case q.Method == "chat.send" && x.times > 0:
					x.times--
					n.write([]byte(`{"type":"res","id":"`+q.ID+`","ok":true}`), queued(q))
				case q.Method == "chat.send":
					n.write(c.answers(q)...)
				}
			}
			bubble(t, c, Config{}, func(t *testing.T, _ *Client, e *Engine) {
				got, err := heard(t.Context(), e, request1)
				if !errors.Is(err, x.err) || x.err == nil && !strings.Contains(got, "Hello! I") {
					t.Errorf("%s, %v", got, err)
				}
				synctest.Wait()
				var methods []string
				ids := map[string]bool{}
				for len(c.calls) > 0 {
					q := <-c.calls
					methods = append(methods, q.Method)
					ids[q.param("idempotencyKey")] = true
					if q.Method == "sessions.abort" && (q.param("key") != "agent:main:vela-s1" || q.Params["clearQueued"] != true) {
						t.Errorf("cleared %v", q.Params)
					}
				}
				if strings.Join(methods, " ") != x.want || len(ids) != len(methods) {
					t.Errorf("sent %v", methods)
				}
			})
		})
	}
}

func TestVersion3KnowsNoInterruption(t *testing.T) {
	c := play(t, "hello-v3")
	bubble(t, c, Config{}, func(t *testing.T, _ *Client, e *Engine) {
		c.asked = func(n *conn, q call) {
			n.write([]byte(`{"type":"res","id":"`+q.ID+`","ok":true}`), queued(q))
		}
		if _, err := heard(t.Context(), e, request1); err != error(errStillBusy) {
			t.Errorf("a question that was put behind another: %v", err)
		}
		if q := c.any(t); q.Params["queueMode"] != nil {
			t.Errorf("asked %v", q.Params)
		}
	})
}

// nobody is where no OpenClaw listens; it notes when it was dialed.
type nobody struct {
	mu    sync.Mutex
	start time.Time
	at    []string
	there *claw // an OpenClaw all the same
}

func (n *nobody) dial(ctx context.Context, url string) (socket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.there != nil {
		return n.there.dialed(ctx, url)
	}
	n.at = append(n.at, time.Since(n.start).String())
	return nil, errors.New("connection refused")
}

// from starts the list anew.
func (n *nobody) from(there *claw) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.start, n.at, n.there = time.Now(), nil, there
}

// dialed says when it was.
func (n *nobody) dialed() string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.at, " ")
}

func TestTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nobody{start: time.Now()}
		client := started(t, Config{dial: n.dial})
		time.Sleep(time.Hour)
		const want = "0s 1s 3s 7s 15s 31s 1m1s 1m31s 2m1s 2m31s 3m1s"
		if got := n.dialed(); got != want {
			t.Errorf("dialed at %s, want %s", got, want)
		}
		if s := client.Status(); s.Phase != Idle || s.Why != errSilent.words {
			t.Errorf("status %v", s)
		}
		n.from(nil)
		_, err := heard(t.Context(), engine(t, client), request1)
		if got := n.dialed(); code(err) != protocol.CodeAgentUnavailable || err.Error() != errSilent.words || got != "0s" {
			t.Errorf("a turn: %v, dialed at %s", err, got)
		}
		if s := client.Status(); s.Phase != Waiting {
			t.Errorf("status %v: the turn begins the tries anew", s)
		}
		time.Sleep(time.Hour)
		if got := n.dialed(); got != want {
			t.Errorf("then dialed at %s, want %s", got, want)
		}
	})
}

func TestATurnDoesNotWaitForATryThatIsDueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nobody{}
		client := started(t, Config{dial: n.dial})
		time.Sleep(40 * time.Second)
		n.from(nil)
		if _, err := heard(t.Context(), engine(t, client), request1); err == nil {
			t.Error("no error")
		}
		time.Sleep(59 * time.Second)
		if got := n.dialed(); got != "0s 30s" { // one at once, and it counts as a try
			t.Errorf("dialed at %s", got)
		}
	})
}

func TestSuccessBeginsTheTriesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := play(t, "hello-v4")
		n := &nobody{there: c}
		client := started(t, Config{dial: n.dial})
		synctest.Wait()
		for range 2 {
			n.from(nil)
			c.hangUp()
			time.Sleep(20 * time.Second)
			if got := n.dialed(); got != "1s 3s 7s 15s" {
				t.Errorf("dialed at %s", got)
			}
			n.from(c)
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := client.Status(); s.Phase != Connected {
				t.Fatalf("status %v", s)
			}
		}
	})
}

func TestAConnectionLostInTheMiddleOfARun(t *testing.T) {
	c := play(t, "stopped")
	bubble(t, c, Config{}, func(t *testing.T, client *Client, e *Engine) {
		go func() {
			<-c.calls
			synctest.Wait()
			c.hangUp()
		}()
		got, err := heard(t.Context(), e, request1)
		if !strings.Contains(got, "This is") || code(err) != protocol.CodeAgentFailed || err.Error() != errLost.words {
			t.Errorf("yielded %s, %v", got, err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := c.any(t); s.Method != "chat.abort" || s.param("sessionKey") != "agent:main:vela-s1" {
			t.Errorf("after the connection came back: %v, want the run that goes on unheard to be stopped", s)
		}
		if s := client.Status(); s.Phase != Connected || c.connections() != 2 {
			t.Errorf("status %v, %d connections", s, c.connections())
		}
	})
}

func TestASilentConnectionIsGivenUp(t *testing.T) {
	log, told := logTo()
	c := play(t, "hello-v4") // ticks every 30 s
	bubble(t, c, Config{Log: log}, func(t *testing.T, client *Client, _ *Engine) {
		c.conns[0].tick(5 * time.Minute)
		synctest.Wait()
		if c.connections() != 1 {
			t.Fatalf("%d connections while it ticks", c.connections())
		}
		time.Sleep(63 * time.Second)
		synctest.Wait()
		if s := client.Status(); s.Phase != Connected || c.connections() != 2 || !strings.Contains(told.String(), "silent") {
			t.Errorf("%v, %d connections; log:\n%s", s, c.connections(), told)
		}
	})
}

func TestTimesOfATurn(t *testing.T) {
	deaf := func(context.Context, string) (socket, error) {
		return &pipe{toVela: make(chan []byte), fromVela: make(chan []byte), gone: make(chan struct{})}, nil
	}
	taken := func(n *conn, q call) {
		n.write([]byte(`{"type":"res","id":"` + q.ID + `","ok":true}`))
		n.tick(5 * time.Minute)
	}
	for name, x := range map[string]struct {
		cfg   Config
		asked func(*conn, call)
		err   *failure
		after time.Duration
	}{
		"no connection":  {cfg: Config{dial: deaf, ConnectWithin: 10 * time.Second}, err: errNotTaken, after: 10 * time.Second},
		"no handshake":   {cfg: Config{dial: deaf}, err: errSilent, after: handshakeWithin},
		"not taken":      {asked: func(*conn, call) {}, err: errNotTaken, after: defaultConnectWithin},
		"taken, no sign": {asked: taken, err: errNoSign, after: defaultAnswerWithin},
	} {
		t.Run(name, func(t *testing.T) {
			c := play(t, "turn")
			c.asked = x.asked
			bubble(t, c, x.cfg, func(t *testing.T, _ *Client, e *Engine) {
				start := time.Now()
				_, err := heard(t.Context(), e, request1)
				if err == nil || err.Error() != x.err.words || code(err) != x.err.code || time.Since(start) != x.after {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(start), x.err, x.after)
				}
			})
		})
	}
}

// A tool may take long, and a run that has begun is waited for.
func TestARunThatHasBegunMayTakeLong(t *testing.T) {
	c := play(t, "turn")
	c.asked = func(n *conn, q call) {
		frames := c.answers(q)
		n.write(frames[:4]...)
		n.tick(time.Hour)
		n.write(frames[4:]...)
	}
	bubble(t, c, Config{}, func(t *testing.T, _ *Client, e *Engine) {
		if got, err := heard(t.Context(), e, request1); err != nil || !strings.Contains(got, "completion") {
			t.Errorf("%s, %v", got, err)
		}
	})
}

// OpenClaw serves requests out of order: a stop that overtakes its question would stop nothing.
func TestAQuestionIsStoppedOnlyOnceItIsTaken(t *testing.T) {
	c := play(t, "stopped")
	taken := make(chan struct{})
	c.asked = func(n *conn, q call) {
		if q.Method == "chat.send" {
			<-taken
			n.write(c.answers(q)[:1]...)
		}
	}
	bubble(t, c, Config{}, func(t *testing.T, _ *Client, e *Engine) {
		taken = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-c.calls
			cancel()
		}()
		if got, err := heard(ctx, e, request1); got != "" || err != nil {
			t.Fatalf("yielded %s, %v", got, err)
		}
		synctest.Wait()
		select {
		case q := <-c.calls:
			t.Fatalf("%s before the question was taken", q.Method)
		default:
		}
		close(taken)
		synctest.Wait()
		select {
		case q := <-c.calls:
			if q.Method != "chat.abort" {
				t.Errorf("%s was sent", q.Method)
			}
		default:
			t.Error("the run was not stopped")
		}
	})
}

func TestASlowReaderLosesItsOwnRunOnly(t *testing.T) {
	c := play(t, "stopped")
	text := strings.Repeat("x", 64<<10)
	c.asked = func(n *conn, q call) {
		if q.Method != "chat.send" {
			n.write(c.stops(q)...)
			return
		}
		n.write([]byte(`{"type":"res","id":"` + q.ID + `","ok":true}`))
		if q.param("message") != "much" {
			n.write(renamed(play(t, "turn").answer, play(t, "turn").runID, q.param("idempotencyKey"))...)
			return
		}
		for range maxQueued/len(text) + 2 {
			n.write([]byte(`{"type":"event","event":"agent","payload":{"runId":"` + q.param("idempotencyKey") + `","stream":"thinking","data":{"delta":"` + text + `"}}}`))
		}
	}
	bubble(t, c, Config{}, func(t *testing.T, _ *Client, e *Engine) {
		var err error
		for _, e := range e.Run(t.Context(), turn.Request{SessionID: "slow", Text: "much"}) {
			err = e
			synctest.Wait() // this reader takes nothing until everything has come
		}
		if err == nil || err.Error() != errBehind.words {
			t.Errorf("the slow one: %v", err)
		}
		if _, err := heard(t.Context(), e, request1); err != nil {
			t.Errorf("the other one: %v", err)
		}
		if s := c.next(t, "chat.abort"); s.param("sessionKey") != "agent:main:vela-slow" {
			t.Errorf("stopped %v", s.Params)
		}
	})
}

func TestTurnsAreBounded(t *testing.T) {
	c := play(t, "turn")
	c.asked = func(*conn, call) {} // takes nothing
	bubble(t, c, Config{}, func(t *testing.T, _ *Client, e *Engine) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range maxTurns {
			go func() { _, _ = heard(ctx, e, request1) }()
		}
		synctest.Wait()
		if _, err := heard(t.Context(), e, request1); err != error(errBusy) {
			t.Errorf("one more: %v", err)
		}
		cancel()
		synctest.Wait()
		c.asked = nil
		if _, err := heard(t.Context(), e, request1); err != nil {
			t.Errorf("after the others left: %v", err)
		}
	})
}

func TestMissedEventsAreNoticed(t *testing.T) {
	log, told := logTo()
	c := play(t, "turn")
	c.asked = func(n *conn, q call) {
		for _, f := range c.answers(q) {
			if !strings.Contains(string(f), `"Hello! I"`) { // the first piece of the text
				n.write(f)
			}
		}
	}
	bubble(t, c, Config{Log: log}, func(t *testing.T, client *Client, e *Engine) {
		got, err := heard(t.Context(), e, request1)
		if err != nil || !strings.Contains(got, `"content":"Hello! I am the mock model and I am fine, thank you."`) {
			t.Errorf("%s, %v: the next piece has all of the text", got, err)
		}
		if s := client.Status(); s.Missed == 0 || strings.Count(told.String(), "leaves events out") != 1 {
			t.Errorf("%+v, log:\n%s", s, told)
		}
	})
}

func TestTheTokenIsAskedForEachConnection(t *testing.T) {
	c := play(t, "hello-v4")
	n := 0
	cfg := Config{Token: func() (string, error) {
		n++
		switch n {
		case 1:
			return "", errors.New("no file /srv/secret")
		case 2:
			return "second", nil
		}
		return "third", nil
	}}
	bubble(t, c, cfg, func(t *testing.T, client *Client, e *Engine) {
		if s := client.Status(); s.Phase != Idle || s.Why != errNoToken.words {
			t.Errorf("without a token: %v", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = heard(ctx, e, request1) }()
		synctest.Wait()
		cancel()
		c.hangUp()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		var sent []string
		for _, h := range c.hellos {
			sent = append(sent, fmt.Sprint(h.Params["auth"]))
		}
		if want := []string{"map[token:second]", "map[token:third]"}; !slices.Equal(sent, want) {
			t.Errorf("sent %v", sent)
		}
	})
}

type slowToClose struct{ *pipe }

func (s slowToClose) Close() error {
	time.Sleep(time.Second)
	return s.pipe.Close()
}

func TestTheEndStopsWhatRuns(t *testing.T) {
	c := play(t, "stopped")
	synctest.Test(t, func(t *testing.T) {
		c.calls = make(chan call, 16)
		var used *pipe
		client, err := New(Config{Token: func() (string, error) { return token, nil }, dial: func(ctx context.Context, url string) (socket, error) {
			s, err := c.dialed(ctx, url)
			used = s.(*pipe)
			return slowToClose{used}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- client.Run(ctx) }()
		told := make(chan error)
		e := engine(t, client)
		go func() {
			_, err := heard(t.Context(), e, request1)
			told <- err
		}()
		q := c.any(t)
		synctest.Wait()
		cancel()
		if err := <-told; err != error(errClosed) {
			t.Errorf("the turn: %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		select {
		case <-used.gone:
		default:
			t.Error("Run returned before its connection had ended")
		}
		if s := c.any(t); s.Method != "chat.abort" || s.param("runId") != q.param("idempotencyKey") {
			t.Errorf("last sent %v", s)
		}
		if s := client.Status(); s.Phase != Closed {
			t.Errorf("status %v", s)
		}
		if _, err := heard(t.Context(), e, request1); err != error(errClosed) {
			t.Errorf("a turn after the end: %v", err)
		}
		if err := client.Run(t.Context()); err == nil {
			t.Error("it ran twice")
		}
	})
}

func TestAMessageIsBounded(t *testing.T) {
	c := play(t, "turn")
	c.asked = func(n *conn, q call) {
		if q.Method != "chat.send" { // once it is connected again, it stops the run that was lost
			n.write(c.stops(q)...)
			return
		}
		n.write([]byte(`{"type":"event","event":"health","payload":"` + strings.Repeat("x", maxMessage) + `"}`))
	}
	e := engineOf(t, c)
	if _, err := heard(t.Context(), e, request1); err == nil || err.Error() != errLost.words {
		t.Errorf("%v", err)
	}
	until(t, e.client, "connected again", func(s Status) bool { return s.Phase == Connected && c.connections() == 2 })
}

func TestWhatIsNoFrameIsDropped(t *testing.T) {
	c := play(t, "turn")
	c.asked = func(n *conn, q call) {
		n.write([]byte(`this is not json`), []byte(`[]`), []byte(`{"type":7,"event":["agent"]}`), []byte(`{"type":"event","event":"agent","payload":"x"}`))
		n.write(c.answers(q)...)
	}
	if _, err := heard(t.Context(), engineOf(t, c), request1); err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "ws://127.0.0.1:18789": true, "ws://localhost:1": true, "ws://[::1]:1": true, "wss://claw.example": true, "wss://claw.example/ws": true,
		"ws://claw.example": false, "ws://10.0.0.1:18789": false, "http://127.0.0.1": false, "127.0.0.1:18789": false, "ws://": false,
		"wss://me:secret@claw.example": false, "wss://claw.example?token=secret": false, "wss://claw.example#secret": false, "ws://%zzsecret": false,
	} {
		_, err := New(Config{URL: address, Token: func() (string, error) { return "", nil }})
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a client without a token was made")
	}
	for address, local := range map[string]bool{"": true, "ws://127.0.0.1:1": true, "wss://claw.example": false, "%": false} {
		if Local(address) != local {
			t.Errorf("Local(%q) is %v", address, !local)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	c := play(t, "turn")
	address := c.listen(t)
	once := func() {
		client, err := New(Config{URL: address, Token: func() (string, error) { return token, nil }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- client.Run(ctx) }()
		if _, err := heard(t.Context(), engine(t, client), request1); err != nil {
			t.Error(err)
		}
		c.hangUp() // so that the server's side ends too
		cancel()
		<-ended
	}
	once()
	before := runtime.NumGoroutine()
	for range 5 {
		once()
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

// The token would go along to wherever it led.
func TestNoRedirectIsFollowed(t *testing.T) {
	c := play(t, "hello-v4")
	address := c.listen(t)
	s := httptest.NewServer(http.RedirectHandler("http"+strings.TrimPrefix(address, "ws"), http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	client := started(t, Config{URL: "ws" + strings.TrimPrefix(s.URL, "http")})
	status := until(t, client, "settled", in(Connected, Waiting))
	if n := c.connections(); n != 0 || status.Phase != Waiting {
		t.Errorf("%d connections, %v", n, status)
	}
}
