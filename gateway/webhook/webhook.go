// Package webhook tells one address of signals by HTTP: the way back to the application whose stage or session it is.
//
// Start at [New] and [Webhook.Run]. Each signal is one POST of its envelope as JSON, signed as Standard Webhooks 1.0.0 says
// (sign.go; https://www.standardwebhooks.com), one at a time, so that their order stays. A signal is delivered at least once:
// what is not answered with a 2xx is sent again, under the same webhook-id, with growing pauses (retry.go), until it is
// given up. What waits meanwhile is bounded: when it is full, the oldest goes, and is counted.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"vela/gateway/feed"
)

// Bounds of what waits to be delivered, and of one delivery.
const (
	maxWaiting      = 1024
	maxWaitingBytes = 8 << 20
	timeout         = 15 * time.Second // of one request, its answer included
	maxAnswer       = 64 << 10         // bytes that are read of it
	lastWords       = time.Second      // for what waits when the gateway stops
)

// Config is what a webhook is made of.
type Config struct {
	URL    string   // http:// or https://
	Secret string   // whsec_ and base64 of 24 to 64 bytes
	Types  []string // of signals that go out; a star at the end stands for anything; none: user.*

	Client  *http.Client // nil: one of its own. Redirects are not followed, whatever it says
	Metrics *Metrics     // nil counts nothing
	Log     *slog.Logger // nil discards
}

// Webhook tells one address. Make it with [New].
type Webhook struct {
	cfg    Config
	client http.Client
	key    []byte
	filter feed.Filter
	sub    *feed.Subscription // set by Run
	log    *slog.Logger

	// Owned by Run.
	away bool // it was said that deliveries fail
	full bool // it was said that signals are dropped
}

// New checks the configuration. Its errors name neither the secret nor more than the host of the address.
func New(cfg Config) (*Webhook, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("webhook: that is no address to post to: write it like https://example.org/hook")
	}
	if u.User != nil {
		return nil, errors.New("webhook: the address holds a name or a password: leave them out, every request is signed")
	}
	if len(cfg.Types) == 0 {
		cfg.Types = []string{"user.*"}
	}
	key, err := parseSecret(cfg.Secret)
	if err != nil {
		return nil, err
	}
	w := &Webhook{cfg: cfg, key: key, filter: feed.Filter{Types: cfg.Types}, log: cfg.Log}
	if err := w.filter.Check(); err != nil {
		return nil, fmt.Errorf("webhook: the types of signals: %w", err)
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.log = w.log.With("host", u.Host)
	if cfg.Client != nil {
		w.client = *cfg.Client
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxResponseHeaderBytes = maxAnswer
		w.client.Transport = t
	}
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return w, nil
}

// Run tells of every signal of the feed that it is for, from when it is called, until ctx is done; then what waits has one
// more second. ready, which may be nil, is called when nothing more is missed.
func (w *Webhook) Run(ctx context.Context, f *feed.Feed, ready func()) {
	w.sub = f.Subscribe(feed.Bounds{Signals: maxWaiting, Bytes: maxWaitingBytes}, nil)
	defer w.sub.Close()
	defer w.client.CloseIdleConnections()
	_ = w.sub.Add(w.filter) // New has checked it
	if ready != nil {
		ready()
	}
	for {
		g, missed, err := w.sub.Wait(ctx)
		if err != nil {
			break
		}
		w.missed(missed)
		if err := w.deliver(ctx, g); errors.Is(err, errGone) {
			w.log.Error("the webhook's address says that it is gone: nothing more is sent to it until the gateway is started again")
			return
		} else if ctx.Err() != nil && err != nil {
			w.leave(ctx, &g)
			return
		}
	}
	w.leave(ctx, nil)
}

// leave makes one more attempt for each that waits, the one that was interrupted first, in the order of all.
func (w *Webhook) leave(ctx context.Context, interrupted *feed.Signal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	lost := 0
	for {
		var g feed.Signal
		if interrupted != nil {
			g, interrupted = *interrupted, nil
		} else {
			next, missed, ok := w.sub.Next()
			if !ok {
				break
			}
			w.missed(missed)
			g = next
		}
		if ctx.Err() == nil && w.attempt(ctx, g).err == nil {
			w.cfg.Metrics.deliver()
			continue
		}
		lost++
		w.cfg.Metrics.drop(1)
	}
	if lost > 0 {
		w.log.Warn("the gateway stops before the webhook was told of everything", "signals", lost)
	}
}

// missed counts signals for which there was no room. It is said once.
func (w *Webhook) missed(n uint64) {
	if n == 0 {
		return
	}
	w.cfg.Metrics.drop(n)
	if !w.full {
		w.full = true
		w.log.Warn("the webhook is too slow: the oldest of what waits for it is dropped; vela_webhook_dropped_total counts how much")
	}
}

// deliver tells of one signal, as often as it takes. It returns nil once it was taken or given up, [errGone], or that ctx is
// done.
func (w *Webhook) deliver(ctx context.Context, g feed.Signal) error {
	for tried := 1; ; tried++ {
		a := w.attempt(ctx, g)
		w.cfg.Metrics.wait(w.sub.Waiting())
		switch {
		case a.err == nil:
			w.cfg.Metrics.deliver()
			w.back()
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(a.err, errGone):
			w.cfg.Metrics.fail()
			return errGone
		}
		w.cfg.Metrics.retry()
		w.lost(a.err)
		if tried == tries {
			w.cfg.Metrics.fail()
			w.log.Error("the webhook could not be told of a signal, which is given up", "type", g.Type, "tries", tries, "error", a.err)
			return nil
		}
		if !sleep(ctx, pause(tried, a.after)) {
			return context.Cause(ctx)
		}
	}
}

// lost and back say once that deliveries fail, and that they do not any more.
func (w *Webhook) lost(err error) {
	if !w.away {
		w.away = true
		w.log.Warn("the webhook cannot be told; it is tried again", "error", err)
	}
}

func (w *Webhook) back() {
	if w.away {
		w.away, w.full = false, false
		w.log.Info("the webhook is told again")
	}
}

// outcome is what came of one request.
type outcome struct {
	err   error         // nil: it was taken
	after time.Duration // how long the receiver wants to be left alone
}

var errGone = errors.New("the receiver says that it is gone (410)")

// attempt makes one request. Its errors name no address: what is in one may be a key.
func (w *Webhook) attempt(ctx context.Context, g feed.Signal) outcome {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.cfg.URL, bytes.NewReader(g.Text))
	if err != nil {
		return outcome{err: errors.New("the request cannot be made")}
	}
	id, at := messageID(g.ID), strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "vela")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", at)
	req.Header.Set("webhook-signature", sign(w.key, id, at, g.Text))
	resp, err := w.client.Do(req)
	if err != nil {
		var named *url.Error
		if errors.As(err, &named) {
			err = named.Err
		}
		return outcome{err: err}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return outcome{}
	case resp.StatusCode == http.StatusGone:
		return outcome{err: errGone}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return outcome{err: fmt.Errorf("the receiver answered %d: redirects are not followed, give the address where they lead", resp.StatusCode)}
	}
	return outcome{err: fmt.Errorf("the receiver answered %d", resp.StatusCode), after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
}
