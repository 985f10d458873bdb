package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vela/gateway/feed"
	"vela/protocol/signal"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // the example of the specification's own libraries

func click(id string) feed.Signal {
	r := signal.Raw{ID: id, Type: "user.click", Timestamp: 1767225600000, Source: "session:1", Payload: []byte(`{"target":"harbour"}`)}
	return feed.Signal{Raw: r, Text: r.Append(nil)}
}

// receiver answers requests as it is told to, and remembers them.
type receiver struct {
	answer func(n int, r *http.Request) (*http.Response, error) // n counts from 1; nil: 200

	mu   sync.Mutex
	got  []string // the ids
	at   []time.Time
	most int // at once
	now  int
}

// RoundTrip implements [http.RoundTripper].
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.got, r.at = append(r.got, req.Header.Get("webhook-id")), append(r.at, time.Now())
	n := len(r.got)
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now--
	}()
	if r.answer == nil {
		return status(200, ""), nil
	}
	return r.answer(n, req)
}

func (r *receiver) ids() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.got, " ")
}

func status(code int, retryAfter string) *http.Response {
	h := http.Header{}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader("thanks"))}
}

// told runs a webhook whose requests go to r, hands it to use, and stops it.
func told(t *testing.T, r *receiver, use func(f *feed.Feed)) (counted func(string) float64, log string) {
	t.Helper()
	var lines bytes.Buffer
	registry := prometheus.NewRegistry()
	w, err := New(Config{
		URL: "https://host.example/a-path-that-is-a-key", Secret: secret, Client: &http.Client{Transport: r},
		Metrics: NewMetrics(registry), Log: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var f feed.Feed
	ctx, stop := context.WithCancel(t.Context())
	ready, over := make(chan struct{}), make(chan struct{})
	go func() { defer close(over); w.Run(ctx, &f, func() { close(ready) }) }()
	<-ready
	use(&f)
	stop()
	<-over
	if f.Followed() {
		t.Error("the webhook still follows")
	}
	if strings.Contains(lines.String(), "a-path-that-is-a-key") || strings.Contains(lines.String(), "MfKQ") {
		t.Errorf("the log holds a key: %s", lines.String())
	}
	return func(name string) float64 { return count(t, registry, name) }, lines.String()
}

func count(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestSignalsAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(_ int, req *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(req.Body)
			id, at := req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp")
			key, _ := parseSecret(secret)
			if want := string(click(id).Text); err != nil || string(body) != want || req.Method != http.MethodPost ||
				req.Header.Get("Content-Type") != "application/json" || at != strconv.FormatInt(time.Now().Unix(), 10) ||
				req.Header.Get("webhook-signature") != sign(key, id, at, body) || req.URL.String() != "https://host.example/a-path-that-is-a-key" {
				t.Errorf("%s %s with %v and %s: %v", req.Method, req.URL, req.Header, body, err)
			}
			time.Sleep(time.Second) // others wait meanwhile
			return status(204, ""), nil
		}}
		counted, _ := told(t, r, func(f *feed.Feed) {
			for i := range 20 {
				f.Offer(click(fmt.Sprint("s", i)))
			}
			f.Offer(feed.Signal{Raw: signal.Raw{ID: "other", Type: "tool_call"}})
			time.Sleep(time.Minute)
		})
		if got := r.ids(); got != "s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 s13 s14 s15 s16 s17 s18 s19" || r.most != 1 {
			t.Errorf("told of %s, %d at once", got, r.most)
		}
		if counted("vela_webhook_delivered_total") != 20 {
			t.Error(counted("vela_webhook_delivered_total"))
		}
	})
}

// What fails is tried again under the same id and in the order of all, with growing pauses; it is said once.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	for name, fails := range map[string]func() (*http.Response, error){
		"an error of the network": func() (*http.Response, error) {
			return nil, &url.Error{Op: "Post", URL: "x", Err: errors.New("refused")}
		},
		"a server that is not well":  func() (*http.Response, error) { return status(500, ""), nil },
		"a server that says not now": func() (*http.Response, error) { return status(429, "not a number"), nil },
		"a redirect": func() (*http.Response, error) {
			r := status(302, "")
			r.Header.Set("Location", "https://elsewhere.example/")
			return r, nil
		},
		"a mistake of ours, it says": func() (*http.Response, error) { return status(400, ""), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &receiver{answer: func(n int, _ *http.Request) (*http.Response, error) {
					if n <= 5 {
						return fails()
					}
					return status(200, ""), nil
				}}
				counted, log := told(t, r, func(f *feed.Feed) {
					f.Offer(click("a"))
					f.Offer(click("b"))
					time.Sleep(time.Hour)
				})
				if got := r.ids(); got != "a a a a a a b" {
					t.Errorf("told of %s", got)
				}
				for i := range 5 {
					long := firstPause << i
					if d := r.at[i+1].Sub(r.at[i]); d < long/2 || d > long {
						t.Errorf("pause %d is %v, not about %v", i+1, d, long)
					}
				}
				if counted("vela_webhook_delivered_total") != 2 || counted("vela_webhook_retries_total") != 5 || counted("vela_webhook_failed_total") != 0 {
					t.Error("not counted as it was")
				}
				if strings.Count(log, "cannot be told") != 1 || strings.Count(log, "is told again") != 1 {
					t.Errorf("it is said:\n%s", log)
				}
			})
		})
	}
}

func TestWhatFailsForGoodIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(_ int, req *http.Request) (*http.Response, error) {
			if req.Header.Get("webhook-id") == "bad" {
				return status(400, ""), nil
			}
			return status(200, ""), nil
		}}
		counted, log := told(t, r, func(f *feed.Feed) {
			f.Offer(click("bad"))
			f.Offer(click("good"))
			time.Sleep(time.Hour)
		})
		if r.ids() != strings.Repeat("bad ", tries)+"good" || counted("vela_webhook_failed_total") != 1 || counted("vela_webhook_delivered_total") != 1 {
			t.Errorf("told of %s", r.ids())
		}
		if whole := r.at[tries-1].Sub(r.at[0]); whole > 8*time.Minute || strings.Count(log, "given up") != 1 {
			t.Errorf("given up after %v:\n%s", whole, log)
		}
	})
}

func TestAReceiverSaysHowLongToWait(t *testing.T) {
	for _, x := range []struct {
		says        string
		least, most time.Duration
	}{
		{"20", 20 * time.Second, 20 * time.Second},
		{"Sat, 01 Jan 2000 00:00:40 GMT", 40 * time.Second, 40 * time.Second},
		{"0", time.Second / 2, time.Second},
		{"Fri, 31 Dec 1999 00:00:00 GMT", time.Second / 2, time.Second},
		{"999999", mostPause, mostPause},
		{"-5", time.Second / 2, time.Second},
		{"99999999999999999999", time.Second / 2, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) { // whose clock begins with the year 2000
			r := &receiver{answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return status(503, x.says), nil
				}
				return status(200, ""), nil
			}}
			told(t, r, func(f *feed.Feed) { f.Offer(click("a")); time.Sleep(time.Hour) })
			if d := r.at[1].Sub(r.at[0]); d < x.least || d > x.most {
				t.Errorf("%q: tried again after %v", x.says, d)
			}
		})
	}
}

// A receiver that never answers costs one request's time at a time.
func TestAReceiverThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(n int, req *http.Request) (*http.Response, error) {
			if n == 1 {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return status(200, ""), nil
		}}
		told(t, r, func(f *feed.Feed) { f.Offer(click("a")); time.Sleep(time.Hour) })
		if d := r.at[1].Sub(r.at[0]); d < timeout+firstPause/2 || d > timeout+firstPause {
			t.Errorf("tried again after %v", d)
		}
	})
}

func TestTheOldestIsDroppedWhenTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				time.Sleep(10 * time.Second)
			}
			return status(200, ""), nil
		}}
		counted, log := told(t, r, func(f *feed.Feed) {
			for i := range maxWaiting + 51 {
				f.Offer(click(fmt.Sprint(i)))
				if i == 0 {
					synctest.Wait() // it is on its way
				}
			}
			time.Sleep(time.Hour)
		})
		ids := strings.Fields(r.ids())
		if len(ids) != maxWaiting+1 || ids[0] != "0" || ids[1] != "51" || ids[len(ids)-1] != fmt.Sprint(maxWaiting+50) {
			t.Errorf("%d were told of: %s, %s, …", len(ids), ids[0], ids[1])
		}
		if counted("vela_webhook_dropped_total") != 50 || strings.Count(log, "too slow") != 1 {
			t.Errorf("%v dropped:\n%s", counted("vela_webhook_dropped_total"), log)
		}
	})
}

func TestOneThatIsGoneIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(int, *http.Request) (*http.Response, error) { return status(410, ""), nil }}
		_, log := told(t, r, func(f *feed.Feed) {
			f.Offer(click("a"))
			time.Sleep(time.Hour)
			f.Offer(click("b"))
			time.Sleep(time.Hour)
		})
		if r.ids() != "a" || strings.Count(log, "is gone") != 1 {
			t.Errorf("told of %s:\n%s", r.ids(), log)
		}
	})
}

// When the gateway stops, what waits is tried once more, the one under way first, and nothing takes longer than a second.
func TestTheEnd(t *testing.T) {
	for name, x := range map[string]struct {
		answer func(n int, req *http.Request) (*http.Response, error)
		want   string
		lost   float64
	}{
		"a good receiver": {func(n int, req *http.Request) (*http.Response, error) {
			if n == 1 {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return status(200, ""), nil
		}, "a a b c", 0},
		"one that is away": {func(int, *http.Request) (*http.Response, error) { return status(500, ""), nil }, "a a b c", 3},
		"one that hangs": {func(_ int, req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}, "a a", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &receiver{answer: x.answer}
				var stopped time.Time
				counted, log := told(t, r, func(f *feed.Feed) {
					for _, id := range []string{"a", "b", "c"} {
						f.Offer(click(id))
					}
					synctest.Wait()
					stopped = time.Now()
				})
				if r.ids() != x.want || counted("vela_webhook_dropped_total") != x.lost || time.Since(stopped) > lastWords {
					t.Errorf("told of %s, %v lost, in %v", r.ids(), counted("vela_webhook_dropped_total"), time.Since(stopped))
				}
				if strings.Contains(log, "stops before") != (x.lost > 0) {
					t.Errorf("it is said:\n%s", log)
				}
			})
		})
	}
}

func TestWhatCannotBeAWebhook(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no address":            {URL: "", Secret: secret},
		"another scheme":        {URL: "ftp://host/x", Secret: secret},
		"no host":               {URL: "https:///x", Secret: secret},
		"a password":            {URL: "https://me:hidden@host/x", Secret: secret},
		"no address at all":     {URL: "https://ho st/%zz-hidden", Secret: secret},
		"no secret":             {URL: "https://host/x"},
		"a secret not marked":   {URL: "https://host/x", Secret: strings.TrimPrefix(secret, "whsec_")},
		"a secret too short":    {URL: "https://host/x", Secret: "whsec_aGlkZGVu"},
		"a secret no base64":    {URL: "https://host/x", Secret: "whsec_hidden hidden hidden hidden hidden"},
		"a secret too long":     {URL: "https://host/x", Secret: "whsec_" + strings.Repeat("hidden", 20)},
		"a type that is empty":  {URL: "https://host/x", Secret: secret, Types: []string{""}},
		"a secret of two lines": {URL: "https://host/x", Secret: secret + "\nhidden"},
	} {
		if w, err := New(cfg); err == nil || w != nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The values are those of the specification's example for its signed content, made with another implementation (openssl).
func TestSign(t *testing.T) {
	key, err := parseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if got := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

func TestMessageIDs(t *testing.T) {
	for id, stays := range map[string]bool{
		"0d4c8b62-6a0e-4f0e-8a57-1b1f5f6f2f11": true, "sig_1": true,
		"a.1614265330": false, "a\r\nX-Other: b": false, "é": false, "": false,
	} {
		if got := messageID(id); stays != (got == id) || !stays && len(got) != 64 {
			t.Errorf("%q becomes %q", id, got)
		}
	}
	if messageID("a.b") == messageID("a.c") || messageID("a.b") != messageID("a.b") {
		t.Error("it is not the signal's own")
	}
}

// bodies counts the answers that were not read to their end and closed, as a connection must be to be used again.
type bodies struct {
	*http.Transport
	open atomic.Int32
}

// RoundTrip implements [http.RoundTripper].
func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.Transport.RoundTrip(r)
	if err == nil {
		b.open.Add(1)
		resp.Body = &body{ReadCloser: resp.Body, all: b}
	}
	return resp, err
}

type body struct {
	io.ReadCloser
	all  *bodies
	read bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = err == io.EOF
	return n, err
}

func (b *body) Close() error {
	if b.read {
		b.all.open.Add(-1)
	}
	return b.ReadCloser.Close()
}

// Over real sockets: redirects are not followed, connections are left so that they can be used again, and none of them stays.
func TestRealRequests(t *testing.T) {
	before := runtime.NumGoroutine()
	var mu sync.Mutex
	var paths []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.Path)
		if r.URL.Path == "/hook" && len(paths) == 1 {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
		_, _ = io.WriteString(w, "thanks")
	}))
	registry := prometheus.NewRegistry()
	w, err := New(Config{URL: s.URL + "/hook", Secret: secret, Metrics: NewMetrics(registry)})
	if err != nil {
		t.Fatal(err)
	}
	answers := &bodies{Transport: w.client.Transport.(*http.Transport)}
	w.client.Transport = answers
	var f feed.Feed
	ctx, stop := context.WithCancel(t.Context())
	ready, over := make(chan struct{}), make(chan struct{})
	go func() { defer close(over); w.Run(ctx, &f, func() { close(ready) }) }()
	<-ready
	for i := range 3 {
		f.Offer(click(fmt.Sprint(i)))
	}
	for began := time.Now(); count(t, registry, "vela_webhook_delivered_total") < 3; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("not told")
		}
	}
	stop()
	<-over
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(paths) != "[/hook /hook /hook /hook]" {
		t.Errorf("asked for %q", paths)
	}
	if n := answers.open.Load(); n != 0 {
		t.Errorf("%d answers were not read to their end and closed", n)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
