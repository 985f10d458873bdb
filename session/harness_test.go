package session_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
)

// What the tests of this package share: a client that sends and looks at what it is shown, and engines and recognisers
// that do as they are told. All of it lives in a synctest bubble, where time passes only while everybody waits; a test
// looks once nothing moves any more.

// sessionID is the id of every session in these tests.
const sessionID = "6f1b2d0e-5c0a-4a7e-9d57-3f6f0c1f2a44"

// client is a [session.Peer] and the person behind it.
type client struct {
	t       *testing.T
	session *session.Session
	cancel  context.CancelCauseFunc // of Run's context
	ended   chan struct{}           // closed when Run has returned

	onSend func(session.Event) // called by the session's goroutine; nil does nothing

	mu       sync.Mutex // the session's goroutine writes what follows
	shown    []session.Event
	times    []time.Time // of each event
	read     int         // how many of shown next has returned
	closed   []string    // how often and why the session closed this peer
	closedAt time.Time
}

// Send implements [session.Peer].
func (c *client) Send(e session.Event) {
	c.mu.Lock()
	c.shown = append(c.shown, e)
	c.times = append(c.times, time.Now())
	c.mu.Unlock()
	if c.onSend != nil {
		c.onSend(e)
	}
}

// Resend implements [session.Peer].
func (c *client) Resend(events []session.Event) {
	for _, e := range events {
		c.Send(e)
	}
}

// Close implements [session.Peer].
func (c *client) Close(code protocol.CloseCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = append(c.closed, fmt.Sprintf("%d %s", code, reason))
	c.closedAt = time.Now()
}

// start runs a session of cfg with nobody in it. It ends with the test.
func start(t *testing.T, cfg session.Config) *client {
	t.Helper()
	if cfg.Mock == nil {
		cfg.Mock = deterministic.Engine{}
	}
	cfg.ID = sessionID

	ctx, cancel := context.WithCancelCause(t.Context())
	c := &client{t: t, session: session.New(cfg), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.session.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel(nil)
		<-c.ended
	})
	return c
}

// connect runs a session of cfg and joins it. What a client is greeted with has been read.
func connect(t *testing.T, cfg session.Config) *client {
	t.Helper()
	c := start(t, cfg)
	c.join()
	c.expect("ready", "idle")
	return c
}

func (c *client) join() {
	c.t.Helper()
	if err := c.session.Join(c.t.Context(), c, session.Hello{}); err != nil {
		c.t.Fatal(err)
	}
}

// send posts one message after the other and does not wait for what they cause.
func (c *client) send(messages ...protocol.Message) {
	c.t.Helper()
	for _, m := range messages {
		if err := give(c.t.Context(), c.session, c, "", m); err != nil {
			c.t.Fatalf("%s: %v", m.Type(), err)
		}
	}
}

// give hands over an event. One that ends the session may have ended it before Receive looks again, and that is no error.
func give(ctx context.Context, s *session.Session, p session.Peer, id string, m protocol.Message) error {
	err := s.Receive(ctx, p, id, m)
	if _, ends := m.(protocol.SessionClose); ends && errors.Is(err, session.ErrEnded) {
		return nil
	}
	return err
}

// next returns what has been shown since it was last called, in the words of [brief], once nothing moves any more.
func (c *client) next() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for ; c.read < len(c.shown); c.read++ {
		words = append(words, brief(c.shown[c.read].Message))
	}
	return words
}

// expect compares what next returns.
func (c *client) expect(want ...string) {
	c.t.Helper()
	if got := c.next(); !equal(got, want) {
		c.t.Fatalf("shown:\n  %q\nwant:\n  %q", got, want)
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// brief is an event in few words: "idle" is a state, "! code" an error, "> text" a delta, ". text" a final transcript
// and "? text" a partial one.
func brief(m protocol.Message) string {
	switch m := m.(type) {
	case protocol.SessionReady:
		return "ready"
	case protocol.SessionState:
		return string(m.Value)
	case protocol.TranscriptPartial:
		return "? " + m.Text
	case protocol.TranscriptFinal:
		return ". " + m.Text
	case protocol.ResponseTextDelta:
		return "> " + m.Text
	case protocol.ResponseCompleted:
		return "completed"
	case protocol.Error:
		return "! " + string(m.Code)
	}
	return m.Type()
}

// The fixed turn's words, from the contract.
const (
	question  = ". [mocked user] What is the current mocked vertical slice?"
	first     = "> [mocked assistant] "
	second    = "> This is a deterministic mocked response from the gateway vertical slice."
	finalNone = ". [mocked final] Placeholder push-to-talk transcript completed without appended audio."
)

var (
	fixedAnswer = []string{"thinking", "speaking", first, second, "completed", "idle"}
	fixedTurn   = append([]string{"listening", question}, fixedAnswer...)
)

// Short names for what clients send.
var (
	sessionStart = protocol.SessionStart{}
	trigger      = protocol.MockedTurnTrigger{}
	chunk        = protocol.InputAudioAppend{Chunk: "AAAA"} // three bytes: no audio
	commit       = protocol.InputAudioCommit{}
	cancel       = protocol.ResponseCancel{}
)

// silence is so much of it.
func silence(d time.Duration) protocol.InputAudioAppend {
	return protocol.InputAudioAppend{Chunk: base64Of(speech.Bytes(make([]int16, speech.Count(d, speech.Rate))))}
}

// piece is 20 ms of audio.
var piece = silence(20 * time.Millisecond)

// engine is a [turn.Engine] made of a function.
type engine func(ctx context.Context, req turn.Request, yield func(signal.Payload, error) bool)

// Run implements [turn.Engine].
func (e engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) { e(ctx, req, yield) }
}

// says answers with the texts.
func says(texts ...string) engine {
	return func(_ context.Context, _ turn.Request, yield func(signal.Payload, error) bool) {
		for _, text := range texts {
			if !yield(delta(text), nil) {
				return
			}
		}
		yield(done, nil)
	}
}

func delta(text string) signal.Payload { return signal.TextDelta{AgentID: "test", Content: text} }

var done signal.Payload = signal.Completion{AgentID: "test", Success: true}

// recogniser is a [session.Transcriber] made of a function.
type recogniser func(ctx context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool)

// Transcribe implements [session.Transcriber].
func (r recogniser) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) { r(ctx, audio, yield) }
}

// hears says one partial transcript for each piece of audio as long as there are some, and at the end the final one.
func hears(final string, partials ...string) recogniser {
	return func(ctx context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool) {
		rest := partials
		for range audio {
			if len(rest) == 0 {
				continue
			}
			if !yield(speech.Transcript{Text: rest[0]}, nil) {
				return
			}
			rest = rest[1:]
		}
		if ctx.Err() == nil {
			yield(speech.Transcript{Text: final, Final: true}, nil)
		}
	}
}

// counts says how many pieces it has heard.
func counts(_ context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool) {
	n := 0
	for range audio {
		n++
		if !yield(speech.Transcript{Text: heardPieces(n)}, nil) {
			return
		}
	}
	yield(speech.Transcript{Text: heardPieces(n), Final: true}, nil)
}

func heardPieces(n int) string { return fmt.Sprintf("heard %d", n) }

// agentBacked is a session whose turns go to the recogniser and the engine.
func agentBacked(r session.Transcriber, e turn.Engine) session.Config {
	return session.Config{Turns: session.Agent, Transcriber: r, Agents: agents(e)}
}

// agents is the one agent of a session, "test"; nil is none.
func agents(e turn.Engine) []session.NamedEngine {
	if e == nil {
		return nil
	}
	return []session.NamedEngine{{Name: "test", Engine: e}}
}

// wordsError is an error as an engine or a recogniser of ours gives it: with a code, in words for a client.
type wordsError struct {
	code  protocol.Code
	words string
}

func (e wordsError) Error() string       { return e.words }
func (e wordsError) Code() protocol.Code { return e.code }

// errSecret must not reach a client.
var errSecret = errors.New("dial 10.0.0.1:443 with key sk-123: refused")

func base64Of(pcm []byte) string { return base64.StdEncoding.EncodeToString(pcm) }
