package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"

	"vela/protocol"
)

// Request is a POST of JSON whose answer is an event stream.
type Request struct {
	Path string // begins with a slash; stands behind the base URL
	Body []byte

	// Last says that nothing of interest follows an event. The stream ends there, whether or not the server lets go of
	// the connection.
	Last func(Event) bool
}

// Open makes the request, as often as the configuration says, and yields the events of the answer. An [*Error], or the
// cause of ctx being done, is the last thing yielded. The request upstream ends with ctx and with the loop. That the
// stream ends does not say that it is whole: that is for the reader of the events to know.
func (c *Client) Open(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for n := 0; ; n++ {
			err := c.attempt(ctx, r, yield)
			switch {
			case err == nil:
				return
			case ctx.Err() != nil:
				yield(Event{}, context.Cause(ctx))
				return
			case n >= c.cfg.Retries || !err.again(n):
				yield(Event{}, err.Error)
				return
			}
			if wait(ctx, err.wait) != nil {
				yield(Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// failure is an attempt that has come to nothing.
type failure struct {
	*Error
	temporary bool
	wait      time.Duration // before the next attempt; the server's wish, until again has looked at it
}

var (
	errSilent = errors.New("stream: silent")
	errLeft   = errors.New("stream: not needed any more")
)

// attempt makes the request once. It returns nil once the events are at their end, or their reader has left; an error is
// not yielded yet.
func (c *Client) attempt(parent context.Context, r Request, yield func(Event, error) bool) *failure {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(errLeft)
	silence := time.AfterFunc(c.cfg.First, func() { cancel(errSilent) })
	defer silence.Stop()

	resp, failed := c.post(ctx, r)
	if failed != nil {
		return failed
	}
	defer func() { _ = resp.Body.Close() }()

	started := false
	for event, err := range Events(resp.Body) {
		if err != nil {
			return c.broken(ctx, err, started)
		}
		silence.Stop() // what the reader of the events takes its time for is not the server's silence
		started = true
		last := r.Last != nil && r.Last(event)
		more := yield(event, nil)
		if last {
			c.finish(resp.Body, silence)
			return nil
		}
		if !more {
			return nil
		}
		silence.Reset(c.cfg.Between)
	}
	return nil
}

// post sends the request and returns the answer if it may be a stream.
func (c *Client) post(ctx context.Context, r Request) (*http.Response, *failure) {
	req, err := c.request(ctx, http.MethodPost, r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, &failure{Error: Failed("The request to the model cannot be made.", c.hidden(err))}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		if late := c.silent(ctx); late != nil {
			return nil, late
		}
		return nil, &failure{Error: c.unreachable(err), temporary: !errors.Is(err, errMoved)}
	}
	if resp.StatusCode == http.StatusOK && !document(resp) {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	f := &failure{Error: c.refused(resp), temporary: temporary(resp.StatusCode), wait: retryAfter(resp.Header, time.Now())}
	if late := c.silent(ctx); late != nil {
		return nil, late
	}
	return nil, f
}

// document says that an answer is expressly something else than a stream. Whatever does not say so is given a try.
func document(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "text/html")
}

// refused reads why.
func (c *Client) refused(resp *http.Response) *Error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	return c.refusal(resp.StatusCode, body, err != nil || len(body) == maxRefusal)
}

// unreachable is a request without an answer.
func (c *Client) unreachable(err error) *Error {
	return &Error{code: protocol.CodeAgentUnavailable, words: "The model cannot be reached.", cause: c.hidden(err)}
}

// silent is the failure of a server that took too long, if that is why the context is done.
func (c *Client) silent(ctx context.Context) *failure {
	if !errors.Is(context.Cause(ctx), errSilent) {
		return nil
	}
	return &failure{Error: &Error{
		code:  protocol.CodeAgentTimeout,
		words: "The model did not answer in time.",
		cause: fmt.Errorf("stream: no event came within %v", c.cfg.First),
	}}
}

// broken is the failure of a stream that ends in the middle. Before its first event it is one that can be repeated.
func (c *Client) broken(ctx context.Context, err error, started bool) *failure {
	late := c.silent(ctx)
	switch {
	case late != nil && started:
		late.words, late.cause = "The model stopped in the middle of its answer.", fmt.Errorf("stream: no event came within %v of the one before", c.cfg.Between)
		return late
	case late != nil:
		return late
	case errors.Is(err, ErrLongLine), errors.Is(err, ErrLongEvent):
		return &failure{Error: Failed("The model's answer cannot be read.", err)}
	}
	return &failure{Error: Failed("The model's answer broke off.", c.hidden(err)), temporary: !started}
}

// finish reads the end of a body, so that the connection can be used again, if it comes at once.
func (c *Client) finish(body io.Reader, silence *time.Timer) {
	silence.Reset(c.endWait)
	_, _ = io.CopyN(io.Discard, body, 4<<10) // an end that does not come costs no more than the connection
}

// overloaded is Anthropic's status for it.
const overloaded = 529

// temporary says whether the same request may get an answer soon.
func temporary(status int) bool {
	switch status {
	case 408, 409, 429, 500, 502, 503, 504, overloaded:
		return true
	}
	return false
}

const (
	firstWait   = 500 * time.Millisecond // doubled with each attempt
	longestWait = 30 * time.Second       // that a server may ask for; nobody waits longer at the other end of a call
)

// again says whether another attempt makes sense after the nth, from 0, and settles how long to wait for it.
func (f *failure) again(n int) bool {
	if f.wait == 0 {
		half := firstWait << min(n, 4) / 2
		f.wait = half + rand.N(half)
	}
	return f.temporary && f.wait <= longestWait
}

// retryAfter reads the header of RFC 9110 section 10.2.3, in seconds or as a date; 0 when there is none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1e6) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
