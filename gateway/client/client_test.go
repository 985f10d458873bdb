package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"vela/gateway/client"
	"vela/gateway/closedport"
	"vela/protocol"
)

// puppet is a server whose every connection is played by a function of the test.
func puppet(t *testing.T, play func(ctx context.Context, ws *websocket.Conn, r *http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"vela.v1"}, InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		play(r.Context(), ws, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func write(ctx context.Context, ws *websocket.Conn, texts ...string) {
	for _, text := range texts {
		_ = ws.Write(ctx, websocket.MessageText, []byte(text))
	}
}

const greeting = `{"type":"session.ready","payload":{"sessionId":"s1"}}`

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, address string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(within(t), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

func TestReadyThenClose(t *testing.T) {
	asked := make(chan *http.Request, 1)
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) {
		asked <- r
		write(ctx, ws, greeting, `{"type":"session.state","payload":{"value":"idle"}}`)
		_, _, _ = ws.Read(ctx)
	})
	c := dial(t, url, client.Options{Turns: "agent", Subprotocols: []string{"vela.v1"}, Header: http.Header{"Origin": {"http://page"}}})
	for range 2 { // the second time from memory
		if id, err := c.Ready(within(t)); id != "s1" || err != nil {
			t.Errorf("id %q and the error %v", id, err)
		}
	}
	if c.SessionID() != "s1" || c.State() != protocol.Idle || c.Subprotocol() != "vela.v1" {
		t.Errorf("session %q, state %q, subprotocol %q", c.SessionID(), c.State(), c.Subprotocol())
	}
	r := <-asked
	if r.URL.Path != "/ws" || r.URL.Query().Get("turns") != "agent" || r.Header.Get("Origin") != "http://page" {
		t.Errorf("asked for %s from %s", r.URL, r.Header.Get("Origin"))
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	_, err := c.Receive(within(t))
	checkClosed(t, err, client.CloseNormal, "the gateway closed the connection with 1000")
}

func TestSend(t *testing.T) {
	type got struct {
		kind websocket.MessageType
		text string
	}
	received := make(chan got, 3)
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) {
		for range 3 {
			kind, b, _ := ws.Read(ctx)
			received <- got{kind, string(b)}
		}
	})
	c := dial(t, url, client.Options{})
	for _, err := range []error{
		c.Send(within(t), protocol.InputAudioCommit{}), c.SendRaw(within(t), []byte("{x")), c.SendBinary(within(t), []byte{0, 255}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, want := range []got{
		{websocket.MessageText, `{"type":"input_audio.commit","payload":{}}`}, {websocket.MessageText, "{x"}, {websocket.MessageBinary, "\x00\xff"},
	} {
		if g := <-received; g != want {
			t.Errorf("got %v, want %v", g, want)
		}
	}
}

func TestReceivePassesOverWhatItDoesNotKnow(t *testing.T) {
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) {
		write(ctx, ws, `{"type":"turn.metrics","payload":{}}`, `{"type":"transcript.final","payload":{"text":"yes","itemId":"i"}}`,
			`{"type":"transcript.final","payload":{"text":1}}`, `{"type":"new"}`, `{"type":"session.start","payload":{}}`, `hello`)
		_ = ws.Write(ctx, websocket.MessageBinary, []byte("12345"))
		write(ctx, ws, `{"type":"response.completed","payload":{}}`)
		_, _, _ = ws.Read(ctx)
	})
	c := dial(t, url, client.Options{})
	if m, err := c.Receive(within(t)); err != nil || m != (protocol.TranscriptFinal{Text: "yes"}) {
		t.Errorf("got %#v and the error %v", m, err)
	}
	for _, says := range []string{`"text"`, `"payload"`, `is sent by the client`, "not JSON", "binary message of 5 bytes"} {
		if m, err := c.Receive(within(t)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %#v and the error %v, want one that says %q", m, err, says)
		}
	}
	if m, err := c.Receive(within(t)); err != nil || m != (protocol.ResponseCompleted{}) {
		t.Errorf("got %#v and the error %v", m, err)
	}
}

func TestReadyEndsWithTheGatewaysError(t *testing.T) {
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) {
		write(ctx, ws, `{"type":"error","payload":{"code":"session_limit","message":"Full.","retryable":true}}`)
		_ = ws.Close(4004, "no free session")
	})
	c := dial(t, url, client.Options{})
	_, err := c.Ready(within(t))
	var told *client.EventError
	if !errors.As(err, &told) || told.Event.Code != protocol.CodeSessionLimit || err.Error() != "the gateway says session_limit: Full." {
		t.Errorf("the error is %v", err)
	}
	_, err = c.Ready(within(t))
	checkClosed(t, err, protocol.CloseSessionLimit, "the gateway closed the connection with 4004: no free session")
}

func TestCloseErrors(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(ws *websocket.Conn)
		code protocol.CloseCode
		says string
	}{
		"with a reason":  {func(ws *websocket.Conn) { _ = ws.Close(1001, "bye") }, protocol.CloseGoingAway, "the gateway closed the connection with 1001: bye"},
		"without reason": {func(ws *websocket.Conn) { _ = ws.Close(1009, "") }, protocol.CloseTooBig, "the gateway closed the connection with 1009"},
		"without code":   {func(ws *websocket.Conn) { _ = ws.Close(websocket.StatusNoStatusRcvd, "") }, client.CloseNoStatus, "the gateway closed the connection with 1005"},
		"cut":            {func(ws *websocket.Conn) { _ = ws.CloseNow() }, client.CloseAbnormal, "the connection was lost: the gateway is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			url := puppet(t, func(_ context.Context, ws *websocket.Conn, _ *http.Request) { c.end(ws) })
			_, err := dial(t, url, client.Options{}).Receive(within(t))
			checkClosed(t, err, c.code, c.says)
		})
	}
}

func checkClosed(t *testing.T, err error, code protocol.CloseCode, says string) {
	t.Helper()
	var closed *client.CloseError
	if !errors.As(err, &closed) || closed.Code != code || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("the error is %v, want %d and %q", err, code, says)
	}
}

func TestDropWakesTheReader(t *testing.T) {
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) {
		write(ctx, ws, greeting)
		_, _, _ = ws.Read(ctx)
	})
	c := dial(t, url, client.Options{})
	if _, err := c.Receive(within(t)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := c.Receive(within(t))
		ended <- err
	}()
	c.Drop()
	checkClosed(t, <-ended, client.CloseAbnormal, "the connection was lost: ")
	if err := c.Send(within(t), protocol.SessionStart{}); err == nil {
		t.Error("sent on a connection that was cut")
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) { _, _, _ = ws.Read(ctx) })
	c := dial(t, url, client.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := c.Receive(ctx); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

func TestDialSaysWhatToDo(t *testing.T) {
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for name, c := range map[string]struct{ address, says string }{
		"nobody there": {closedport.New(t), "no gateway listens at HOST: start one with `vela serve`, or give --url"},
		"403":          {answer(403, `{"message":"Not from there."}`), "the gateway at HOST does not admit this client or its origin (403 Forbidden): Not from there."},
		"503":          {answer(503, "stopping\n"), "the gateway at HOST is stopping or full (503 Service Unavailable), try again later: stopping"},
		"404":          {answer(404, "<html>not here"), "what listens at HOST is no gateway (404 Not Found), check --url"},
		"200":          {answer(200, ""), "what listens at HOST is no gateway (200 OK), check --url"},
		"400":          {answer(400, strings.Repeat("x", 300)), "the gateway at HOST refused the connection (400 Bad Request)"},
		"no address":   {"ftp://HOST", "a gateway is not reached by ftp://"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Dial(within(t), c.address, client.Options{})
			host := strings.TrimPrefix(c.address, "http://")
			if want := strings.ReplaceAll(c.says, "HOST", host); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the error is\n%v\nwant\n%s", err, want)
			}
		})
	}
}

// A refused handshake leaves no connection behind.
func TestDialLeavesNothing(t *testing.T) {
	closed := make(chan struct{})
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	s.Start()
	defer s.Close()
	if _, err := client.Dial(within(t), s.URL, client.Options{}); err == nil {
		t.Fatal("connected")
	}
	select {
	case <-closed:
	case <-within(t).Done():
		t.Error("the connection is still there")
	}
}

func TestDialErrorCauses(t *testing.T) {
	unknown := &client.DialError{Address: "nowhere:80", Err: &net.DNSError{Err: "no such host"}}
	if got := unknown.Error(); got != "no host is found for nowhere:80 (no such host): check --url" {
		t.Error(got)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	own := httptest.NewTLSServer(http.NotFoundHandler())
	defer own.Close()
	own.Config.ErrorLog = log.New(io.Discard, "", 0)
	for address, says := range map[string]string{
		"https://" + plain.Listener.Addr().String(): plain.Listener.Addr().String() + " speaks http, not https: write --url http://" + plain.Listener.Addr().String(),
		own.URL: "the certificate of " + own.Listener.Addr().String() + " is not known here: if the gateway has made it itself, with --tls self, set SSL_CERT_FILE to its self.crt",
	} {
		if _, err := client.Dial(within(t), address, client.Options{}); err == nil || err.Error() != says {
			t.Errorf("%s: %v", address, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := client.Dial(ctx, closedport.New(t), client.Options{}); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

func TestSayOverASocket(t *testing.T) {
	url := puppet(t, func(ctx context.Context, ws *websocket.Conn, r *http.Request) {
		write(ctx, ws, greeting, `{"type":"session.state","payload":{"value":"idle"}}`)
		for {
			_, b, err := ws.Read(ctx)
			if err != nil {
				return
			}
			if strings.Contains(string(b), "commit") {
				write(ctx, ws, `{"type":"transcript.final","payload":{"text":"hi"}}`, `{"type":"session.state","payload":{"value":"idle"}}`)
			}
		}
	})
	c := dial(t, url, client.Options{})
	for range 2 {
		r, err := c.Say(within(t), make([]int16, 16000), client.SayOptions{Fast: true})
		if err != nil || r != (client.Reply{Transcript: "hi"}) {
			t.Errorf("got %+v and the error %v", r, err)
		}
	}
}
