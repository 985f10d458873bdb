package openclaw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A listener asks for the right to read and for what tools do, for nothing else, and hears every frame as it was sent.
func TestAListenerHearsWhatWasRecorded(t *testing.T) {
	c := play(t, "observed-tools")
	frames := received(t, "observed-tools")[2:] // behind challenge and hello
	c.asked = func(n *conn, _ call) {
		n.write(frames...)
		n.end(1000)
	}
	var dials atomic.Int32
	l, err := Listen(t.Context(), ListenConfig{URL: c.listen(t), Token: token, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i, want := range frames {
		got, err := l.Next(t.Context())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("frame %d of %d: %.200s, %v", i, len(frames), got, err)
		}
	}
	if _, err := l.Next(t.Context()); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if q := c.any(t); q.Method != "sessions.subscribe" || dials.Load() != 1 {
		t.Errorf("it asked for %+v over %d connections of ours", q, dials.Load())
	}
	got, err := json.Marshal(c.hellos[0].Params)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"auth":{"token":"` + token + `"},"caps":[],"client":{"id":"gateway-client","mode":"backend","platform":"linux","version":"vela"},` +
		`"maxProtocol":4,"minProtocol":3,"role":"operator","scopes":["operator.read"]}`
	if string(got) != want {
		t.Errorf("it connects with\n%s\nwant\n%s", got, want)
	}
	select {
	case q := <-c.calls:
		t.Errorf("it also asked for %s", q.Method)
	default:
	}
}

func TestAListenerThatIsRefused(t *testing.T) {
	for name, want := range map[string]*failure{
		"refused-token": errToken, "refused-unpaired": errPairing, "hello-no-rights": errNoReading,
	} {
		_, err := Listen(t.Context(), ListenConfig{URL: play(t, name).listen(t), Token: token})
		var f *failure
		if !errors.As(err, &f) || f.words != want.words || !f.Refused() {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), token) {
			t.Errorf("it tells the token: %v", err)
		}
	}
	for _, cfg := range []ListenConfig{{URL: "ws://127.0.0.1:1"}, {URL: "ws://example.org", Token: token}, {URL: "wss://x?token=" + token, Token: token}} {
		_, err := Listen(t.Context(), cfg)
		var f *failure
		if !errors.As(err, &f) || !f.Refused() || strings.Contains(err.Error(), token) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := Listen(t.Context(), ListenConfig{URL: "ws://127.0.0.1:1", Token: token}); err == nil || err.Error() != errSilent.words {
		t.Errorf("nobody there: %v", err)
	}
}

// OpenClaw says something at least every half minute. One that does not is gone.
func TestAListenerNoticesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := play(t, "hello-v4")
		c.asked = func(n *conn, _ call) { n.tick(time.Hour) }
		l, err := Listen(t.Context(), ListenConfig{URL: DefaultURL, Token: token, dial: c.dialed})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		begin, heard := time.Now(), 0
		for err == nil {
			heard++
			_, err = l.Next(t.Context())
		}
		var f *failure
		if took := time.Since(begin); heard < 120 || took < time.Hour || took > time.Hour+2*defaultTick+time.Second || !errors.As(err, &f) || f.Refused() {
			t.Errorf("after %d frames in %v: %v", heard, took, err)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errGone)
		if _, err := l.Next(ended); !errors.Is(err, errGone) {
			t.Errorf("a context that is done: %v", err)
		}
	})
}
