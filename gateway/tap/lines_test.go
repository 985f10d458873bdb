package tap

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"vela/protocol/signal"
)

func lines(text bool) Lines {
	return Lines{Text: text, NewID: func() string { return "id" }, Now: func() time.Time { return time.UnixMilli(1000) }}
}

// shown is a signal's JSON behind its id and its time.
func shown(r signal.Raw) string {
	return strings.TrimPrefix(string(r.Append(nil)), `{"id":"id",`)
}

func TestLinesOfJSON(t *testing.T) {
	const of = `,"timestamp":1000,"source":"adapter:tap:jsonl",`
	for line, want := range map[string]string{
		`{"type":"tool_call","toolName":"ls","agentId":"me","input":{"a": 1}}`: `"type":"tool_call"` + of + `"payload":{"toolName":"ls","agentId":"me","input":{"a": 1}}}`,
		` {"agentId":"me", "type" : "thinking","content":"h\u006d"} ` + "\r":   `"type":"thinking"` + of + `"payload":{"agentId":"me","content":"h\u006d"}}`,
		`{"type":"completion"}`:                   `"type":"completion"` + of + `"payload":{}}`,
		`{"type":"step","agentId":"me","n":1.50}`: `"type":"text_delta"` + of + `"metadata":{"raw":{"type":"step","agentId":"me","n":1.50},"originalType":"step"},"payload":{"agentId":"me","content":"{\"type\":\"step\",\"agentId\":\"me\",\"n\":1.50}"}}`,
		`{ "a" : [ 1 ] }`:                         `"type":"text_delta"` + of + `"metadata":{"raw":{"a":[1]}},"payload":{"agentId":"unknown","content":"{\"a\":[1]}"}}`,
		`{"type":"user.click","target":"x"}`:      `"type":"text_delta"` + of + `"metadata":{"raw":{"type":"user.click","target":"x"},"originalType":"user.click"},"payload":{"agentId":"unknown","content":"{\"type\":\"user.click\",\"target\":\"x\"}"}}`,
		`{"type":7,"agentId":""}`:                 `"type":"text_delta"` + of + `"metadata":{"raw":{"type":7,"agentId":""}},"payload":{"agentId":"unknown","content":"{\"type\":7,\"agentId\":\"\"}"}}`,
		`[1]`:                                     `"type":"text_delta"` + of + `"metadata":{"raw":[1]},"payload":{"agentId":"unknown","content":"[1]"}}`,
		``:                                        "", `  `: "", `null`: "", `hello`: "", `{"type":`: "", `{} {}`: "",
	} {
		r, ok := lines(false).Signal([]byte(line))
		if ok != (want != "") || ok && shown(r) != want {
			t.Errorf("%s\n is %v %s\nwant    %s", line, ok, shown(r), want)
		}
	}
}

func TestLinesOfText(t *testing.T) {
	for line, want := range map[string]string{
		"TypeError: x is not a function": `"error" {"agentId":"unknown","message":"TypeError: x is not a function","severity":"error"}`,
		"3 tests failed":                 `"error" {"agentId":"unknown","message":"3 tests failed","severity":"error"}`,
		"java.lang.exception: no":        `"error" {"agentId":"unknown","message":"java.lang.exception: no","severity":"error"}`,
		"Calling tool: ls -l":            `"tool_call" {"toolName":"ls","agentId":"unknown"}`,
		"now using:grep":                 `"tool_call" {"toolName":"grep","agentId":"unknown"}`,
		"Using:":                         `"tool_call" {"toolName":"unknown","agentId":"unknown"}`,
		"Result: Error: none":            `"error" {"agentId":"unknown","message":"Result: Error: none","severity":"error"}`,
		"Using: x, Output: y":            `"tool_call" {"toolName":"x,","agentId":"unknown"}`,
		"  output: <4> \r":               `"tool_result" {"toolName":"unknown","agentId":"unknown","success":true,"output":{"raw":"output: \u003c4\u003e"}}`,
		"error without a colon":          `"text_delta" {"agentId":"unknown","content":"error without a colon"}`,
		`{"type":"thinking"}`:            `"text_delta" {"agentId":"unknown","content":"{\"type\":\"thinking\"}"}`,
		"\xff":                           `"text_delta" {"agentId":"unknown","content":"` + "\ufffd" + `"}`,
		" \t":                            "",
	} {
		r, ok := lines(true).Signal([]byte(line))
		if got := `"` + r.Type + `" ` + string(r.Payload); ok != (want != "") || ok && (got != want || r.Source != "adapter:tap:raw") {
			t.Errorf("%q\n is %v %s of %s\nwant    %s", line, ok, got, r.Source, want)
		}
	}
}

func TestLinesSayWhoseTheyAre(t *testing.T) {
	for _, text := range []bool{true, false} {
		l := lines(text)
		l.Source, l.CorrelationID = "nightly", "run 7"
		if r, _ := l.Signal([]byte("[]")); r.Source != "nightly" || r.CorrelationID != "run 7" {
			t.Errorf("%+v", r)
		}
	}
}

// Whatever is printed makes a signal that a gateway understands as one, or none.
func FuzzLines(f *testing.F) {
	for _, line := range []string{`{"type":"tool_call","input":{}}`, `{"type":"x","type":"error"}`, "Using: \x00", "[[[1]]]", `{"\u0074ype":"error"}`, "\xff"} {
		f.Add([]byte(line), true)
		f.Add([]byte(line), false)
	}
	f.Fuzz(func(t *testing.T, line []byte, text bool) {
		r, ok := lines(text).Signal(line)
		if !ok {
			return
		}
		sent := r.Append(nil)
		if !json.Valid(sent) {
			t.Fatalf("%q is sent as %q", line, sent)
		}
		if err := signal.Check(r); err != nil && !strings.Contains(err.Error(), "the payload of") {
			t.Fatalf("%q: %v", line, err)
		}
	})
}
