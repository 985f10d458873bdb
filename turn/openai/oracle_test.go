package openai

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

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/stream"
	"vela/turn/tool"
)

// The vendor's own SDK is the judge: it is given the same bytes.

type meaning struct {
	Text, Refusal, Model string
	Calls                []called
	Prompt, Completion   int64
}

type called struct{ ID, Name, Input string }

// sdks is what the SDK understands.
func sdks(t *testing.T, text []byte) meaning {
	t.Helper()
	resp := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(text))}
	chunks := ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(resp), nil)
	var acc sdk.ChatCompletionAccumulator
	for chunks.Next() {
		if !acc.AddChunk(chunks.Current()) {
			t.Fatalf("the SDK does not take %s", chunks.Current().RawJSON())
		}
	}
	if err := chunks.Err(); err != nil {
		t.Fatalf("the SDK says %v of %s", err, text)
	}
	m := meaning{Model: acc.Model, Prompt: acc.Usage.PromptTokens, Completion: acc.Usage.CompletionTokens}
	if len(acc.Choices) > 0 {
		m.Text, m.Refusal = acc.Choices[0].Message.Content, acc.Choices[0].Message.Refusal
		for _, c := range acc.Choices[0].Message.ToolCalls {
			m.Calls = append(m.Calls, called{c.ID, c.Function.Name, c.Function.Arguments})
		}
	}
	return m
}

// ours is what we understand.
func ours(t *testing.T, text []byte) meaning {
	t.Helper()
	var m meaning
	for p, err := range Parse("agent", stream.Events(bytes.NewReader(text))) {
		switch p := p.(type) {
		case nil:
			t.Fatalf("%v of %s", err, text)
		case signal.TextDelta:
			m.Text += p.Content
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
	want, got := sdks(t, text), ours(t, text)
	want.Text, want.Refusal = want.Text+want.Refusal, "" // we say both
	for i := range want.Calls {
		want.Calls[i].Input = string(stream.Object([]byte(want.Calls[i].Input)))
	}
	if got.Model == "" {
		want.Model = "" // without usage
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %+v\nthe SDK has %+v", text, got, want)
	}
}

func TestTheSDKUnderstandsTheSame(t *testing.T) {
	all := recordings(t)
	for _, name := range []string{"text", "parallel_tools", "reasoning_content", "refusal"} {
		agree(t, all["testdata/"+name])
	}
}

// FuzzAgainstSDK puts legal pieces together: texts of any kind cut anywhere, several calls whose pieces come by turns.
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
	head := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1735689600, "model": "m"}
	send := func(choices []any, usage any) {
		head["choices"], head["usage"] = choices, usage
		if rng.IntN(2) == 0 {
			head["obfuscation"] = strings.Repeat("x", rng.IntN(5))
		}
		text, _ := json.Marshal(head)
		fmt.Fprintf(&b, "data: %s\n\n", text)
	}
	delta := func(d any) { send([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil) }
	delta(map[string]any{"role": "assistant", "content": ""})
	for _, piece := range cut(words, rng) {
		delta(map[string]any{"content": piece})
	}
	type open struct {
		index int
		left  []string
	}
	var calls []*open
	for i := range rng.IntN(4) {
		arguments, _ := json.Marshal(map[string]any{"text": words, "n": rng.IntN(1000)})
		delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function", "function": map[string]any{"name": fmt.Sprintf("tool_%d", rng.IntN(2)), "arguments": ""}}}})
		calls = append(calls, &open{i, cut(string(arguments), rng)})
	}
	for len(calls) > 0 {
		at := rng.IntN(len(calls))
		c := calls[at]
		delta(map[string]any{"tool_calls": []any{map[string]any{"index": c.index, "function": map[string]any{"arguments": c.left[0]}}}})
		if c.left = c.left[1:]; len(c.left) == 0 {
			calls = append(calls[:at], calls[at+1:]...)
		}
	}
	send([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}, nil)
	if rng.IntN(2) == 0 {
		send([]any{}, map[string]any{"prompt_tokens": rng.IntN(1e6), "completion_tokens": rng.IntN(1e6), "total_tokens": 1})
	}
	b.WriteString("data: [DONE]\n\n")
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
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s %v, %v", r.URL.Path, r.Header, err)
		}
		bodies = append(bodies, body)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)

	temperature := 0.5
	m := newModel(t, Config{BaseURL: server.URL + "/v1", Key: key, Model: "gpt", Temperature: &temperature, MaxTokens: 99})
	for _, err := range m.Stream(t.Context(), prompt) {
		if err != nil {
			t.Fatal(err)
		}
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}}
	assistant := sdk.ChatCompletionAssistantMessageParam{ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{
		{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{ID: "c1", Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "read_file", Arguments: `{"path":"a"}`}}},
		{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{ID: "c2", Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "list_files", Arguments: `{}`}}},
	}}
	client := sdk.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey(key))
	answer := client.Chat.Completions.NewStreaming(t.Context(), sdk.ChatCompletionNewParams{
		Model: "gpt",
		Messages: []sdk.ChatCompletionMessageParamUnion{
			sdk.SystemMessage("Be brief."), sdk.UserMessage("Hi \"you\" <there>"), sdk.AssistantMessage("Hello."), sdk.UserMessage("Read a."),
			{OfAssistant: &assistant}, sdk.ToolMessage("text of a", "c1"), sdk.ToolMessage("nothing there", "c2"),
		},
		Tools: []sdk.ChatCompletionToolUnionParam{
			sdk.ChatCompletionFunctionTool(sdk.FunctionDefinitionParam{Name: "read_file", Description: sdk.String("reads"), Parameters: schema}),
		},
		Temperature:   sdk.Float(temperature),
		MaxTokens:     sdk.Int(99),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	})
	for answer.Next() {
	}
	if err := answer.Err(); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || !reflect.DeepEqual(bodies[0], bodies[1]) {
		t.Errorf("\n  we ask %v\nthe SDK %v", bodies[0], bodies[1:])
	}
}

const key = "sk-very-secret-0123456789"

var prompt = agent.Prompt{
	System: "Be brief.",
	Messages: []agent.Message{
		{Role: turn.User, Text: "Hi \"you\" <there>"},
		{Role: turn.Assistant, Text: "Hello."},
		{Role: turn.User, Text: "Read a."},
		{Role: turn.Assistant, Calls: []tool.Call{{ID: "c1", Name: "read_file", Input: json.RawMessage(`{"path":"a"}`)}, {ID: "c2", Name: "list_files", Input: json.RawMessage(`{}`)}}},
		{Role: turn.User, Results: []agent.Result{{CallID: "c1", Name: "read_file", Content: "text of a"}, {CallID: "c2", Name: "list_files", Content: "nothing there", Failed: true}}},
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
