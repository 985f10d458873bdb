package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// page serves events at /events, and nothing else: no list of models.
func page(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	}
}

// A stream that ends is taken up again, behind the last event whose place is known.
func TestAnEventStreamIsTakenUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var places []string
		n.serve("x.test", page(func(w http.ResponseWriter, r *http.Request) {
			places = append(places, strings.Join(r.Header["Last-Event-Id"], ","))
			if r.Header.Get("Authorization") != "Bearer secret" || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
				t.Errorf("it asks with %v", r.Header)
			}
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			i := len(places)
			write(w, fmt.Sprintf(": hello\n\nid: p%d\ndata: {\"type\":\"x%d\"}\n\ndata: {\"type\":\"y\xff\"}\n\n", i, i))
		}))
		w, id := n.added("http://x.test/events", "secret")
		got := w.heard(id, 6)[:6]
		if want := []string{"x1 {}", "y\ufffd {}", "x2 {}", "y\ufffd {}", "x3 {}", "y\ufffd {}"}; !slices.Equal(got, want) {
			t.Errorf("it said %q", got)
		}
		w.end()
		if want := []string{"", "p1", "p2"}; !slices.Equal(places[:3], want) {
			t.Errorf("it was asked behind %q, want %q", places, want)
		}
	})
}

func TestLinesOfJSONEnd(t *testing.T) {
	for _, kind := range []string{"application/x-ndjson", "application/json", "text/plain"} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.serve("x.test", page(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				write(w, `{"type":"a"}`+"\n"+`{"type":"b"}`)
			}))
			w, id := n.added("http://x.test/events", "")
			if got := w.after(time.Second, id); got != "disconnected" || !slices.Equal(w.of(id), []string{"a {}", "b {}"}) {
				t.Errorf("%s: it is %q after %q", kind, got, w.of(id))
			}
		})
	}
}

func TestHowAnEventStreamEnds(t *testing.T) {
	const again = " It is tried again."
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, text)
	}
	forever := func(w http.ResponseWriter, r *http.Request, text string, every time.Duration) {
		for r.Context().Err() == nil {
			write(w, text)
			pause(r.Context(), every)
		}
	}
	for name, x := range map[string]struct {
		handler http.HandlerFunc
		after   time.Duration
		want    string
	}{
		"nothing more to say": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, time.Second, "error The source has nothing more to say (204).",
		},
		"a page": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }, time.Second,
			"error There is a web page at this address, and no signals. Is its path right?",
		},
		"no key": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, time.Second, "error The source does not accept the key, or wants one. Set the right key.",
		},
		"an error for now": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, 500 * time.Millisecond, "connecting The source answers with an error for now (Bad Gateway)." + again,
		},
		"an answer that does not come": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, answerTime + openAITime + 500*time.Millisecond,
			"connecting The source cannot be reached yet; it is tried again.",
		},
		"a line that is too long": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, "data: ")
				forever(w, r, strings.Repeat("x", 64<<10), time.Millisecond)
			}, 500 * time.Millisecond, "connecting " + errLong.words + again,
		},
		"it stalls in the middle of an event": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, "data: {\"type\":\"a\"}\n\ndata: {\"type\":")
				<-r.Context().Done()
			}, wholeTime + 500*time.Millisecond, "connecting " + errStalled.words + again,
		},
		"and when it ends no line of it": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, "data: {\"type\":\"a\"}\n")
				<-r.Context().Done()
			}, wholeTime + 500*time.Millisecond, "connecting " + errStalled.words + again,
		},
		"and when it sends a byte now and then": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, "data: ")
				forever(w, r, "x", time.Second)
			}, wholeTime + 500*time.Millisecond, "connecting " + errStalled.words + again,
		},
		"remarks are no events": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, ": hello\n")
				forever(w, r, ": still here\n", 15*time.Second)
			}, time.Hour, "connected",
		},
		"events that never leave a pause": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, "data: {\"type\":")
				forever(w, r, "\"a\"}\r\n\r\ndata: {\"type\":", time.Second)
			}, time.Hour, "connected",
		},
		"it is only silent": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, "data: {\"type\":\"a\"}\n\n")
				<-r.Context().Done()
			}, time.Hour, "connected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("x.test", page(x.handler))
				w, id := n.added("http://x.test/events", "")
				if got := w.after(x.after, id); got != x.want {
					t.Errorf("after %v it is %q, want %q", x.after, got, x.want)
				}
				if s := w.source(id); s.Protocol != SSE {
					t.Errorf("its protocol is %s", s.Protocol)
				}
			})
		})
	}
}

// Behind an empty line no event is open, however it came about and however it was read; and in the middle of one it is.
func FuzzWhole(f *testing.F) {
	f.Add("data: {}\n\n: x\ndata", uint8(3))
	f.Add("id: 1\r\n\r\ndata: \xff", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		text = strings.TrimRight(text, "\r") // the line feed that follows would belong to it
		for _, x := range []struct {
			end  string
			open bool
		}{{"\n\n", false}, {"\n\ndata: 1\n", true}, {"\n\n: remark\n", false}, {"\n\nda", true}} {
			w := whole{src: strings.NewReader(text + x.end), late: func() {}, events: true}
			p := make([]byte, int(size)+1)
			for {
				if _, err := w.Read(p); err != nil {
					break
				}
			}
			if open := w.timer != nil; open != x.open {
				t.Errorf("behind %q it is %v that an event is open", text+x.end, open)
			}
			w.rest()
		}
	})
}
