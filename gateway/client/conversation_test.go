package client

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
)

// line is a connection that the test plays: it hands out what is put in, then ends.
type line struct {
	token  string // what it was resumed with
	after  uint64
	ready  protocol.SessionReady
	refuse error // of Resume
	events chan protocol.Envelope
	end    error // once events is closed
	sent   []protocol.Message
	deaf   bool // answers no ping
	cut    chan struct{}
}

func newLine(ready *protocol.Terms, end error, events ...protocol.Envelope) *line {
	l := &line{ready: protocol.SessionReady{SessionID: "s1", Terms: ready}, events: make(chan protocol.Envelope, len(events)), end: end, cut: make(chan struct{})}
	for _, e := range events {
		l.events <- e
	}
	if end != nil {
		close(l.events)
	}
	return l
}

func (l *line) Start(context.Context, protocol.SessionStart) (protocol.SessionReady, error) {
	return l.ready, nil
}

func (l *line) Resume(_ context.Context, token string, after uint64) (protocol.SessionReady, error) {
	l.token, l.after = token, after
	return l.ready, l.refuse
}

func (l *line) SendEnvelope(_ context.Context, e protocol.Envelope) error {
	l.sent = append(l.sent, e.Message)
	return nil
}

func (l *line) SendAudio(context.Context, []int16) error { return nil }

func (l *line) ReceiveEnvelope(ctx context.Context) (protocol.Envelope, error) {
	select {
	case e, ok := <-l.events:
		if !ok {
			return e, l.end
		}
		return e, nil
	case <-l.cut:
		return protocol.Envelope{}, lost
	case <-ctx.Done():
		return protocol.Envelope{}, context.Cause(ctx)
	}
}

func (l *line) Ping(ctx context.Context) error {
	if l.deaf {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l *line) Close() error { l.Drop(); return nil }

func (l *line) Drop() {
	select {
	case <-l.cut:
	default:
		close(l.cut)
	}
}

var lost = &CloseError{Code: CloseAbnormal, Err: errLost}

func terms(recovered bool, last uint64) *protocol.Terms {
	return &protocol.Terms{Protocol: 2, ResumeToken: "t", ResumeWindowMs: 120_000, Resumed: true, Recovered: recovered, LastSeq: last}
}

func delta(seq uint64) protocol.Envelope {
	return protocol.Envelope{Seq: seq, Message: protocol.ResponseTextDelta{Text: "x"}}
}

// play holds a conversation over these connections, one after the other; an error is an attempt that fails. It returns
// the numbers of the events that came, 0 for session.ready, what was watched, and the error at the end.
func play(t *testing.T, lines ...any) (seqs []uint64, watched []Status, err error) {
	t.Helper()
	o := ConversationOptions{Watch: func(s Status) { watched = append(watched, s) }}
	o.dial = func(context.Context) (connection, error) {
		if len(lines) == 0 {
			return nil, &DialError{Err: errLost}
		}
		next := lines[0]
		lines = lines[1:]
		if err, ok := next.(error); ok {
			return nil, err
		}
		return next.(*line), nil
	}
	c, err := Converse(t.Context(), "", o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := c.Receive(t.Context())
		if err != nil {
			if _, again := c.Receive(t.Context()); again != err {
				t.Errorf("the second time: %v", again)
			}
			return seqs, watched, err
		}
		seqs = append(seqs, e.Seq)
	}
}

func phases(watched []Status) string {
	var names []string
	for _, s := range watched {
		names = append(names, string(s.Phase))
	}
	return strings.Join(names, " ")
}

// ended is how the tests' conversations come to their end.
var ended = protocol.Envelope{Seq: 6, Message: protocol.SessionEnded{Reason: protocol.EndClosed}}

func TestConversation(t *testing.T) {
	bye := &CloseError{Code: CloseNormal}
	down := &DialError{Err: errLost}
	for name, c := range map[string]struct {
		lines   []any
		seqs    []uint64
		watched string
		says    string
	}{
		"nothing happens": {[]any{newLine(terms(false, 0), bye, delta(1), ended)}, []uint64{0, 1, 6}, "missed", "ended the session (closed)"},
		"recovered": {[]any{newLine(terms(false, 0), lost, delta(1), delta(2)), newLine(terms(true, 5), bye, delta(3), delta(4), delta(5), ended)},
			[]uint64{0, 1, 2, 0, 3, 4, 5, 6}, "away back", "ended"},
		"what came twice": {[]any{newLine(terms(false, 0), lost, delta(1), delta(2)), newLine(terms(true, 5), bye, delta(1), delta(2), delta(3), delta(3), delta(4), delta(5), ended)},
			[]uint64{0, 1, 2, 0, 3, 4, 5, 6}, "away back", "ended"},
		"what has no number": {[]any{newLine(terms(false, 0), bye, delta(0), delta(1), delta(0))}, []uint64{0, 0, 1, 0}, "", "1000"},
		"not recovered": {[]any{newLine(terms(false, 0), lost, delta(1)), newLine(terms(false, 5), bye, ended)},
			[]uint64{0, 1, 0, 6}, "away missed", "ended"},
		"a gap": {[]any{newLine(terms(false, 0), lost, delta(1)), newLine(terms(true, 5), bye, delta(5), ended)},
			[]uint64{0, 1, 0, 5, 6}, "away back missed", "ended"},
		"attempts that fail": {[]any{newLine(terms(false, 0), lost, delta(1)), down, &DialError{Status: 503}, context.DeadlineExceeded, newLine(terms(true, 5), bye, delta(2))},
			[]uint64{0, 1, 0, 2}, "away away away away back", "1000"},
		"gone for longer than it is kept": {[]any{newLine(terms(false, 0), lost)}, []uint64{0}, "", "could not be taken up again in time: " + down.Error()},
		"refused for who we are":          {[]any{newLine(terms(false, 0), lost), &DialError{Status: 401}}, []uint64{0}, "away", "VELA_TOKEN"},
		"the session is gone": {[]any{newLine(terms(false, 0), lost), &line{refuse: &EventError{protocol.Error{Code: protocol.CodeSessionGone}}, cut: make(chan struct{})}},
			[]uint64{0}, "away", "session_gone"},
		"too many sessions": {[]any{newLine(terms(false, 0), lost), &line{refuse: &EventError{protocol.Error{Code: protocol.CodeSessionLimit, Retryable: true}}, cut: make(chan struct{})}},
			[]uint64{0}, "away", "session_limit"},
		"no message": {[]any{newLine(terms(false, 0), errLost)}, []uint64{0}, "", "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, l := range c.lines { // channels belong to the bubble
					if l, ok := l.(*line); ok {
						remake(l)
					}
				}
				seqs, watched, err := play(t, c.lines...)
				if !slices.Equal(seqs, c.seqs) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("events %v, want %v; the error is %v", seqs, c.seqs, err)
				}
				if got := phases(watched); c.watched != "" && got != c.watched {
					t.Errorf("watched %s, want %s", got, c.watched)
				}
			})
		})
	}
}

// remake makes a line's channels again, in the bubble that uses them.
func remake(l *line) {
	old := l.events
	l.cut = make(chan struct{})
	l.events = make(chan protocol.Envelope, cap(old))
	for range len(old) {
		l.events <- <-old
	}
	if l.end != nil {
		close(l.events)
	}
}

// TestWhenAConversationComesBack goes through every close code.
func TestWhenAConversationComesBack(t *testing.T) {
	for _, i := range protocol.Closes() {
		want := slices.Contains([]protocol.CloseCode{1001, 1011, 4003}, i.Code)
		if got := again(&CloseError{Code: i.Code}); got != want {
			t.Errorf("%d: %t", i.Code, got)
		}
	}
	for code, want := range map[protocol.CloseCode]bool{CloseAbnormal: true, CloseNormal: false, CloseNoStatus: false, 4999: false} {
		if got := again(&CloseError{Code: code}); got != want {
			t.Errorf("%d: %t", code, got)
		}
	}
}

// TestBackoff: every wait lies within bounds that double, and the attempts end with the window.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, watched, err := play(t, newLine(terms(false, 0), lost))
		if took := time.Since(began); took < 119*time.Second || took > 121*time.Second {
			t.Errorf("it gave up after %v: %v", took, err)
		}
		bound, drawn := 250*time.Millisecond, map[time.Duration]bool{}
		for i, s := range watched {
			if s.Attempt != i+1 || s.Wait < 0 || s.Wait > bound || s.Err == nil {
				t.Errorf("attempt %d: %+v, and at most %v", i+1, s, bound)
			}
			bound = min(2*bound, 10*time.Second)
			drawn[s.Wait] = true
		}
		if len(watched) < 12 || len(drawn) < len(watched)/2 {
			t.Errorf("%d attempts, of %d lengths", len(watched), len(drawn))
		}
	})
}

// TestADeadConnectionIsNoticed: it is asked for a sign of life, and cut without one.
func TestADeadConnectionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := newLine(terms(false, 0), nil)
		dead.deaf = true
		began := time.Now()
		seqs, watched, _ := play(t, dead, newLine(terms(true, 0), &CloseError{Code: CloseNormal}, delta(1)))
		if took := time.Since(began); took < pingEvery+pongIn || took > pingEvery+pongIn+time.Second || phases(watched) != "away back" || len(seqs) != 3 {
			t.Errorf("after %v: %v, %s", took, seqs, phases(watched))
		}
	})
}

// TestSendWhileAway is refused, and so is everything after Close; Close wakes who waits to come back.
func TestSendWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newLine(terms(false, 0), nil)
		o := ConversationOptions{Backoff: Backoff{First: time.Hour, Most: time.Hour}}
		o.dial = func(context.Context) (connection, error) { return first, nil }
		c, err := Converse(t.Context(), "", o)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Receive(t.Context())
		for _, want := range []string{"c1", "c2"} {
			if id, err := c.Send(t.Context(), protocol.HistoryGet{}); id != want || err != nil {
				t.Errorf("%q and the error %v", id, err)
			}
		}
		c.Drop()
		received := make(chan error)
		go func() {
			_, err := c.Receive(t.Context())
			received <- err
		}()
		synctest.Wait()
		if _, err := c.Send(t.Context(), protocol.HistoryGet{}); !errors.Is(err, ErrAway) {
			t.Errorf("the error is %v", err)
		}
		if err := c.SendAudio(t.Context(), make([]int16, 2)); !errors.Is(err, ErrAway) {
			t.Errorf("the error is %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-received; !errors.Is(err, ErrClosed) {
			t.Errorf("the error is %v", err)
		}
		if _, err := c.Send(t.Context(), protocol.HistoryGet{}); !errors.Is(err, ErrClosed) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestReceiveAgainAfterItsContext: a call that was given up costs the connection, and nothing else.
func TestReceiveAgainAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := []*line{newLine(terms(false, 0), nil), newLine(terms(true, 1), nil, delta(1))}
		o := ConversationOptions{}
		o.dial = func(context.Context) (connection, error) {
			l := lines[0]
			lines = lines[1:]
			return l, nil
		}
		c, err := Converse(t.Context(), "", o)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Receive(t.Context())
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if _, err := c.Receive(ctx); !errors.Is(err, why) {
			t.Errorf("the error is %v", err)
		}
		for _, seq := range []uint64{0, 1} {
			if e, err := c.Receive(t.Context()); e.Seq != seq || err != nil {
				t.Errorf("event %d and the error %v", e.Seq, err)
			}
		}
		_ = c.Close()
	})
}

// What is followed is asked for on every connection, and what was taken back is not; what a person does is sent once.
func TestAConversationFollowsSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newLine(terms(true, 0), nil), newLine(terms(true, 0), nil)
		lines := []*line{first, second}
		c, err := Converse(t.Context(), "", ConversationOptions{dial: func(context.Context) (connection, error) {
			next := lines[0]
			lines = lines[1:]
			return next, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		tools := protocol.SignalSubscribe{Types: []string{"tool_call", "tool_result"}}
		user, all := protocol.SignalSubscribe{Types: []string{"user.*"}, Sources: []string{"s"}}, protocol.SignalSubscribe{}
		click := protocol.SignalEmit{SignalType: "user.click", Payload: []byte(`{"target":"x"}`)}
		for _, m := range []protocol.Message{tools, tools, user, all, protocol.SignalUnsubscribe{Types: []string{"tool_result", "tool_call"}}, click} {
			if _, err := c.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		first.Drop()
		for range 2 { // session.ready, twice
			if _, err := c.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if want := []protocol.Message{user, all}; !reflect.DeepEqual(second.sent, want) {
			t.Errorf("on the second connection: %v, want %v", second.sent, want)
		}
		if _, err := c.Send(t.Context(), protocol.SignalUnsubscribe{}); err != nil || len(c.filters) != 0 {
			t.Errorf("%v are left: %v", c.filters, err)
		}
		second.Drop()
		if _, err := c.Send(t.Context(), tools); err != nil && len(c.filters) != 0 {
			t.Errorf("kept, though it was not sent: %v", c.filters)
		}
	})
}
