package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"vela/protocol/signal"
	"vela/turn/anthropic"
	"vela/turn/openai"
	"vela/turn/stream"
)

var update = flag.Bool("update", false, "write the golden files anew; read them before they are kept")

// stamp counts ids, and its clock stands still.
func stamp() Stamp {
	n := 0
	return Stamp{
		NewID: func() string { n++; return fmt.Sprint("id-", n) },
		Now:   func() time.Time { return time.UnixMilli(1_700_000_000_000) },
	}
}

// golden compares signals, a line each, with a file; and holds each of them to the schema.
func golden(t *testing.T, file string, signals []signal.Raw) {
	t.Helper()
	var got bytes.Buffer
	for _, r := range signals {
		if err := signal.Check(r); err != nil {
			t.Errorf("%s: %v", r.Append(nil), err)
		}
		got.Write(r.Append(nil))
		got.WriteByte('\n')
	}
	text := madeUp.ReplaceAll(got.Bytes(), []byte(`"callId":"made up"`))
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s has other signals:\n%s", file, text)
	}
}

// madeUp are the ids of calls to which a server gave none.
var madeUp = regexp.MustCompile(`"callId":"call_[0-9a-f]{32}"`)

func lines(t testing.TB, file string) [][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][]byte
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8<<20)
	for s.Scan() {
		all = append(all, bytes.Clone(s.Bytes()))
	}
	if err := s.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, %v", file, len(all), err)
	}
	return all
}

func TestPlain(t *testing.T) {
	p := Plain{Stamp: stamp(), Source: "remote:1"}
	for message, want := range map[string]string{
		`{"id":"1","type":"x","timestamp":5,"source":"s","payload":{}}`: `"source":"s"`,
		`{"type":"x"}`: `"source":"remote:1"`,
		`{"type":"user.click","payload":{"target":"e"}}`: `"type":"user.click"`,
		`{"type":"x","meta":"m"}`:                        `"type":"x"`,
		`hello`:                                          `"code":"not_json"`,
		`{"type":"thinking"}`:                            `"code":"invalid_payload"`,
		`{"a":1}`:                                        `"code":"no_type"`,
		`{"meta":""}`:                                    `"code":"no_type"`,
		`{"meta":0}`:                                     `"code":"no_type"`,
		`{"meta":false}`:                                 `"code":"no_type"`,
		`{"meta":null}`:                                  `"code":"no_type"`,
		`{"meta":"scenarios","available":["a"]}`:         "",
		`{"meta":1}`:                                     "",
		`{"meta":true}`:                                  "",
		`{"meta":{}}`:                                    "",
	} {
		r, ok := p.Parse([]byte(message))
		if ok != (want != "") || !strings.Contains(string(r.Append(nil)), want) {
			t.Errorf("%s: %v, %s", message, ok, r.Append(nil))
		}
	}
}

func TestMessages(t *testing.T) {
	for name, x := range map[string]struct {
		body, mediaType string
		want            []string
	}{
		"an event stream":                  {": hello\n\nevent: x\ndata: {\"a\":1}\nid: 7\n\ndata: one\ndata: two\n\ndata: [DONE]\n\n", "text/event-stream", []string{`{"a":1}`, "one\ntwo"}},
		"one that does not say so":         {"\n\ndata: {\"a\":1}\r\n\r\n", "text/plain", []string{`{"a":1}`}},
		"one that begins with a remark":    {":ok\n\ndata: 1\n\n", "", []string{"1"}},
		"lines of JSON":                    {"{\"a\":1}\n\n  {\"b\":2}\r\n{\"c\":3}", "application/x-ndjson", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}},
		"lines that do not say so":         {"{\"a\":1}\n{\"b\":2}\n", "", []string{`{"a":1}`, `{"b":2}`}},
		"lines with a word of event lines": {"{\"data\":1}\n", "", []string{`{"data":1}`}},
		"nothing":                          {"", "", nil},
		"an event that is cut off":         {"data: 1\n\ndata: 2", "text/event-stream", []string{"1"}},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(name, slow), func(t *testing.T) {
				var r io.Reader = strings.NewReader(x.body)
				if slow && !strings.HasPrefix(name, "one that") { // which are told by their first bytes
					r = iotest.OneByteReader(r)
				}
				var got []string
				for m, err := range Messages(r, x.mediaType) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(m.Data))
				}
				if !slices.Equal(got, x.want) {
					t.Errorf("got %q, want %q", got, x.want)
				}
			})
		}
	}
	broken := errors.New("broken")
	for _, mediaType := range []string{"", "text/event-stream", "application/x-ndjson"} {
		for _, text := range []string{"", "data: 1\n\n"} {
			var last error
			for _, err := range Messages(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), mediaType) {
				last = err
			}
			if !errors.Is(last, broken) {
				t.Errorf("%q as %q ends with %v", text, mediaType, last)
			}
		}
	}
}

// What vendors' streams come to as signals. The streams are those that their packages are tested with.
func TestExchanges(t *testing.T) {
	for vendor, parse := range map[Protocol]func(string, iter.Seq2[stream.Event, error]) iter.Seq2[signal.Payload, error]{OpenAI: openai.Parse, Anthropic: anthropic.Parse} {
		files, err := filepath.Glob("../../turn/" + string(vendor) + "/testdata/*.sse")
		if err != nil || len(files) == 0 {
			t.Fatal("no recordings", err)
		}
		var all []signal.Raw
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			id := strings.TrimSuffix(filepath.Base(file), ".sse")
			x := Exchange{Stamp: stamp(), Protocol: vendor, Model: "model", ID: id}
			answer := slices.Collect(x.Signals(t.Context(), "What now?", parse("model", stream.Events(bytes.NewReader(text)))))
			ends := 0
			for i, r := range answer {
				if r.CorrelationID != id {
					t.Errorf("%s: %s is of another exchange", id, r.Append(nil))
				}
				if r.Type == "completion" || r.Type == "error" {
					if ends++; i != len(answer)-1 {
						t.Errorf("%s: something comes after %s", id, r.Append(nil))
					}
				}
			}
			if ends != 1 || answer[0].Type != "task_dispatch" {
				t.Errorf("%s: %d ends, and a %s at the begin", id, ends, answer[0].Type)
			}
			all = append(all, answer...)
		}
		golden(t, "testdata/"+string(vendor)+".golden", all)
	}
}

func TestAnExchangeThatIsStoppedSaysNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answer := func(yield func(signal.Payload, error) bool) {
		if yield(signal.TextDelta{AgentID: "m", Content: "a"}, nil) {
			cancel()
			if yield(signal.TextDelta{AgentID: "m", Content: "b"}, nil) {
				yield(nil, context.Cause(ctx))
			}
		}
	}
	var got []string
	for r := range (Exchange{Stamp: stamp(), Protocol: OpenAI, Model: "m", ID: "x"}).Signals(ctx, "?", answer) {
		got = append(got, r.Type)
	}
	if want := []string{"task_dispatch", "text_delta"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	quiet := func(yield func(signal.Payload, error) bool) { // an answer that ends without a word about its context
		if yield(signal.TextDelta{AgentID: "m", Content: "a"}, nil) {
			cancel()
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	for r := range (Exchange{Stamp: stamp(), Protocol: OpenAI, Model: "m", ID: "x"}).Signals(ctx, "?", quiet) {
		if r.Type == "completion" {
			t.Error("an answer that was stopped is a good one")
		}
	}
	for most := range 3 { // a reader that leaves
		n := 0
		for range (Exchange{Stamp: stamp(), Protocol: Anthropic, Model: "m", ID: "x"}).Signals(t.Context(), "?", func(yield func(signal.Payload, error) bool) {
			_ = yield(signal.Other{Name: "own"}, nil) && yield(signal.TextDelta{AgentID: "m", Content: "a"}, nil)
		}) {
			if n++; n > most {
				break
			}
		}
	}
}

// Whatever a vendor sends, what comes of it is valid.
func TestEverySealedSignalIsValid(t *testing.T) {
	s := stamp()
	for _, r := range []signal.Raw{
		s.seal("", "", nil, signal.Thinking{}),
		s.seal(strings.Repeat("é", 300), strings.Repeat("c", 999), nil, signal.Thinking{}),
		s.seal("m\xff", "c\xff", nil, signal.Thinking{Content: "\xff"}),
		s.seal("m", "c", nil, signal.TokenUsage{PromptTokens: -1}),
		s.seal("m", "c", nil, signal.ToolCall{Input: json.RawMessage(`[1]`)}),
		s.seal("m", "c", nil, signal.ToolCall{Input: json.RawMessage(`{`)}),
		s.seal("m", "c", nil, signal.Other{}),
		s.seal("m", "c", &signal.Channel{Meta: json.RawMessage(`7`)}, signal.Thinking{}),
	} {
		if err := signal.Check(r); err != nil || !utf8.Valid(r.Append(nil)) {
			t.Errorf("%s: %v", r.Append(nil), err)
		}
	}
}

func TestOpenClawFrames(t *testing.T) {
	files, err := filepath.Glob("../../turn/openclaw/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	var all []signal.Raw
	names := map[string]string{}
	for _, file := range files {
		o := OpenClaw{Stamp: stamp()}
		for _, l := range lines(t, file) {
			var one struct {
				Dir   string
				Frame json.RawMessage
			}
			if err := json.Unmarshal(l, &one); err != nil {
				t.Fatal(err)
			}
			if one.Dir != "recv" {
				continue
			}
			for _, r := range o.Parse(one.Frame) {
				all = append(all, r)
				e, err := r.Envelope()
				if err != nil {
					t.Fatal(err)
				}
				switch p := e.Payload.(type) {
				case signal.ToolCall:
					names[p.CallID] = p.ToolName
				case signal.ToolResult:
					if names[p.CallID] != p.ToolName || p.ToolName == "unknown" {
						t.Errorf("%s: the result of %q is of %q, the call of %q", file, p.CallID, p.ToolName, names[p.CallID])
					}
				}
			}
		}
	}
	golden(t, "testdata/openclaw.golden", all)
}

func TestHooks(t *testing.T) {
	var all []signal.Raw
	names := map[string]string{}
	s := stamp()
	for _, l := range lines(t, "testdata/claude-hooks.jsonl") {
		var one struct {
			Path string
			Body json.RawMessage
		}
		if err := json.Unmarshal(l, &one); err != nil {
			t.Fatal(err)
		}
		r, err := s.ParseHook(one.Body)
		var unknown UnknownHook
		if errors.As(err, &unknown) {
			if unknown != "UserPromptSubmit" && unknown != "SessionEnd" {
				t.Errorf("%s: %v", one.Path, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		e, err := r.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case signal.ToolCall:
			names[p.CallID] = p.ToolName
		case signal.ToolResult:
			if names[p.CallID] != p.ToolName {
				t.Errorf("the result of %q is of %q, the call of %q", p.CallID, p.ToolName, names[p.CallID])
			}
		}
	}
	golden(t, "testdata/claude-hooks.golden", all)
}

func TestHooksThatSayLittle(t *testing.T) {
	for body, want := range map[string]string{
		`{"hook_event_name":"PreToolUse"}`:                                                   `"type":"tool_call","timestamp":1700000000000,"source":"adapter:tap","payload":{"toolName":"unknown","agentId":"claude"}`,
		`{"hook_event_name":"PreToolUse","tool_name":"T","tool_input":[1],"session_id":"s"}`: `"correlationId":"s","payload":{"toolName":"T","agentId":"claude","input":{"input":[1]}}`,
		`{"hook_event_name":"PostToolUse","tool_name":"T","tool_response":""}`:               `"payload":{"toolName":"T","agentId":"claude","success":true}`,
		`{"hook_event_name":"PostToolUse","tool_name":"T","tool_response":"text"}`:           `"output":{"response":"text"}`,
		`{"hook_event_name":"PostToolUseFailure","tool_use_id":"c"}`:                         `"metadata":{"callId":"c","toolName":"unknown"},"payload":{"agentId":"claude","message":"Tool use failed","severity":"error"}`,
		`{"hook_event_name":"SubagentStart"}`:                                                `"payload":{"taskId":"unknown","from":"claude","to":"subagent"}`,
		`{"hook_event_name":"SubagentStop"}`:                                                 `"payload":{"taskId":"unknown","success":true}`,
		`{"hook_event_name":"Stop"}`:                                                         `"payload":{"agentId":"claude","from":"acting","to":"done"}`,
		`{"hook_event_name":"SessionStart"}`:                                                 `"payload":{"agentId":"claude","from":"idle","to":"thinking"}`,
		"{\"hook_event_name\":\"PreToolUse\",\"tool_input\":{\"a\":\"\xff\"}}":               "\"input\":{\"a\":\"\ufffd\"}",
		`{"hook_event_name":"Notification"}`:                                                 "", `{}`: "", `[]`: "", `{`: "", `{"hook_event_name":"Stop","x":"` + strings.Repeat("x", signal.MaxSize) + `"}`: "",
	} {
		r, err := stamp().ParseHook([]byte(body))
		if (err == nil) != (want != "") || !strings.Contains(string(r.Append(nil)), want) {
			t.Errorf("%.80s: %s, %v", body, r.Append(nil), err)
		}
		if err == nil && (r.ID != "tap-id-1" || signal.Check(r) != nil) {
			t.Errorf("%.80s: %s, %v", body, r.Append(nil), signal.Check(r))
		}
	}
}

func FuzzParsers(f *testing.F) {
	for _, l := range lines(f, "testdata/claude-hooks.jsonl") {
		var one struct{ Body json.RawMessage }
		if err := json.Unmarshal(l, &one); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(one.Body))
	}
	for _, l := range lines(f, "../../turn/openclaw/testdata/tool.jsonl") {
		var one struct{ Frame json.RawMessage }
		if err := json.Unmarshal(l, &one); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(one.Frame))
	}
	f.Add([]byte(`{"type":"event","event":"cron","payload":{"jobId":7}}`))
	f.Add([]byte(`{"type":"event","event":"session","payload":{"data":{"promptTokens":-5}}}`))
	f.Add([]byte("data: {\"type\":\"x\"}\n\n"))
	f.Fuzz(func(t *testing.T, message []byte) {
		s := stamp()
		valid := func(what string, r signal.Raw) {
			if err := signal.Check(r); err != nil || !utf8.Valid(r.Append(nil)) || !json.Valid(r.Append(nil)) {
				t.Fatalf("%s: %q: %v", what, r.Append(nil), err)
			}
		}
		if r, ok := (Plain{s, "s"}).Parse(message); ok {
			valid("plain", r)
		}
		if r, err := s.ParseHook(message); err == nil {
			valid("hook", r)
		}
		o := OpenClaw{Stamp: s}
		for range 2 {
			for _, r := range o.Parse(message) {
				valid("openclaw", r)
			}
		}
		for m, err := range Messages(bytes.NewReader(message), "") {
			if err == nil {
				if r, ok := (Plain{s, "s"}).Parse(m.Data); ok {
					valid("message", r)
				}
			}
		}
	})
}
