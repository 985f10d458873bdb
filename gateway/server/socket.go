package server

// This is the only file of the package that knows which WebSocket library is used: nhooyr.io/websocket v1.8.17, whose
// development goes on as github.com/coder/websocket.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"nhooyr.io/websocket"

	"vela/protocol"
	"vela/session"
)

// subprotocols are the names of the protocol's versions, the best one first.
var subprotocols = []string{"vela.v2", "vela.v1"}

// socket is one client's connection, as a peer of its session. Its reader runs in a goroutine of its own; there is a
// writer only while there is something to write.
type socket struct {
	ws      *websocket.Conn
	conn    *quiet // below ws
	version int    // of the protocol
	order   uint64 // among the gateway's sockets; see session.Hello
	out     outbox
	ping    keepAlive
	client  *signaller // nil where signals are not to be had
}

// serveSocket upgrades, and returns: the request, its buffers and its goroutine go, while the socket stays.
func (s *Server) serveSocket(c echo.Context) error {
	turns, err := askedTurns(c.QueryParam("turns"))
	if err != nil {
		return err
	}
	if err := s.origins.check(c.Request()); err != nil {
		return err
	}
	if err := offered(c.Request()); err != nil {
		return err
	}
	who := callerOf(c)
	if turns, err = who.turns(turns); err != nil {
		return err
	}
	if !s.sessions.enter() {
		return echo.NewHTTPError(http.StatusServiceUnavailable, "The gateway is stopping. Try again in a moment.")
	}
	order := s.upgraded.Add(1) // before the client can know that it is connected, and make another connection
	k, err := upgrade(c)
	if err != nil {
		s.sessions.exit()
		return nil // the library has answered
	}
	k.order = order
	k.client = s.signaller(k, who)
	// What it takes to make a session is done here, on a stack that goes with the request.
	attend := s.attend(k, turns, who)
	go func() {
		defer s.sessions.exit() // drain waits for it
		attend()
	}()
	return nil
}

// attend gives a new socket its session, or turns it away. It returns the socket's life.
func (s *Server) attend(k *socket, turns session.Turns, who *caller) func() {
	if no := who.dismissed(); no != nil {
		return func() { s.turnAway(k, no) }
	}
	if k.version == 2 {
		return func() {
			s.converse(k, func(ctx context.Context) (*session.Session, session.Hello, error) {
				return s.shakeHands(ctx, k, turns, who)
			})
		}
	}
	leave, no := who.enter()
	if no != nil {
		return func() { s.turnAway(k, no) }
	}
	sess, ok := s.sessions.run(tokenHash{}, func() *session.Session {
		return s.cfg.NewSession(NewSession{Version: 1, Turns: turns, Audio: who.audio()})
	}, leave)
	if !ok {
		leave()
		return func() { s.turnAway(k, noPlace(limitWords)) }
	}
	return func() {
		s.converse(k, func(context.Context) (*session.Session, session.Hello, error) {
			return sess, session.Hello{}, nil
		})
	}
}

func askedTurns(turns string) (session.Turns, error) {
	switch t := session.Turns(turns); t {
	case "", session.Deterministic, session.Agent:
		return t, nil
	}
	return "", echo.NewHTTPError(http.StatusBadRequest, "turns must be deterministic or agent.")
}

// offered refuses a client that names subprotocols of which we know none.
func offered(r *http.Request) error {
	offers := strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ",")
	if offers == "" {
		return nil
	}
	for name := range strings.SplitSeq(offers, ",") {
		if slices.Contains(subprotocols, strings.TrimSpace(name)) {
			return nil
		}
	}
	return echo.NewHTTPError(http.StatusBadRequest, "No known subprotocol was offered. This gateway speaks vela.v1 and vela.v2.")
}

func upgrade(c echo.Context) (*socket, error) {
	w := slim{c.Response(), new(quiet)}
	ws, err := websocket.Accept(w, c.Request(), &websocket.AcceptOptions{
		InsecureSkipVerify: true, // access.go has checked the origin
		Subprotocols:       subprotocols,
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1) // read counts, so that the client gets to see the close code
	version := 1
	if ws.Subprotocol() == "vela.v2" {
		version = 2
	}
	return &socket{ws: ws, conn: w.conn, version: version}, nil
}

// slim hands the library small buffers in place of net/http's two of 4 KiB, which it would keep for the connection's
// life. A frame of 20 ms of audio still arrives in one read.
type slim struct {
	http.ResponseWriter
	conn *quiet // what the library gets as its connection
}

const bufferSize = 1 << 10

func (w slim) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.conn.Conn = conn
	early, _ := brw.Reader.Peek(brw.Reader.Buffered())
	in := bufio.NewReaderSize(conn, bufferSize)
	if len(early) > 0 {
		in = bufio.NewReaderSize(io.MultiReader(strings.NewReader(string(early)), conn), max(bufferSize, len(early)))
		_, _ = in.Peek(len(early)) // the library asks for what is buffered
	}
	return w.conn, bufio.NewReadWriter(in, bufio.NewWriterSize(w.conn, bufferSize/2)), nil
}

// tellWithin is how long it may take to tell a client that there is no session for it.
const tellWithin = 10 * time.Second

const limitWords = "The gateway runs as many sessions as it may. Try again later."

// turnAway tells a client why it gets no session, and closes. In a crowd it waits less for the client's half of that; its own
// half may take as long as the crowd makes it.
func (s *Server) turnAway(k *socket, no *dismissal) {
	wait := 5 * time.Second
	if s.leaving.Add(1) > 64 {
		wait = 2 * time.Second
	}
	defer s.leaving.Add(-1)
	ctx, cancel := context.WithCancel(s.sessions.hard)
	defer cancel()
	late := time.AfterFunc(tellWithin, cancel)
	defer late.Stop()
	k.conn.told = func() { late.Reset(wait) }
	if no.told == nil || k.writeFrame(ctx, protocol.Encode(*no.told), false) == nil {
		k.closeWith(ctx, no.code, no.reason)
		s.metrics.closed(no.code)
	}
	_ = k.ws.CloseNow()
}

// converse is the socket's life: it finds its session and joins it, reads until the connection or the session ends, and
// leaves.
func (s *Server) converse(k *socket, find func(context.Context) (*session.Session, session.Hello, error)) {
	ctx, cancel := context.WithCancel(s.sessions.hard)
	defer cancel()
	k.out.open(ctx, cancel, k.version, k.writeFrame, k.closeWith)
	k.ping.start(ctx, s.cfg.Ping, k.ws.Ping, cancel)

	sess, hello, err := find(ctx)
	log := s.log
	if err == nil {
		log = s.log.With("session", sess.ID())
		log.Info("socket opened", "version", k.version, "resumed", hello.Resume)
		hello.Order = k.order
		k.client.begin(sess.ID())
		err = sess.Join(ctx, k, hello)
		if errors.Is(err, session.ErrEnded) {
			s.tooLate(k)
		}
		for err == nil {
			err = s.receive(ctx, k, sess)
		}
		if errors.Is(err, session.ErrEnded) {
			err = k.discard(ctx) // until the client has seen why
		}
	}
	k.endBadly(err)
	if sess != nil {
		sess.Leave(k)
	}
	k.client.end()
	k.ping.stop()
	k.out.wait()
	_ = k.ws.CloseNow()
	code := k.out.closedWith()
	s.metrics.closed(code)
	log.Info("socket closed", "code", int(code), "cause", plain(err))
}

// tooLate tells a client whose session ended between being found and being joined. What the session has told it already
// stays.
func (s *Server) tooLate(k *socket) {
	if s.sessions.draining() {
		k.out.close(protocol.CloseGoingAway, "the gateway is stopping, come back")
		return
	}
	no := gone()
	k.dismiss("", no)
	k.out.close(no.code, no.reason)
}

// receive reads one message and hands it to the session. Its error ends the connection.
func (s *Server) receive(ctx context.Context, k *socket, sess *session.Session) error {
	in, err := s.read(ctx, k)
	switch {
	case err != nil:
		return err
	case in.bad != nil:
		return sess.Reject(ctx, k, in.id, in.bad)
	}
	return sess.Receive(ctx, k, in.id, in.message)
}

// incoming is one message of a client: an event, or why it is none.
type incoming struct {
	id      string
	message protocol.Message
	bad     error
}

// read reads one message. Its error ends the connection.
func (s *Server) read(ctx context.Context, k *socket) (in incoming, err error) {
	kind, r, err := k.ws.Reader(ctx)
	if err != nil {
		return in, err
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if err := buf.fill(r, s.cfg.MaxMessage); err != nil {
		return in, err
	}
	s.metrics.received.Inc()
	switch {
	case kind == websocket.MessageBinary && k.version == 1:
		in.bad = errBinary
	case kind == websocket.MessageBinary:
		in.message = session.Audio{PCM: bytes.Clone(buf.bytes)}
	case !utf8.Valid(buf.bytes):
		return in, errNotUTF8
	case k.version == 1:
		in.message, in.bad = protocol.Decode(buf.bytes, protocol.Client)
	default:
		var e protocol.Envelope
		e, in.bad = protocol.DecodeEnvelope(buf.bytes, protocol.Client)
		in.id, in.message = e.ID, e.Message
	}
	return in, nil
}

// discard reads on after the session has ended, so that the closing handshake comes to its end.
func (k *socket) discard(ctx context.Context) error {
	for {
		_, r, err := k.ws.Reader(ctx)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
	}
}

// badFrame ends a connection with a close code.
type badFrame struct {
	code protocol.CloseCode
	why  string
}

func (b *badFrame) Error() string { return "server: " + b.why }

var (
	errTooBig  = &badFrame{protocol.CloseTooBig, "the message is too big"}
	errNotUTF8 = &badFrame{protocol.CloseInvalidText, "the text is not UTF-8"}
	errSilent  = &badFrame{protocol.ClosePolicyViolation, "session.start or session.resume was not sent in time"}
	errMasking = &badFrame{protocol.CloseProtocolError, "client frames must be masked"}
)

// errBinary answers a binary frame: version 1 has none.
var errBinary = binaryFrame{}

type binaryFrame struct{}

func (binaryFrame) Error() string       { return "Binary messages are not taken here. Send JSON text." }
func (binaryFrame) Code() protocol.Code { return protocol.CodeInvalidMessage }

// endBadly sends the close code that goes with an error of reading. The library has sent its own for malformed frames,
// except for one that is not masked (RFC 6455 section 5.1).
func (k *socket) endBadly(err error) {
	if err != nil && strings.Contains(err.Error(), "received unmasked frame") {
		err = errMasking
	}
	var bad *badFrame
	if errors.As(err, &bad) {
		k.out.close(bad.code, bad.why)
	}
	k.out.hangUp()
}

// Send implements [session.Peer].
func (k *socket) Send(e session.Event) { k.out.put(e) }

// Resend implements [session.Peer].
func (k *socket) Resend(events []session.Event) { k.out.putAll(events) }

// Signal implements [session.Signaller].
func (k *socket) Signal(m protocol.Message) error { return k.client.take(m) }

// Close implements [session.Peer].
func (k *socket) Close(code protocol.CloseCode, reason string) { k.out.close(code, reason) }

func (k *socket) writeFrame(ctx context.Context, frame []byte, binary bool) error {
	kind := websocket.MessageText
	if binary {
		kind = websocket.MessageBinary
	}
	return k.ws.Write(ctx, kind, frame)
}

// closeWith performs the closing handshake, until ctx is done at most; the reader meanwhile reads the client's half of it.
func (k *socket) closeWith(ctx context.Context, code protocol.CloseCode, reason string) {
	k.conn.closing.Store(true)
	// The library waits for the client's half with a time of its own: where nobody else reads, only the connection's end ends that.
	defer context.AfterFunc(ctx, func() { _ = k.conn.Close() })()
	_ = k.ws.Close(websocket.StatusCode(code), reason)
}

// plain is an error of reading in one word for the log: the library's texts change from version to version.
func plain(err error) string {
	var bad *badFrame
	switch {
	case err == nil:
		return ""
	case errors.As(err, &bad):
		return bad.why
	case websocket.CloseStatus(err) != -1:
		return "closed"
	}
	return "connection lost"
}

// buffers are for messages on their way through the decoder; a socket holds none while it waits for one.
var buffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, 0, 4<<10)} }}

type buffer struct{ bytes []byte }

// fill reads the whole message, at most most bytes of it.
func (b *buffer) fill(r io.Reader, most int) error {
	b.bytes = b.bytes[:0]
	for {
		if len(b.bytes) == cap(b.bytes) {
			b.bytes = append(b.bytes, 0)[:len(b.bytes)]
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if len(b.bytes) > most {
			return errTooBig
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// release gives the buffer back, unless a huge message has made it huge.
func (b *buffer) release() {
	if cap(b.bytes) <= 64<<10 {
		buffers.Put(b)
	}
}
