package source

import (
	"context"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"
	"time"

	"vela/protocol/signal"
	"vela/turn/stream"
)

// events is an HTTP answer with signals: an event stream, or lines of JSON.
type events struct {
	Plain
	dialer *dialer
	body   io.Closer
	ctx    context.Context
	cancel context.CancelCauseFunc
	whole  *whole
	next   func() (stream.Event, error, bool)
	stop   func()
}

// errEnded is an event stream that its server ended, which by the standard is to be taken up again.
var errEnded = errors.New("source: the event stream ended")

// stream asks for the signals, behind the last one whose place is known (WHATWG HTML, section 9.2).
func (d *dialer) stream(ctx context.Context, address, key string, p Plain) (Feed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, fault{"That is no address.", true}
	}
	req.Header.Set("User-Agent", "vela")
	req.Header.Set("Accept", "text/event-stream, application/x-ndjson")
	req.Header.Set("Cache-Control", "no-cache")
	if d.place != "" {
		req.Header.Set("Last-Event-ID", d.place)
	}
	authorize(req.Header, key)
	resp, err := d.sources.client().Do(req)
	if err != nil {
		cancel(nil)
		return nil, allowed(err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // one that is none says nothing
	switch {
	case resp.StatusCode == http.StatusNoContent:
		err = fault{"The source has nothing more to say (204).", true}
	case resp.StatusCode != http.StatusOK:
		err = refusedBy(resp.StatusCode)
	case kind == "text/html":
		err = fault{"There is a web page at this address, and no signals. Is its path right?", true}
	}
	if err != nil {
		_ = resp.Body.Close()
		cancel(nil)
		return nil, err
	}
	e := &events{Plain: p, dialer: d, body: resp.Body, ctx: ctx, cancel: cancel}
	e.whole = &whole{
		src: resp.Body, late: func() { cancel(errStalled) },
		events: kind == "text/event-stream", sniff: !knownKind(kind),
	}
	e.next, e.stop = iter.Pull2(Messages(e.whole, kind))
	return e, nil
}

// Next implements [Conn]. The context is that of the dial.
func (e *events) Next(context.Context) ([]byte, error) {
	event, err, more := e.next()
	var f fault
	switch {
	case errors.As(context.Cause(e.ctx), &f):
		return nil, f
	case errors.Is(err, stream.ErrLongLine), errors.Is(err, stream.ErrLongEvent):
		return nil, errLong
	case err != nil:
		return nil, err
	case !more && e.whole.events:
		return nil, errEnded
	case !more:
		return nil, io.EOF
	}
	if fitsHeader(event.ID) {
		e.dialer.place = event.ID
	}
	return event.Data, nil
}

// fitsHeader says whether an id can be sent back.
func fitsHeader(id string) bool {
	return len(id) <= 1024 && strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// Parse implements [Feed].
func (e *events) Parse(message []byte) []signal.Raw {
	if r, ok := e.Plain.Parse(message); ok {
		return []signal.Raw{r}
	}
	return nil
}

// Close implements [Conn].
func (e *events) Close() error {
	e.cancel(nil)
	e.stop()
	e.whole.rest()
	return e.body.Close()
}

// whole reads an answer, and calls late when a message that has begun does not end in time. A source that says nothing may
// do so for as long as it likes.
type whole struct {
	src    io.Reader
	late   func()
	sniff  bool // the first bytes decide what follows
	events bool // an event ends with an empty line; otherwise a message is a line

	timer  *time.Timer // nil while no message is open
	inLine bool        // there is something on the line
	remark bool        // it begins with a colon
	fields bool        // the event has a line already
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.src.Read(p)
	if n > 0 && w.sniff {
		w.sniff, w.events = false, looksLikeEvents(p[:n])
	}
	for _, b := range p[:n] {
		if w.see(b) {
			w.rest() // what is open now began after it
		}
	}
	if w.timer == nil && (w.inLine || w.fields) {
		w.timer = time.AfterFunc(wholeTime, w.late)
	}
	return n, err
}

// see takes one byte, and says whether nothing is open behind it. A carriage return counts as nothing: the line feed that
// follows it nearly everywhere ends the line.
func (w *whole) see(b byte) bool {
	switch {
	case b == '\r':
		return false
	case b != '\n':
		if !w.inLine {
			w.inLine, w.remark = true, b == ':'
		}
		return false
	case !w.inLine:
		w.fields = false
	default:
		w.fields = w.events && (w.fields || !w.remark)
		w.inLine = false
	}
	return !w.fields
}

func (w *whole) rest() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = nil
}
