package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
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

// TestTranscripts2 replays testdata/transcripts/v2, which are like those of version 1 (TestTranscripts), but for these:
//
//   - session may also have "ponder" and "filler" with phrases, "voice: taps", which speaks half a millisecond a byte, and "window", "idle", "silence" (of an agent) and "recognise", each with a time;
//   - client begins with session.start, which configures the session; one that is refused may be followed by another.
//     The peer that sends it is called "one". "@join room" takes the room's seat and "@join two" the socket's, as
//     a peer of that name; "@resume two 5" is a socket that has the events up to 5. "two: " before a line says who
//     sends it; without, it is who came last to the socket. More of what may be sent: "@audio 20ms 48000" (an append
//     with so much silence at that rate), "@binary 20ms 48000" (the same as a binary message), "@bytes 3" (a binary
//     message of that size). With "detector: loud" among the session, an open microphone hears "@quiet 1s", "@cough 300ms"
//     and "@words 1s", 20 ms at a time, at the speed of sound (handsfree_test.go);
//   - with "follows: yes" among the session, its client may follow sources, and "@source NAME TYPE PAYLOAD" has one of
//     them say something;
//   - server is what the peers are shown, as version 2 writes it. With more than one of them each line says to whom.
func TestTranscripts2(t *testing.T) {
	for _, file := range transcripts2(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := readTranscript(t, file)
			got := ""
			synctest.Test(t, func(t *testing.T) { got = perform(t, a) })
			if got == a.section["server"] {
				return
			}
			if *update {
				a.section["server"] = got
				a.write(t, file)
				return
			}
			t.Errorf("%s\n shown:\n%s\n want:\n%s", a.comment, got, a.section["server"])
		})
	}
}

func transcripts2(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/transcripts/v2/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	return files
}

// stage is a session of version 2 and all who come to it.
type stage struct {
	t       *testing.T
	session *session.Session
	cancel  context.CancelCauseFunc
	ended   chan struct{}
	actors  map[string]*actor
	others  *others
	turn    *actor // whose line it is when the line does not say

	mu    sync.Mutex // the session's goroutine writes what follows
	began time.Time
	lines []line
}

type line struct {
	after time.Duration // that nothing was shown
	who   string
	text  string
}

// actor is a [session.Peer] that writes down what it is shown.
type actor struct {
	name  string
	stage *stage
}

func (a *actor) Send(e session.Event) {
	a.stage.write(a.name, string(protocol.AppendEnvelope(nil, protocol.Envelope{Seq: e.Seq, TS: e.At, Message: e.Message})))
}

func (a *actor) Resend(events []session.Event) {
	for _, e := range events {
		a.Send(e)
	}
}

func (a *actor) Close(code protocol.CloseCode, reason string) {
	a.stage.write(a.name, fmt.Sprintf("@closed %d %s", code, reason))
}

func (s *stage) write(who, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.lines = append(s.lines, line{now.Sub(s.began), who, text})
	s.began = now
}

// perform plays the client's side and returns what was shown.
func perform(t *testing.T, a transcript) string {
	t.Helper()
	s := &stage{t: t, ended: make(chan struct{}), actors: map[string]*actor{}, began: time.Now()}
	cfg := configOf2(t, a.section["session"])
	if cfg.Follow != nil {
		s.others = new(others)
		cfg.Follow = s.others.follow
	}
	for l := range strings.Lines(a.section["client"]) {
		l = strings.TrimSuffix(l, "\n")
		if s.session == nil {
			s.open(cfg, l)
		} else {
			s.play(l)
		}
		synctest.Wait()
	}
	if s.session == nil {
		t.Fatal("nobody has started a session")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, l := range s.lines {
		if l.after > 0 {
			fmt.Fprintf(&b, "@%v\n", l.after)
		}
		if len(s.actors) > 1 {
			fmt.Fprintf(&b, "%s: ", l.who)
		}
		fmt.Fprintln(&b, l.text)
	}
	select {
	case <-s.ended:
		fmt.Fprintln(&b, "@ended")
	default:
	}
	return b.String()
}

// open makes the session as the gateway does: with the settings of the first event, or not at all.
func (s *stage) open(cfg session.Config, text string) {
	s.t.Helper()
	envelope, err := protocol.DecodeEnvelope([]byte(text), protocol.Client)
	ask, ok := envelope.Message.(protocol.SessionStart)
	if err != nil || !ok {
		s.t.Fatalf("the first event is %s: %v", text, err)
	}
	sess := session.New(cfg)
	if err := sess.Configure(ask); err != nil {
		s.write("one", fmt.Sprintf("@refused %v", err))
		return
	}
	s.session = sess
	ctx, cancel := context.WithCancelCause(s.t.Context())
	s.cancel = cancel
	go func() {
		defer close(s.ended)
		sess.Run(ctx)
	}()
	s.t.Cleanup(func() {
		cancel(nil)
		<-s.ended
	})
	s.join("one", session.Hello{})
}

// join brings somebody new.
func (s *stage) join(name string, h session.Hello) {
	s.t.Helper()
	if s.actors[name] != nil {
		s.t.Fatalf("%s came before", name)
	}
	a := &actor{name: name, stage: s}
	s.actors[name] = a
	if h.Seat == session.Socket {
		s.turn = a
	}
	if err := s.session.Join(s.t.Context(), a, h); err != nil {
		s.t.Fatal(err)
	}
}

// play does what one line of a transcript says.
func (s *stage) play(text string) {
	s.t.Helper()
	who := s.turn
	if name, rest, ok := strings.Cut(text, ": "); ok && s.actors[name] != nil {
		who, text = s.actors[name], rest
	}
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "@sleep":
		time.Sleep(duration(s.t, rest))
	case "@join":
		h := session.Hello{}
		if rest == "room" {
			h.Seat = session.Room
		}
		s.join(rest, h)
	case "@resume":
		name, after, _ := strings.Cut(rest, " ")
		s.join(name, session.Hello{Resume: true, After: serial(s.t, after)})
	case "@audio":
		s.receive(who, "", protocol.InputAudioAppend{Chunk: base64Of(sound(s.t, rest))})
	case "@binary":
		s.receive(who, "", session.Audio{PCM: sound(s.t, rest)})
	case "@bytes":
		s.receive(who, "", session.Audio{PCM: make([]byte, number(s.t, rest))})
	case "@quiet", "@cough", "@words":
		for piece := range mic(levels[verb], duration(s.t, rest)) {
			s.receive(who, "", piece)
			time.Sleep(micPiece)
			synctest.Wait()
		}
	case "@source":
		words := strings.SplitN(rest, " ", 3)
		payload, err := signal.DecodePayload(words[1], []byte(words[2]))
		if err != nil {
			s.t.Fatal(err)
		}
		s.others.says(words[0], payload)
	case "@leave":
		s.session.Leave(who)
	case "@shutdown":
		s.cancel(fmt.Errorf("a signal came: %w", session.ErrShutdown))
	case "@crash":
		s.cancel(errors.New("something else broke"))
	default:
		s.frame(who, text)
	}
}

// frame goes the way that a socket's messages do.
func (s *stage) frame(who *actor, text string) {
	s.t.Helper()
	envelope, err := protocol.DecodeEnvelope([]byte(text), protocol.Client)
	if err == nil {
		s.receive(who, envelope.ID, envelope.Message)
		return
	}
	if err := s.session.Reject(s.t.Context(), who, envelope.ID, err); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) receive(who *actor, id string, m protocol.Message) {
	s.t.Helper()
	if err := give(s.t.Context(), s.session, who, id, m); err != nil {
		s.t.Fatal(err)
	}
}

// sound is silence, as "20ms" or "20ms 48000" have it.
func sound(t *testing.T, text string) []byte {
	t.Helper()
	length, rate, _ := strings.Cut(text, " ")
	hz := speech.Rate
	if rate != "" {
		hz = number(t, rate)
	}
	return speech.Bytes(make([]int16, speech.Count(duration(t, length), hz)))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// version2 is cfg as a session of version 2.
func version2(cfg session.Config) session.Config {
	cfg.ID, cfg.Version, cfg.Token = sessionID, 2, "the-token"
	if cfg.Mock == nil {
		cfg.Mock = deterministic.Engine{}
	}
	return cfg
}

// configOf2 reads a transcript's session.
func configOf2(t *testing.T, text string) session.Config {
	t.Helper()
	times, engine, recogniser, rest := map[string]time.Duration{}, turn.Engine(nil), session.Transcriber(nil), ""
	var ponder, filler []string
	var voices []session.Synthesizer
	detects, follows := false, false
	for l := range strings.Lines(text) {
		key, value, _ := strings.Cut(l, ":")
		value = strings.TrimSpace(value)
		switch {
		case key == "window" || key == "idle" || key == "silence" || key == "recognise":
			times[key] = duration(t, value)
		case key == "detector" && value == "loud":
			detects = true
		case key == "follows" && value == "yes":
			follows = true
		case key == "ponder":
			ponder = strings.Split(value, " | ")
		case key == "filler":
			filler = strings.Split(value, " | ")
		case key == "voice" && value == "taps":
			voices = []session.Synthesizer{voiceFunc(taps)}
		case key == "engine" && engines2[value] != nil:
			engine = engines2[value]
		case key == "recogniser" && recognisers2[value] != nil:
			recogniser = recognisers2[value]
		default:
			rest += l
		}
	}
	cfg := configOf(t, rest)
	cfg.Window, cfg.Idle, cfg.AgentSilent, cfg.Recognise = times["window"], times["idle"], times["silence"], times["recognise"]
	if engine != nil {
		cfg.Agents = agents(engine)
	}
	for i := range cfg.Agents {
		cfg.Agents[i].Ponder, cfg.Agents[i].Filler = ponder, filler
	}
	cfg.Voices = named(voices...)
	if recogniser != nil {
		cfg.Transcriber = recogniser
	}
	if detects {
		cfg.Detector = loud
	}
	if follows {
		cfg.Follow = new(others).follow
	}
	return version2(cfg)
}

var engines2 = map[string]turn.Engine{
	"remembers": engine(func(_ context.Context, req turn.Request, yield yieldSignal) {
		_ = yield(delta(fmt.Sprintf("I know %d parts.", len(req.History))), nil) && yield(done, nil)
	}),
	// It looks at files, changes one, and tries what does not work: with the pauses in which a person watches.
	"looks and changes": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for _, step := range []struct {
			after        time.Duration
			id, name, in string
			success      bool
			out          string
		}{
			{0, "c1", "read_file", `{"path":"session/fsm.go"}`, true, `{"path":"session/fsm.go","content":"package session\n"}`},
			{200 * time.Millisecond, "c2", "Read", `{"file_path":"README.md"}`, true, `{"content":"# Vela\n"}`},
			{400 * time.Millisecond, "c3", "read_file", `{"path":"notes"}`, true, `{"path":"notes","content":"todo\n"}`},
			{0, "c4", "grep", `{"pattern":"func .*"}`, true, `{"content":"session/fsm.go:12:func newMachine() *machine {"}`},
			{0, "c5", "edit_file", `{"path":"a.txt","old_string":"one","new_string":"two"}`, true, `{"path":"a.txt","content":"Done.","diff":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"}`},
			{0, "c6", "bash", `{"command":"make test"}`, false, `{"error":"exit status 1"}`},
		} {
			if sleep(ctx, step.after) != nil ||
				!yield(signal.ToolCall{ToolName: step.name, AgentID: "test", CallID: step.id, Input: []byte(step.in)}, nil) ||
				!yield(signal.ToolResult{ToolName: step.name, AgentID: "test", CallID: step.id, Success: step.success, Output: []byte(step.out)}, nil) {
				return
			}
		}
		_ = yield(delta("Done."), nil) && yield(done, nil)
	}),
	// It fails when it has been silent for half a second.
	"fails late": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if sleep(ctx, 500*time.Millisecond) == nil {
			yield(nil, errSecret)
		}
	}),
	"runs for ever": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		if yield(signal.ToolCall{ToolName: "bash", AgentID: "test", CallID: "c1", Input: []byte(`{"command":"make"}`)}, nil) {
			<-ctx.Done()
		}
	}),
	// It is silent before it speaks, while it speaks, and while a tool runs.
	"takes its time": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for _, step := range []struct {
			after time.Duration
			p     signal.Payload
		}{
			{7 * time.Second, delta("I will look.")},
			{4 * time.Second, signal.ToolCall{ToolName: "bash", AgentID: "test", CallID: "c1", Input: []byte(`{"command":"sleep 7"}`)}},
			{7 * time.Second, signal.ToolResult{ToolName: "bash", AgentID: "test", CallID: "c1", Success: true, Output: []byte(`{"content":""}`)}},
			{4 * time.Second, delta(" Done.")},
			{4 * time.Second, done},
		} {
			if sleep(ctx, step.after) != nil || !yield(step.p, nil) {
				return
			}
		}
	}),
	// It calls a tool twice, asks a model three times, and lets the client see what it can.
	"works hard": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for _, p := range []signal.Payload{
			signal.AgentStateChange{AgentID: "test", From: signal.AgentIdle, To: signal.AgentThinking},
			signal.Thinking{AgentID: "test", Content: "It wants"},
			signal.Thinking{AgentID: "test", Content: " a file."},
			signal.TokenUsage{AgentID: "test", PromptTokens: 10, CompletionTokens: 2},
			signal.ToolCall{ToolName: "read", AgentID: "test", CallID: "c1", Input: []byte(`{"path":"notes.txt"}`)},
			signal.ToolResult{ToolName: "read", AgentID: "test", CallID: "c1", Success: false},
			delta("It is not there;"),
			signal.TokenUsage{AgentID: "test", PromptTokens: 20, CompletionTokens: 5},
			signal.ToolCall{ToolName: "list", AgentID: "test", CallID: "c2"},
			signal.ToolResult{ToolName: "list", AgentID: "test", CallID: "c2", Success: true, Output: []byte(`{"files":["todo.txt"]}`)},
			delta(" but there is todo.txt."),
			signal.TokenUsage{AgentID: "test", PromptTokens: 30, CompletionTokens: 7},
			done,
		} {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}),
}

// levels are what an open microphone may hear.
var levels = map[string]int16{"@quiet": quiet, "@cough": cough, "@words": words}

// taps speaks four samples for each byte, at 8 kHz, so that what it speaks of a sentence is a line to read.
func taps(_ context.Context, text string, yield func(speech.Chunk, error) bool) {
	yield(speech.Chunk{Samples: make([]int16, 4*len(text)), Rate: 8000}, nil)
}

var recognisers2 = map[string]session.Transcriber{
	"ears":   recogniser(ears),
	"counts": recogniser(counts),
	"hears nothing in 2s": recogniser(func(ctx context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
		for range audio {
		}
		select {
		case <-time.After(2 * time.Second):
			yield(speech.Transcript{Final: true}, nil)
		case <-ctx.Done():
		}
	}),
	"measures": recogniser(func(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
		n := 0
		for samples := range audio {
			n += len(samples)
		}
		yield(speech.Transcript{Text: fmt.Sprintf("%d samples, %v", n, speech.Duration(n, speech.Rate)), Final: true}, nil)
	}),
}

// Every event of the contract stands in some transcript of version 2, but for what no session shows.
func TestTranscripts2ShowTheWholeContract(t *testing.T) {
	var client, server []byte
	for _, file := range transcripts2(t) {
		a := readTranscript(t, file)
		client = append(client, a.section["client"]...)
		server = append(server, a.section["server"]...)
	}
	later := map[string]bool{"signal": true, "signal.missed": true} // a connection's own affair
	for _, e := range protocol.Events() {
		where := server
		if e.From == protocol.Client {
			where = client
		}
		if stands := bytes.Contains(where, []byte(`{"type":"`+e.Type+`"`)); stands == later[e.Type] {
			t.Errorf("%s stands in a transcript: %t", e.Type, stands)
		}
	}
	for _, reason := range []protocol.CancelReason{protocol.CancelClient, protocol.CancelBargeIn, protocol.CancelError, protocol.CancelShutdown} {
		if !bytes.Contains(server, []byte(`"reason":"`+reason+`","heardText"`)) {
			t.Errorf("no answer ends with %s", reason)
		}
	}
	for _, reason := range []protocol.EndReason{protocol.EndClosed, protocol.EndIdle, protocol.EndShutdown, protocol.EndError} {
		if !bytes.Contains(server, []byte(`"session.ended","payload":{"reason":"`+reason+`"`)) {
			t.Errorf("no session ends with %s", reason)
		}
	}
}

func serial(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
