package openclaw

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/protocol/signal"
)

// agent and chat are frames of the run r.
func agent(stream, data string) string {
	return `{"type":"event","event":"agent","payload":{"runId":"r","sessionKey":"agent:ops:k","stream":"` + stream + `","data":` + data + `}}`
}

func chat(fields string) string {
	return `{"type":"event","event":"chat","payload":{"runId":"r","sessionKey":"agent:ops:k",` + fields + `}}`
}

// short is a signal in a few characters.
func short(p signal.Payload) string {
	switch p := p.(type) {
	case signal.TextDelta:
		return "text " + p.Content
	case signal.Thinking:
		return "thought " + p.Content
	case signal.ToolCall:
		return fmt.Sprintf("call %s %s %s", p.CallID, p.ToolName, p.Input)
	case signal.ToolResult:
		return fmt.Sprintf("result %s %s %v %s", p.CallID, p.ToolName, p.Success, p.Output)
	case signal.TokenUsage:
		return fmt.Sprintf("tokens %d %s", p.CompletionTokens, p.Model)
	case signal.Error:
		return fmt.Sprintf("error %s: %s", p.Code, p.Message)
	case signal.Completion:
		return fmt.Sprintf("end %v", p.Success)
	}
	return p.SignalType()
}

func TestWhatFramesSay(t *testing.T) {
	const end = `{"phase":"end","executionSettled":true}`
	for name, x := range map[string]struct {
		frames []string
		want   []string
	}{
		"text without the whole of it": {
			[]string{agent("assistant", `{"delta":"a"}`), agent("assistant", `{"delta":"b"}`)}, []string{"text a", "text b"},
		},
		"text without its last piece": {
			[]string{agent("assistant", `{"text":"a"}`), agent("assistant", `{"text":"ab"}`), agent("assistant", `{"text":"ab"}`)}, []string{"text a", "text b"},
		},
		"a lost frame": {
			[]string{agent("assistant", `{"text":"a","delta":"a"}`), agent("assistant", `{"text":"abc","delta":"c"}`)}, []string{"text a", "text bc"},
		},
		"a correction": {
			[]string{agent("assistant", `{"text":"two wrnog","delta":"two wrnog"}`), agent("assistant", `{"text":"two wrong","delta":"","replace":true}`), agent("assistant", `{"text":"two wrong words","delta":" words"}`)},
			[]string{"text two wrnog", "text \nwrong", "text  words"},
		},
		"text taken back": {
			[]string{agent("assistant", `{"text":"a b","delta":"a b"}`), agent("assistant", `{"text":"","replace":true}`), agent("assistant", `{"text":"a","replace":true}`), agent("assistant", `{"text":"a b c"}`)},
			[]string{"text a b", "text  c"},
		},
		"half of a character": {
			[]string{agent("assistant", `{"text":"a\ud83d"}`), agent("assistant", `{"text":"a\ud83d\ude00"}`)}, []string{"text a", "text 😀"},
		},
		"two messages": {
			[]string{agent("assistant", `{"text":"a","itemId":"1"}`), agent("assistant", `{"text":"a","itemId":"2"}`)}, []string{"text a", "text \n\na"},
		},
		"thoughts of two requests": {
			[]string{agent("thinking", `{"text":"ab"}`), agent("lifecycle", `{"phase":"model","model":"m"}`), agent("thinking", `{"text":"a"}`)}, []string{"thought ab", "thought a"},
		},
		"a preamble without an end": {
			[]string{agent("item", `{"kind":"preamble","phase":"update","progressText":"Look. Lo","itemId":"p"}`), agent("item", `{"kind":"preamble","phase":"update","progressText":"Look.","itemId":"p"}`), agent("tool", `{"phase":"start","name":"n","toolCallId":"c"}`), agent("item", `{"kind":"preamble","phase":"end","progressText":"Look.","itemId":"p"}`)},
			[]string{"text Look.", "call c n "},
		},
		"a preamble that was told as the answer": {
			[]string{agent("assistant", `{"text":"One.\n Two"}`), agent("assistant", `{"text":"One.\n Two.","itemId":""}`), agent("item", `{"kind":"preamble","phase":"end","progressText":"One. Two.","itemId":"p"}`)},
			[]string{"text One.\n Two", "text ."},
		},
		"a preamble of which half was told as the answer": {
			[]string{agent("assistant", `{"text":"One."}`), agent("item", `{"kind":"preamble","phase":"end","progressText":"One. Two.","itemId":"p"}`)}, []string{"text One.", "text  Two."},
		},
		"a preamble at the very end": {
			[]string{agent("item", `{"kind":"preamble","phase":"update","progressText":"Look.","itemId":"p"}`), agent("lifecycle", end)}, []string{"text Look.", "end true"},
		},
		"the names of older versions": {
			[]string{agent("tool", `{"phase":"start","toolName":"n","callId":"c","args":{"x":1}}`), agent("tool", `{"phase":"end","toolName":"n","callId":"c","success":false,"output":"no"}`)},
			[]string{`call c n {"x":1}`, `result c n false {"content":"no"}`},
		},
		"what is not UTF-8": {
			[]string{agent("tool", `{"phase":"start","name":"n","toolCallId":"c","args":{"x":"`+"\xff"+`"}}`)}, []string{"call c n {\"x\":\"\uFFFD\"}"},
		},
		"a tool told twice": {
			[]string{agent("item", `{"kind":"tool","phase":"start","toolCallId":"c","name":"n"}`), agent("tool", `{"phase":"start","toolCallId":"c","name":"n","args":{}}`), agent("tool", `{"phase":"result","toolCallId":"c","isError":true,"result":null}`), agent("item", `{"kind":"tool","phase":"end","toolCallId":"c","name":"n","status":"completed"}`)},
			[]string{"call c n {}", "result c n false "},
		},
		"a tool that only items tell of": {
			[]string{agent("item", `{"kind":"tool","phase":"start","toolCallId":"c","name":"n"}`), agent("item", `{"kind":"tool","phase":"end","toolCallId":"c","name":"n","status":"failed"}`)},
			[]string{"call c n ", "result c n false "},
		},
		"a result without a call": {
			[]string{agent("tool", `{"phase":"result","toolCallId":"c","name":"n","result":[1]}`)}, []string{"call c n ", `result c n true {"content":[1]}`},
		},
		"a long result": {
			[]string{agent("tool", `{"phase":"result","toolCallId":"c","name":"n","result":"`+strings.Repeat("x", maxObject)+`"}`)}, []string{"call c n ", fmt.Sprintf(`result c n true {"bytes":%d,"omitted":"too long"}`, maxObject+2)},
		},
		"tokens are counted for the run": {
			[]string{agent("usage", `{"outputTokens":9}`), agent("usage", `{"outputTokens":9}`), agent("usage", `{"outputTokens":19}`), agent("usage", `{"outputTokens":4}`)}, []string{"tokens 9 ", "tokens 10 ", "tokens 4 "},
		},
		"an answer that did not stream": {
			[]string{agent("lifecycle", `{"phase":"end","executionSettled":true,"terminalReply":{"disposition":"visible","text":"whole"}}`)}, []string{"text whole", "end true"},
		},
		"a silent answer": {
			[]string{agent("lifecycle", `{"phase":"end","executionSettled":true,"terminalReply":{"disposition":"silent","text":"NO_REPLY"}}`)}, []string{"end true"},
		},
		"an answer that is what was said before a tool": {
			[]string{agent("assistant", `{"text":"done"}`), agent("tool", `{"phase":"start","toolCallId":"c","name":"n"}`), agent("lifecycle", `{"phase":"end","executionSettled":true,"terminalReply":{"disposition":"visible","text":"done"}}`)},
			[]string{"text done", "call c n ", "end true"},
		},
		"an answer without an agent": {
			[]string{chat(`"state":"delta","deltaText":"st","message":{"content":[{"type":"text","text":"st"}]}`), chat(`"state":"final","message":{"content":[{"type":"text","text":"status"}]}`)}, []string{"text status", "end true"},
		},
		"the chat says the same": {
			[]string{agent("assistant", `{"text":"a"}`), chat(`"state":"delta","deltaText":"a"`), chat(`"state":"final","message":{"content":[{"type":"text","text":"a"}]}`)}, []string{"text a", "end true"},
		},
		"an end that may not be the last": {
			[]string{agent("lifecycle", `{"phase":"end"}`), agent("assistant", `{"text":"more"}`), chat(`"state":"final"`)}, []string{"text more", "end true"},
		},
		"an error that may be mended": {
			[]string{agent("lifecycle", `{"phase":"start"}`), agent("lifecycle", `{"phase":"error","error":"first"}`), agent("lifecycle", `{"phase":"start"}`), agent("assistant", `{"text":"a"}`), agent("lifecycle", end)},
			[]string{"agent_state_change", "text a", "end true"},
		},
		"an error that was not mended": {
			[]string{agent("lifecycle", `{"phase":"error","error":"first"}`), chat(`"state":"error","errorMessage":"last","errorDetail":{"failoverReason":"auth"}`), chat(`"state":"error","errorMessage":"again"`)}, []string{"error auth: last"},
		},
		"an error in an object": {
			[]string{agent("lifecycle", `{"phase":"error","executionSettled":true,"error":{"message":"m"},"errorObservation":{"failoverReason":"timeout"}}`)}, []string{"error timeout: m"},
		},
		"an error without words": {
			[]string{agent("lifecycle", `{"phase":"error","executionSettled":true}`)}, []string{"error : the run failed"},
		},
		"stopped, and the stray error after it": {
			[]string{chat(`"state":"aborted"`), agent("lifecycle", `{"phase":"end","aborted":true}`), agent("lifecycle", `{"phase":"error","aborted":true,"executionSettled":true,"error":"This operation was aborted"}`), agent("assistant", `{"text":"late"}`)}, []string{"end false"},
		},
		"a field of another type": {
			[]string{agent("assistant", `{"text":"a","itemId":7,"delta":["x"]}`)}, []string{"text a"},
		},
		"what is not known": {
			[]string{agent("compaction", `{"phase":"start"}`), agent("item", `{"kind":"plan","phase":"end"}`), agent("tool", `{"phase":"update","toolCallId":"c"}`), agent("assistant", `7`), chat(`"state":"status","phase":"x"`),
				`{"type":"event","event":"tick","payload":{}}`, `{"type":"event","event":"agent","payload":{"stream":"assistant","data":{"text":"of no run"}}}`, `{"type":"res","id":"1","ok":true}`}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var tr Translator
			var got []string
			for _, f := range x.frames {
				for _, s := range tr.Translate([]byte(f)) {
					got = append(got, short(s.Payload))
					if s.RunID != "r" || s.SessionKey != "agent:ops:k" {
						t.Errorf("%s is of the run %q of %q", short(s.Payload), s.RunID, s.SessionKey)
					}
				}
			}
			if strings.Join(got, "|") != strings.Join(x.want, "|") {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
		})
	}
}

func TestWhoTheAgentIs(t *testing.T) {
	for frame, want := range map[string]string{
		`{"type":"event","event":"agent","payload":{"runId":"r","agentId":"main","sessionKey":"agent:ops:k","stream":"assistant","data":{"text":"a"}}}`: "main",
		agent("assistant", `{"text":"a"}`): "ops",
		`{"type":"event","event":"agent","payload":{"runId":"r","stream":"assistant","data":{"text":"a"}}}`: "openclaw",
	} {
		var tr Translator
		if s := tr.Translate([]byte(frame)); len(s) != 1 || s[0].Payload.(signal.TextDelta).AgentID != want {
			t.Errorf("%s: %v, want %s", frame, s, want)
		}
	}
}

func TestATranslatorForgetsTheOldest(t *testing.T) {
	var tr Translator
	for i := range 3 * maxRuns {
		tr.Translate([]byte(strings.ReplaceAll(agent("assistant", `{"text":"a"}`), `"r"`, fmt.Sprintf(`"r%d"`, i))))
	}
	if len(tr.runs) != maxRuns || len(tr.order) != maxRuns {
		t.Errorf("%d runs are remembered, %d in order", len(tr.runs), len(tr.order))
	}
	tr.forget(fmt.Sprintf("r%d", 3*maxRuns-1))
	if len(tr.runs) != maxRuns-1 || len(tr.order) != maxRuns-1 {
		t.Errorf("%d runs are remembered, %d in order", len(tr.runs), len(tr.order))
	}
}

func TestCallsOfARunAreBounded(t *testing.T) {
	var p progress
	n := 0
	for i := range 2 * maxCalls {
		n += len(p.next(runEvent{RunID: "r", Stream: "tool", Data: json.RawMessage(fmt.Sprintf(`{"phase":"start","name":"n","toolCallId":"c%d"}`, i))}))
	}
	if n != maxCalls || len(p.calls) != maxCalls {
		t.Errorf("%d calls were told, %d are remembered", n, len(p.calls))
	}
}

func FuzzTranslate(f *testing.F) {
	for _, name := range append(recordedRuns, "no-rights", "refused-token", "hello-v4") {
		for _, message := range received(f, name) {
			f.Add([]byte(nil), message)
			f.Add(message, message)
		}
	}
	f.Add([]byte(agent("assistant", `{"text":"\ud83d","delta":"`+"\xff"+`"}`)), []byte(chat(`"state":"final"`)))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var tr Translator
		over := map[string]bool{}
		for _, message := range [][]byte{a, b, a, b} {
			for _, s := range tr.Translate(message) {
				if s.RunID == "" || over[s.RunID] {
					t.Fatalf("%q: %s after the end of its run", message, short(s.Payload))
				}
				over[s.RunID] = ends(s.Payload)
				body, err := json.Marshal(s.Payload)
				if err != nil || !utf8.Valid(body) {
					t.Fatalf("%q: %s cannot be written: %v", message, short(s.Payload), err)
				}
				if _, err := signal.DecodePayload(s.Payload.SignalType(), body); err != nil {
					t.Fatalf("%q: %v", message, err)
				}
			}
		}
	})
}
