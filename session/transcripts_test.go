package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

var update = flag.Bool("update", false, "write what the server shows into the transcripts")

// TestTranscripts replays testdata/transcripts: each begins with a sentence for the reader, then come
//
//   - session, if it is not the deterministic one at pace 0: "pace: 120ms"; "turns: agent" with an engine and a
//     recogniser from the tables below, or what is heard as "hears: first partial | second partial | final"; "max
//     audio: 1s";
//   - client, one message a line, sent as it stands, each once nothing moves any more; or @sleep 250ms, @audio 20ms
//     (an append with so much silence), @empty (an empty message), @leave, @shutdown, @crash;
//   - server, what a client of version 1 is shown, written by go test ./session -update and read by a person: one
//     message a line; @120ms is how much time passes before what follows, @closed how the peer was closed, and
//     @ended that the session is over.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := readTranscript(t, file)
			got := ""
			synctest.Test(t, func(t *testing.T) { got = replay(t, a) })
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

// transcript is a file in the txtar format, of which this is all that is needed here.
type transcript struct {
	comment string
	section map[string]string
}

func readTranscript(t *testing.T, file string) transcript {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := transcript{section: map[string]string{}}
	into := ""
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		name, closed := strings.CutSuffix(name, " --")
		switch {
		case ok && closed:
			into = name
		case into == "":
			a.comment += line
		default:
			a.section[into] += line
		}
	}
	if a.comment == "" || a.section["client"] == "" {
		t.Fatalf("%s: wants a sentence for the reader and a client", file)
	}
	return a
}

func (a transcript) write(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.comment)
	for _, name := range []string{"session", "client", "server"} {
		if text, ok := a.section[name]; ok {
			fmt.Fprintf(&b, "-- %s --\n%s", name, text)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replay plays the client and returns what it was shown.
func replay(t *testing.T, a transcript) string {
	t.Helper()
	began := time.Now()
	c := start(t, configOf(t, a.section["session"]))
	c.join()
	for line := range strings.Lines(a.section["client"]) {
		synctest.Wait()
		c.play(strings.TrimSuffix(line, "\n"))
	}
	synctest.Wait()

	var b strings.Builder
	passed := func(now time.Time) {
		if d := now.Sub(began); d > 0 {
			fmt.Fprintf(&b, "@%v\n", d)
			began = now
		}
	}
	for i, e := range c.shown {
		passed(c.times[i])
		fmt.Fprintf(&b, "%s\n", protocol.Encode(e.Message))
	}
	for _, why := range c.closed {
		passed(c.closedAt)
		fmt.Fprintf(&b, "@closed %s\n", why)
	}
	select {
	case <-c.ended:
		fmt.Fprintln(&b, "@ended")
	default:
	}
	return b.String()
}

// play does what one line of a transcript says. A message goes the way that a socket's does.
func (c *client) play(line string) {
	c.t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "@sleep":
		time.Sleep(duration(c.t, rest))
	case "@audio":
		c.send(silence(duration(c.t, rest)))
	case "@empty":
		c.frame("")
	case "@leave":
		c.session.Leave(c)
	case "@shutdown":
		c.cancel(fmt.Errorf("a signal came: %w", session.ErrShutdown))
	case "@crash":
		c.cancel(errors.New("something else broke"))
	default:
		c.frame(line)
	}
}

func (c *client) frame(text string) {
	c.t.Helper()
	message, err := protocol.Decode([]byte(text), protocol.Client)
	if err == nil {
		c.send(message)
		return
	}
	if err := c.session.Reject(c.t.Context(), c, "", err); err != nil {
		c.t.Fatal(err)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// configOf reads a transcript's session.
func configOf(t *testing.T, text string) session.Config {
	t.Helper()
	var cfg session.Config
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		known := true
		switch key {
		case "pace":
			cfg.Mock = deterministic.Engine{Pace: duration(t, value)}
		case "turns":
			cfg.Turns = session.Turns(value)
		case "engine":
			known = engines[value] != nil
			cfg.Agents = agents(engines[value])
		case "recogniser":
			cfg.Transcriber, known = recognisers[value]
		case "hears":
			texts := strings.Split(value, "|")
			for i := range texts {
				texts[i] = strings.TrimSpace(texts[i])
			}
			cfg.Transcriber = hears(texts[len(texts)-1], texts[:len(texts)-1]...)
		case "max audio":
			cfg.MaxAudio = duration(t, value)
		default:
			known = false
		}
		if !known {
			t.Fatalf("no such setting: %s", line)
		}
	}
	return cfg
}

type yieldSignal = func(signal.Payload, error) bool

var engines = map[string]turn.Engine{
	"echo": echo.Engine{},
	"works": engine(func(_ context.Context, _ turn.Request, yield yieldSignal) {
		_ = yield(signal.AgentStateChange{AgentID: "test", From: signal.AgentIdle, To: signal.AgentThinking}, nil) &&
			yield(signal.Thinking{AgentID: "test", Content: "It wants the time."}, nil) &&
			yield(signal.ToolCall{ToolName: "clock", AgentID: "test", CallID: "1", Input: json.RawMessage(`{}`)}, nil) &&
			yield(signal.ToolResult{ToolName: "clock", AgentID: "test", CallID: "1", Success: true}, nil) &&
			yield(delta("It is noon."), nil) &&
			yield(signal.TokenUsage{AgentID: "test", PromptTokens: 5, CompletionTokens: 3}, nil) &&
			yield(done, nil)
	}),
	"says nothing": says(),
	"asks": engine(func(ctx context.Context, req turn.Request, yield yieldSignal) {
		answer, err := req.Ask(ctx, turn.Question{CallID: "1", Name: "delete", Summary: "Delete everything?", Risky: true})
		_ = yield(delta(fmt.Sprintf("allowed: %t, remembered: %t, error: %v", answer.Allow, answer.Remember, err)), nil) &&
			yield(done, nil)
	}),
	"fails": engine(func(_ context.Context, _ turn.Request, yield yieldSignal) {
		_ = yield(delta("Once upon"), nil) && yield(nil, errSecret)
	}),
	"fails at once": engine(func(_ context.Context, _ turn.Request, yield yieldSignal) {
		yield(nil, fmt.Errorf("vendor: ask: %w", wordsError{protocol.CodeAgentUnavailable, "The agent cannot be reached. Try again."}))
	}),
	"stops": engine(func(_ context.Context, _ turn.Request, yield yieldSignal) {
		yield(delta("Once upon"), nil)
	}),
	"panics": engine(func(_ context.Context, _ turn.Request, yield yieldSignal) {
		yield(delta("Once upon"), nil)
		panic(errSecret)
	}),
	"falls silent": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		yield(delta("Once upon"), nil)
		<-ctx.Done()
	}),
	"slow": engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for _, text := range []string{"One", " two", " three"} {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return
			}
			if !yield(delta(text), nil) {
				return
			}
		}
		yield(done, nil)
	}),
}

type yieldTranscript = func(speech.Transcript, error) bool

var recognisers = map[string]session.Transcriber{
	"fails": recogniser(func(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
		for range audio {
			yield(speech.Transcript{}, errSecret)
			return
		}
	}),
	"is busy": recogniser(func(_ context.Context, _ iter.Seq[[]int16], yield yieldTranscript) {
		yield(speech.Transcript{}, wordsError{protocol.CodeSpeechUnavailable, "Every recogniser is busy. Try again."})
	}),
	"panics": recogniser(func(_ context.Context, audio iter.Seq[[]int16], _ yieldTranscript) {
		for range audio {
		}
		panic(errSecret)
	}),
	"stops": recogniser(func(_ context.Context, audio iter.Seq[[]int16], _ yieldTranscript) {
		for range audio {
		}
	}),
	"ends by itself": recogniser(func(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
		for range audio {
			yield(speech.Transcript{Text: "enough", Final: true}, nil)
			return
		}
	}),
	"takes 2s": recogniser(func(ctx context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
		for range audio {
		}
		select {
		case <-time.After(2 * time.Second):
			yield(speech.Transcript{Text: "at last", Final: true}, nil)
		case <-ctx.Done():
		}
	}),
	"never ends": recogniser(func(ctx context.Context, audio iter.Seq[[]int16], _ yieldTranscript) {
		for range audio {
		}
		<-ctx.Done()
	}),
}

// Every event of version 1 that the gateway sends stands in some transcript, and every one that a client sends; those
// of version 2 stand in the transcripts of transcripts2_test.go.
func TestTranscriptsShowTheWholeContract(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := []byte{}
	for _, file := range files {
		a := readTranscript(t, file)
		all = append(all, a.section["client"]+a.section["server"]...)
	}
	for _, e := range protocol.Events() {
		if e.Since == 1 && !bytes.Contains(all, []byte(`{"type":"`+e.Type+`"`)) {
			t.Errorf("%s stands in no transcript", e.Type)
		}
	}
	for _, code := range protocol.Codes() {
		switch code.Code {
		case protocol.CodeSessionLimit, protocol.CodeInternal:
			continue // the gateway says these before there is a session, and when nothing better is known
		case protocol.CodeTurnInterrupted, protocol.CodeUnsupported, protocol.CodeSessionGone:
			continue // only a client of version 2 is told these
		}
		if !bytes.Contains(all, []byte(`"code":"`+code.Code+`"`)) {
			t.Errorf("error %s stands in no transcript", code.Code)
		}
	}
}
