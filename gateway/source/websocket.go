package source

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"nhooyr.io/websocket"

	"vela/protocol/signal"
)

// Bounds of a connection that somebody else holds up.
const (
	maxMessage = 1 << 20          // bytes; one of more than a signal may have is still read, and told of
	wholeTime  = 30 * time.Second // for a message, from its beginning to its end
	pingEvery  = 20 * time.Second
	pongTime   = 10 * time.Second
	lateTime   = 4 * time.Second // for a pong, by when a connection that broke is one that did not answer
)

// Faults of whoever is at the other end.
var (
	errStalled = fault{words: "The source stopped in the middle of a message."}
	errSilent  = fault{words: "The source does not answer any more."}
	errLong    = fault{words: "The source sent a message of more than 1 MiB."}
)

// socket is a WebSocket with signals.
type socket struct {
	Plain
	conn   *websocket.Conn
	cancel context.CancelCauseFunc
	ctx    context.Context
	pings  sync.WaitGroup
	asked  atomic.Int64 // when the ping was sent that is not answered, in Unix ns; 0 if there is none
}

func (d *dialer) socket(ctx context.Context, address, key string, p Plain) (Feed, error) {
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	header := http.Header{}
	authorize(header, key)
	conn, resp, err := websocket.Dial(within, address, &websocket.DialOptions{
		HTTPClient: d.sources.client(), HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
	})
	switch {
	case err != nil && resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, refusedBy(resp.StatusCode)
	case err != nil:
		return nil, allowed(err)
	}
	conn.SetReadLimit(-1) // Next has one
	s := &socket{Plain: p, conn: conn}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.pings.Go(s.ping)
	return s, nil
}

// ping looks whether the other side is there.
func (s *socket) ping() {
	for pause(s.ctx, pingEvery) {
		s.asked.Store(time.Now().UnixNano())
		ctx, cancel := context.WithTimeout(s.ctx, pongTime)
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil {
			s.cancel(nil) // Next says why
			return
		}
		s.asked.Store(0)
	}
}

// Next implements [Conn]. The context is that of the dial.
func (s *socket) Next(context.Context) ([]byte, error) {
	_, r, err := s.conn.Reader(s.ctx)
	if err != nil {
		return nil, s.why(err)
	}
	late := time.AfterFunc(wholeTime, func() { s.cancel(errStalled) })
	defer late.Stop()
	message, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	switch {
	case err != nil:
		return nil, s.why(err)
	case len(message) > maxMessage:
		return nil, errLong
	}
	return message, nil
}

// why is why the connection ended.
func (s *socket) why(err error) error {
	var f fault
	switch code := websocket.CloseStatus(err); {
	case code == websocket.StatusNormalClosure:
		return io.EOF
	case code == websocket.StatusPolicyViolation:
		return fault{"The source closed the connection: it does not allow it. Does it want a key?", true}
	case errors.As(context.Cause(s.ctx), &f):
		return f
	}
	if asked := s.asked.Load(); asked != 0 && time.Since(time.Unix(0, asked)) >= lateTime {
		return errSilent
	}
	return err
}

// Parse implements [Feed].
func (s *socket) Parse(message []byte) []signal.Raw {
	if r, ok := s.Plain.Parse(message); ok {
		return []signal.Raw{r}
	}
	return nil
}

// Close implements [Conn].
func (s *socket) Close() error {
	s.cancel(nil)
	err := s.conn.CloseNow()
	s.pings.Wait()
	return err
}
