package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"vela/protocol"
	"vela/protocol/signal"
)

// Signals is where signals go and come from.
type Signals interface {
	// Accept takes one signal from outside, and returns its id. The error says what is wrong with it; the id is then
	// that of the error signal in its place. It never waits.
	Accept(body []byte) (id string, err error)
	// Follow yields the signals behind a place, first those that are kept, then each as it comes, until ctx is done.
	// Now stands for the end, as it is when the call returns. An error is the last thing yielded.
	Follow(ctx context.Context, place string) (iter.Seq2[LoggedSignal, error], error)
	// Emit takes a signal of a session's client. The error, which knows its code, is for the client. It never waits.
	Emit(session string, m protocol.SignalEmit) error
	// Subscribe follows the signals as they come, for one connection. wake is called when there is something to take and
	// was nothing before; it must not wait, nor call the subscription.
	Subscribe(wake func()) Subscription
}

// Subscription is one connection's. Next is for one goroutine at a time, the rest for any; nothing of it waits.
type Subscription interface {
	// Add and Remove change what comes. The error knows its code, and is for the client.
	Add(protocol.SignalSubscribe) error
	Remove(protocol.SignalUnsubscribe) error
	// Next takes the oldest signal that waits, and says how many before it were lost; false if none waits.
	Next() (LoggedSignal, bool)
	Close()
}

// Now is the place behind all signals that there are.
const Now = "now"

// LoggedSignal is one of [Signals].
type LoggedSignal struct {
	Place  string // behind it; empty where there is no coming back
	Text   []byte // JSON on one line
	Missed uint64 // how many before it came too late
}

// Bounds of the event stream.
const (
	maxStreams   = 256
	streamWrite  = 10 * time.Second // for one event; then its reader has lost the connection
	streamQueue  = 16
	keepAliveFor = 15 * time.Second
)

func (s *Server) signalRoutes() {
	s.echo.GET("/schema/signal.json", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/schema+json", signal.Schema())
	})
	if s.cfg.Signals == nil {
		return
	}
	s.echo.POST("/api/signal", s.takeSignal, s.serverKeyOnly, s.ownPagesOnly)
	s.echo.GET("/__signals__/stream", s.streamSignals, s.followersOnly, s.ownPagesOnly)
}

// ownPagesOnly is for what a foreign page must not do with the help of a browser that can reach us.
func (s *Server) ownPagesOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.origins.check(c.Request()); err != nil {
			return err
		}
		return next(c)
	}
}

type signalTaken struct {
	OK      bool   `json:"ok"`
	ID      string `json:"id,omitempty"`
	Clients int32  `json:"clients"` // event streams that are open
	Error   string `json:"error,omitempty"`
}

// takeSignal takes one signal. What is none is an error signal in the log, and an error for whoever sent it.
func (s *Server) takeSignal(c echo.Context) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, signal.MaxSize+1))
	var long *http.MaxBytesError
	if err != nil && !errors.As(err, &long) {
		return echo.NewHTTPError(http.StatusBadRequest, "The signal did not arrive as a whole.")
	}
	id, err := s.cfg.Signals.Accept(body)
	answer := signalTaken{OK: err == nil, ID: id, Clients: s.streams.Load()}
	status := http.StatusOK
	if err != nil {
		status, answer.Error = http.StatusBadRequest, err.Error()
	}
	if long != nil {
		status = http.StatusRequestEntityTooLarge
	}
	return c.JSON(status, answer)
}

// streamSignals is the event stream: from now on, or behind the place that a reader comes back with.
func (s *Server) streamSignals(c echo.Context) error {
	place := Now
	if last, ok := c.Request().Header["Last-Event-Id"]; ok {
		place = last[0]
	}
	return s.stream(c, func(ctx context.Context) (iter.Seq2[LoggedSignal, error], error) {
		return s.cfg.Signals.Follow(ctx, place)
	})
}

// stream answers with an event stream, until its reader leaves, what it shows ends, or the gateway stops. Who reads that
// it is connected misses nothing that comes from then on.
func (s *Server) stream(c echo.Context, open func(context.Context) (iter.Seq2[LoggedSignal, error], error)) error {
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		return echo.NewHTTPError(http.StatusServiceUnavailable, "As many event streams as there may be are open. Try again later.")
	}
	defer s.streams.Add(-1)
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	stop := context.AfterFunc(s.sessions.ctx, cancel) // the gateway is stopping
	defer stop()
	shows, err := open(ctx)
	if err != nil {
		s.log.Warn("an event stream cannot be opened", "route", c.Path(), "error", err)
		return echo.NewHTTPError(http.StatusServiceUnavailable, "The event stream cannot be opened now. Try again later.")
	}
	h := c.Response().Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that would hold events back
	w := &eventWriter{w: c.Response(), control: http.NewResponseController(c.Response().Writer)}
	if err := w.write([]byte(": connected\n\n")); err != nil {
		return nil // the reader is gone, and nobody is left to tell
	}
	events := make(chan LoggedSignal, streamQueue)
	ended := make(chan error, 1)
	go func() { ended <- hand(ctx, shows, events) }()
	err = w.copy(events)
	left := err != nil || ctx.Err() != nil
	cancel()
	for range events { // until hand has ended
	}
	if why := <-ended; why != nil && !left {
		s.log.Warn("an event stream ended", "route", c.Path(), "error", why)
	}
	return nil
}

// hand hands over what there is until ctx is done, or it ends, and closes the channel then.
func hand(ctx context.Context, what iter.Seq2[LoggedSignal, error], to chan<- LoggedSignal) error {
	defer close(to)
	for e, err := range what {
		if err != nil {
			return err
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// eventWriter writes an event stream. A reader that takes nothing for ten seconds has lost it.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

// copy writes events as they come, and a remark when there is none for some time, so that nobody takes the connection
// for dead.
func (w *eventWriter) copy(events <-chan LoggedSignal) error {
	quiet := time.NewTicker(keepAliveFor)
	defer quiet.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return nil
			}
			if err := w.write(w.event(e)); err != nil {
				return err
			}
			quiet.Reset(keepAliveFor)
		case <-quiet.C:
			if err := w.write([]byte(": still here\n\n")); err != nil {
				return err
			}
		}
	}
}

func (w *eventWriter) event(e LoggedSignal) []byte {
	b := w.buf[:0]
	if e.Missed > 0 {
		b = append(strconv.AppendUint(append(b, ": missed "...), e.Missed, 10), '\n')
	}
	if e.Place != "" {
		b = append(append(append(b, "id: "...), e.Place...), '\n')
	}
	b = append(append(append(b, "data: "...), e.Text...), "\n\n"...)
	w.buf = b
	return b
}

func (w *eventWriter) write(b []byte) error {
	if err := w.control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return err
	}
	if _, err := w.w.Write(b); err != nil {
		return err
	}
	return w.control.Flush()
}
