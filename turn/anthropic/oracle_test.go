package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/stream"
	"vela/turn/tool"
)

// The vendor's own SDK is the judge: it is given the same bytes.

type meaning struct {
	Text, Model        string
	Thoughts           []string
	Own                []map[string]any
	Calls              []called
	Prompt, Completion int64
}

type called struct{ ID, Name, Input string }

// sdks is what the SDK understands.
func sdks(t *testing.T, text []byte) meaning {
	t.Helper()
	resp := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(text))}
	events := ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(resp), nil)
	var msg sdk.Message
	for events.Next() {
		if err := msg.Accumulate(events.Current()); err != nil {
			t.Fatalf("the SDK does not take %s: %v", events.Current().RawJSON(), err)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatalf("the SDK says %v of %s", err, text)
	}
	u := msg.Usage
	m := meaning{Model: msg.Model, Prompt: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, Completion: u.OutputTokens}
	for _, b := range msg.Content {
		switch b.Type {
		case "text":
			m.Text += b.Text
		case "thinking":
			m.Thoughts = append(m.Thoughts, b.Thinking)
			m.Own = append(m.Own, map[string]any{"type": b.Type, "thinking": b.Thinking, "signature": b.Signature})
		case "redacted_thinking":
			m.Own = append(m.Own, map[string]any{"type": b.Type, "data": b.Data})
		case "tool_use":
			m.Calls = append(m.Calls, called{b.ID, b.Name, string(b.Input)})
		}
	}
	return m
}

// ours is what we understand.
func ours(t *testing.T, text []byte) meaning {
	t.Helper()
	var m meaning
	var thought string
	for p, err := range Parse("agent", stream.Events(bytes.NewReader(text))) {
		switch p := p.(type) {
		case nil:
			t.Fatalf("%v of %s", err, text)
		case signal.TextDelta:
			m.Text += p.Content
		case signal.Thinking:
			thought += p.Content
		case signal.Other:
			var own map[string]any
			if err := json.Unmarshal(p.Body, &own); err != nil {
				t.Fatal(err)
			}
			m.Own = append(m.Own, own)
			if own["type"] == "thinking" {
				m.Thoughts, thought = append(m.Thoughts, thought), ""
			}
		case signal.ToolCall:
			m.Calls = append(m.Calls, called{p.CallID, p.ToolName, string(p.Input)})
		case signal.TokenUsage:
			m.Model, m.Prompt, m.Completion = p.Model, int64(p.PromptTokens), int64(p.CompletionTokens)
		}
	}
	return m
}

func agree(t *testing.T, text []byte) {
	t.Helper()
	if want, got := sdks(t, text), ours(t, text); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %+v\nthe SDK has %+v", text, got, want)
	}
}

func TestTheSDKUnderstandsTheSame(t *testing.T) {
	all := recordings(t)
	for _, name := range []string{"text", "tools", "thinking"} {
		agree(t, all["testdata/"+name])
	}
}

// FuzzAgainstSDK puts legal pieces together: texts of any kind cut anywhere, several blocks, some of which overlap.
func FuzzAgainstSDK(f *testing.F) {
	f.Add("Grüße, 👋\n\"x\" \\ </script> \u2028", uint64(1))
	f.Add("", uint64(7))
	f.Add("plain words that are cut into plain pieces, so that the short cut is taken", uint64(3))
	f.Fuzz(func(t *testing.T, words string, seed uint64) {
		if len(words) > 2000 {
			return
		}
		agree(t, legal(strings.ToValidUTF8(words, "?"), rand.New(rand.NewPCG(seed, 3))))
	})
}

func legal(words string, rng *rand.Rand) []byte {
	var b bytes.Buffer
	send := func(typ string, d map[string]any) {
		d["type"] = typ
		text, _ := json.Marshal(d)
		text = append(bytes.TrimSuffix(text, []byte("}")), strings.Repeat(" ", rng.IntN(4))+"}"...)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", typ, text)
		if rng.IntN(9) == 0 {
			fmt.Fprint(&b, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
		}
	}
	send("message_start", map[string]any{"message": map[string]any{"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": []any{},
		"usage": map[string]any{"input_tokens": rng.IntN(99), "cache_creation_input_tokens": rng.IntN(99), "cache_read_input_tokens": rng.IntN(99), "output_tokens": 1}}})
	type open struct {
		index int
		left  []map[string]any
	}
	var blocks []*open
	step := func() {
		at := rng.IntN(len(blocks))
		o := blocks[at]
		if len(o.left) > 0 {
			send("content_block_delta", map[string]any{"index": o.index, "delta": o.left[0]})
			o.left = o.left[1:]
			return
		}
		send("content_block_stop", map[string]any{"index": o.index})
		blocks = append(blocks[:at], blocks[at+1:]...)
	}
	for i := range 1 + rng.IntN(5) {
		o := &open{index: i}
		var begin map[string]any
		switch rng.IntN(4) {
		case 0:
			begin = map[string]any{"type": "text", "text": ""}
			for _, piece := range cut(words, rng) {
				o.left = append(o.left, map[string]any{"type": "text_delta", "text": piece})
			}
		case 1:
			begin = map[string]any{"type": "thinking", "thinking": "", "signature": ""}
			for _, piece := range cut(words, rng) {
				o.left = append(o.left, map[string]any{"type": "thinking_delta", "thinking": piece})
			}
			o.left = append(o.left, map[string]any{"type": "signature_delta", "signature": "c2ln"}, map[string]any{"type": "signature_delta", "signature": "bmF0"})
		case 2:
			begin = map[string]any{"type": "redacted_thinking", "data": "ZGF0YQ=="}
		case 3:
			begin = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", i), "name": fmt.Sprintf("tool_%d", rng.IntN(2)), "input": map[string]any{}}
			if rng.IntN(3) > 0 {
				input, _ := json.Marshal(map[string]any{"text": words, "n": rng.IntN(1000)})
				o.left = append(o.left, map[string]any{"type": "input_json_delta", "partial_json": ""})
				for _, piece := range cut(string(input), rng) {
					o.left = append(o.left, map[string]any{"type": "input_json_delta", "partial_json": piece})
				}
			}
		}
		send("content_block_start", map[string]any{"index": i, "content_block": begin})
		blocks = append(blocks, o)
		if begin["type"] == "tool_use" && rng.IntN(2) == 0 {
			continue // its pieces come by turns with those of the next block
		}
		for len(blocks) > 0 {
			step()
		}
	}
	for len(blocks) > 0 {
		step()
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": map[string]any{"output_tokens": rng.IntN(1e6)}})
	send("message_stop", map[string]any{})
	return b.Bytes()
}

// cut cuts a text between characters.
func cut(text string, rng *rand.Rand) []string {
	runes := []rune(text)
	var all []string
	for len(runes) > 0 {
		n := min(len(runes), 1+rng.IntN(12))
		all, runes = append(all, string(runes[:n])), runes[n:]
	}
	return all
}

// The same prompt, put by us and by the SDK, is the same JSON.
func TestTheSDKAsksTheSame(t *testing.T) {
	var bodies []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		err := json.NewDecoder(r.Body).Decode(&body)
		if err != nil || r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") != apiVersion {
			t.Errorf("%s %v, %v", r.URL.Path, r.Header, err)
		}
		bodies = append(bodies, body)
		_, _ = io.WriteString(w, yes)
	}))
	t.Cleanup(server.Close)
	m := newModel(t, Config{BaseURL: server.URL, Key: key, Model: "claude", MaxTokens: 5000, Thinking: 2000})
	client := sdk.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey(key))

	schema := sdk.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}}
	reads := sdk.ToolParam{Name: "read_file", Description: sdk.String("reads"), InputSchema: schema}
	failed := sdk.NewToolResultBlock("c2", "nothing there", true)
	params := sdk.MessageNewParams{
		Model: "claude", MaxTokens: 5000, Thinking: sdk.ThinkingConfigParamOfEnabled(2000),
		System: []sdk.TextBlockParam{{Text: "Be brief."}},
		Messages: []sdk.MessageParam{
			sdk.NewUserMessage(sdk.NewTextBlock("Hi \"you\" <there>")), sdk.NewAssistantMessage(sdk.NewTextBlock("Hello.")), sdk.NewUserMessage(sdk.NewTextBlock("Read a.")),
			sdk.NewAssistantMessage(sdk.NewThinkingBlock("c2ln", "a first"), sdk.NewRedactedThinkingBlock("ZGF0"), sdk.NewTextBlock("Well."),
				sdk.NewToolUseBlock("c1", map[string]any{"path": "a"}, "read_file"), sdk.NewToolUseBlock("c2", map[string]any{}, "list_files")),
			sdk.NewUserMessage(sdk.NewToolResultBlock("c1", "text of a", false), failed, sdk.NewTextBlock("Quick!")),
		},
		Tools: []sdk.ToolUnionParam{{OfTool: &reads}},
	}
	for _, p := range []agent.Prompt{prompt, {System: prompt.System, Messages: prompt.Messages}} {
		bodies = nil
		for _, err := range m.Stream(t.Context(), p) {
			if err != nil {
				t.Fatal(err)
			}
		}
		object := sdk.ToolInputSchemaParam{Type: "object"}
		if p.Tools == nil { // the calls in the messages want their tools defined
			params.Tools = []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{Name: "read_file", InputSchema: object}}, {OfTool: &sdk.ToolParam{Name: "list_files", InputSchema: object}}}
			params.ToolChoice = sdk.ToolChoiceUnionParam{OfNone: &sdk.ToolChoiceNoneParam{}}
		}
		answer := client.Messages.NewStreaming(t.Context(), params)
		for answer.Next() {
		}
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		if len(bodies) != 2 {
			t.Fatalf("%d requests", len(bodies))
		}
		if !reflect.DeepEqual(bodies[0], spellOut(bodies[1])) {
			t.Errorf("\n  we ask %v\nthe SDK %v", bodies[0], bodies[1])
		}
	}
}

// spellOut puts the SDK's words the way we put them, where the API takes both.
func spellOut(body map[string]any) map[string]any {
	system, _ := body["system"].([]any)
	if len(system) == 1 {
		body["system"] = system[0].(map[string]any)["text"]
	}
	for _, m := range body["messages"].([]any) {
		for _, b := range m.(map[string]any)["content"].([]any) {
			block := b.(map[string]any)
			if content, ok := block["content"].([]any); ok {
				block["content"] = content[0].(map[string]any)["text"]
			}
			if block["is_error"] == false {
				delete(block, "is_error")
			}
		}
	}
	return body
}

const key = "sk-ant-very-secret-0123456789"

var prompt = agent.Prompt{
	System: "Be brief.",
	Messages: []agent.Message{
		{Role: turn.User, Text: "Hi \"you\" <there>"},
		{Role: turn.Assistant, Text: "Hello."},
		{Role: turn.User, Text: "Read a."},
		{
			Role: turn.Assistant, Text: "Well.",
			Calls: []tool.Call{{ID: "c1", Name: "read_file", Input: json.RawMessage(`{"path":"a"}`)}, {ID: "c2", Name: "list_files", Input: json.RawMessage(`{}`)}},
			Own: []signal.Other{
				{Name: ownThinking, Body: json.RawMessage(`{"type":"thinking","thinking":"a first","signature":"c2ln"}`)},
				{Name: ownThinking, Body: json.RawMessage(`{"type":"redacted_thinking","data":"ZGF0"}`)},
				{Name: "openai.reasoning", Body: json.RawMessage(`{"reasoning":"of another model"}`)},
			},
		},
		{Role: turn.User, Text: "Quick!", Results: []agent.Result{{CallID: "c1", Name: "read_file", Content: "text of a"}, {CallID: "c2", Name: "list_files", Content: "nothing there", Failed: true}}},
	},
	Tools: []tool.Definition{{Name: "read_file", Description: "reads", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
}

func newModel(t *testing.T, cfg Config) *Model {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}
