package source

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nhooyr.io/websocket"
)

func TestAWebSocketOfSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve("x.test", n.socket(func(ctx context.Context, c *websocket.Conn, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("it shows %q", got)
			}
			say(t, ctx, c, `{"meta":"scenarios","available":["a"]}`, `{"type":"deploy.done","payload":{"ok":true}}`, `hello`)
			if err := c.Write(ctx, websocket.MessageBinary, []byte(`{"type":"binary"}`)); err != nil {
				t.Error(err)
			}
			say(t, ctx, c, "{\"type\":\"x\",\"payload\":{\"a\":\"\xff\"}}")
			listen(ctx, c)
		}))
		w, id := n.added("ws://x.test/feed", "secret")
		want := []string{
			`deploy.done {"ok":true}`, `error {"code":"not_json","message":"hello","severity":"warning"}`, `binary {}`, `x {"a":"` + "\ufffd" + `"}`,
		}
		got := w.heard(id, 4)
		for i := range got {
			if i == 1 {
				if !strings.Contains(got[i], `"not_json"`) || !strings.Contains(got[i], `"warning"`) {
					t.Errorf("what is no signal is %s", got[i])
				}
				got[i] = want[i]
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("it said %q, want %q", got, want)
		}
		if got, want := w.after(time.Second, id), "connected 2 of its messages were no signals, or not in UTF-8. The log of signals shows them."; got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
		if got := w.after(time.Minute, id); got != "connected" {
			t.Errorf("a minute later it is %q", got)
		}
	})
}

// How a source is after what is at its other end does something.
func TestHowAWebSocketEnds(t *testing.T) {
	const again = " It is tried again."
	for name, x := range map[string]struct {
		talk  func(ctx context.Context, c *websocket.Conn, r *http.Request)
		after time.Duration
		want  string
	}{
		"well": {
			func(_ context.Context, c *websocket.Conn, _ *http.Request) {
				_ = c.Close(websocket.StatusNormalClosure, "")
			}, time.Second, "disconnected",
		},
		"because it restarts": {
			func(_ context.Context, c *websocket.Conn, _ *http.Request) {
				_ = c.Close(websocket.StatusServiceRestart, "")
			},
			500 * time.Millisecond, "connecting The connection broke; it is tried again.",
		},
		"without a word": {
			func(context.Context, *websocket.Conn, *http.Request) {}, 500 * time.Millisecond, "connecting The connection broke; it is tried again.",
		},
		"it restarts every second": {
			func(ctx context.Context, _ *websocket.Conn, _ *http.Request) { time.Sleep(time.Second) }, 10500 * time.Millisecond,
			"connected The connection broke 5 times in a row within 10 seconds of its beginning. Does the program at its other end restart?",
		},
		"a policy": {
			func(_ context.Context, c *websocket.Conn, _ *http.Request) {
				_ = c.Close(websocket.StatusPolicyViolation, "no, 10.0.0.1")
			},
			time.Second, "error The source closed the connection: it does not allow it. Does it want a key?",
		},
		"it sends what is too long": {
			func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
				_ = c.Write(ctx, websocket.MessageText, []byte(strings.Repeat("x", maxMessage+1)))
				listen(ctx, c)
			},
			500 * time.Millisecond, "connecting " + errLong.words + again,
		},
		"it stalls in the middle of a message": {
			func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
				w, err := c.Writer(ctx, websocket.MessageText)
				if err == nil {
					_, _ = w.Write([]byte(strings.Repeat(" ", 8<<10))) // a frame that is not the last, and more than waits in a buffer
				}
				listen(ctx, c)
			},
			wholeTime + 500*time.Millisecond, "connecting " + errStalled.words + again,
		},
		"it does not answer pings": {
			func(ctx context.Context, c *websocket.Conn, _ *http.Request) { <-ctx.Done() },
			pingEvery + 5500*time.Millisecond, "connecting " + errSilent.words + again, // in memory not even the ping gets through
		},
		"it is only silent": {
			func(ctx context.Context, c *websocket.Conn, _ *http.Request) { listen(ctx, c) }, 24 * time.Hour, "connected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("x.test", n.socket(x.talk))
				w, id := n.added("ws://x.test/", "")
				if got := w.after(x.after, id); got != x.want {
					t.Errorf("after %v it is %q, want %q", x.after, got, x.want)
				}
			})
		})
	}
}

func TestAnswersThatAreNoWebSocket(t *testing.T) {
	for status, want := range map[int]string{
		401: "error The source does not accept the key, or wants one. Set the right key.",
		403: "error The source does not accept the key, or wants one. Set the right key.",
		404: "error There is nothing at this address (404). Is its path right?",
		200: "error The source answers with something else than signals (OK).",
		503: "connecting The source answers with an error for now (Service Unavailable). It is tried again.",
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.serve("x.test", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			w, id := n.added("ws://x.test/", "")
			if got := w.after(500*time.Millisecond, id); got != want {
				t.Errorf("%d: it is %q, want %q", status, got, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w, id := newNetwork(t).added("ws://x.test/", "")
		if got := w.after(500*time.Millisecond, id); got != "connecting The source cannot be reached yet; it is tried again." {
			t.Errorf("nobody there: %q", got)
		}
		if got := w.after(time.Hour, id); got != "error The source cannot be reached. Is it running, and is the address right?" {
			t.Errorf("nobody there for an hour: %q", got)
		}
	})
}
