package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/stream"
	"vela/turn/tool"
)

var _ agent.Model = (*Model)(nil)

const yes = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"yes"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`

func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func answers(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func ask(ctx context.Context, m *Model) (text string, failed error) {
	for p, err := range m.Stream(ctx, prompt) {
		if err != nil {
			return text, err
		}
		if d, ok := p.(signal.TextDelta); ok {
			text += d.Content
		}
	}
	return text, nil
}

func TestAnswer(t *testing.T) {
	if text, err := ask(t.Context(), newModel(t, Config{BaseURL: serve(t, answers(200, yes)), Model: "m"})); text != "yes" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestModelsAndProbe(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   string
	}{
		"it is there":  {200, `{"data":[{"type":"model","id":"a"},{"type":"model","id":"b"}],"has_more":false}`, ""},
		"a wrong key":  {401, "wrong key " + key, "wrong key [hidden] (set the right key)"},
		"a wrong path": {404, "nothing here", "(the base URL has to be without /v1)"},
		"no list":      {200, "[", "no list of models"},
	} {
		url := serve(t, answers(c.status, c.answer))
		m := newModel(t, Config{BaseURL: url, Key: key, Model: "m"})
		err := m.Probe(t.Context())
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), url+"/v1/models")):
			t.Errorf("%s: %v", name, err)
		case err != nil && strings.Contains(err.Error(), key):
			t.Errorf("%s: the key is in %v", name, err)
		}
		if names, err := m.Models(t.Context()); c.want == "" && (err != nil || fmt.Sprint(names) != "[a b]") {
			t.Errorf("%s: %v, %v", name, names, err)
		}
	}
}

func TestNoErrorHasTheKey(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refused":       answers(400, "your key "+key),
		"in the stream": answers(200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\""+key+"\",\"message\":\""+key+"\"}}\n\n"),
		"not a stream":  answers(200, "data: "+key+"\n\n"),
	} {
		_, err := ask(t.Context(), newModel(t, Config{BaseURL: serve(t, answer), Model: "m", Key: key}))
		var e *stream.Error
		if !errors.As(err, &e) || e.Code() != protocol.CodeAgentFailed {
			t.Errorf("%s: %v", name, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%+v", e), key) {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// What the API does not take is not sent: empty texts, odd ids, one role twice in a row, inputs that are no object.
func TestAPromptIsPutAsTheAPIWantsIt(t *testing.T) {
	m := newModel(t, Config{Model: "m"})
	r := m.request(agent.Prompt{Messages: []agent.Message{
		{Role: turn.User, Text: "one"},
		{Role: turn.Assistant, Text: " \n"},
		{Role: turn.User, Text: "two"},
		{Role: turn.Assistant, Calls: []tool.Call{{ID: "functions.look:0", Name: "look", Input: json.RawMessage(`not JSON`)}}},
		{Role: turn.User, Results: []agent.Result{{CallID: "functions.look:0", Name: "look", Content: "a wall"}}},
	}})
	got, err := json.Marshal(r.Messages)
	want := `[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"functions_look_0","name":"look","input":{"input":"not JSON"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_look_0","content":"a wall"}]}]`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, want\n%s, %v", got, want, err)
	}
	if r.MaxTokens != 4096 || m.cfg.BaseURL != "https://api.anthropic.com" {
		t.Errorf("%d tokens of %s", r.MaxTokens, m.cfg.BaseURL)
	}
}

func TestThinkingIsAskedForWhereTheAPITakesIt(t *testing.T) {
	m := newModel(t, Config{Model: "m", Thinking: 1024})
	use := agent.Message{Role: turn.Assistant, Calls: []tool.Call{{ID: "c", Name: "look"}}}
	thoughtful := use
	thoughtful.Own = []signal.Other{{Name: ownThinking, Body: json.RawMessage(`{"type":"redacted_thinking","data":""}`)}}
	question, results := agent.Message{Role: turn.User, Text: "?"}, agent.Message{Role: turn.User, Results: []agent.Result{{CallID: "c", Name: "look", Content: "a wall"}}}
	for name, c := range map[string]struct {
		messages []agent.Message
		want     bool
	}{
		"a question":                 {[]agent.Message{question}, true},
		"a question after calls":     {[]agent.Message{question, use, results, {Role: turn.Assistant, Text: "A wall."}, question}, true},
		"results, after a thought":   {[]agent.Message{question, thoughtful, results}, true},
		"results, without a thought": {[]agent.Message{question, use, results}, false},
	} {
		if r := m.request(agent.Prompt{Messages: c.messages}); (r.Thinking != nil) != c.want {
			t.Errorf("%s: %v", name, r.Thinking)
		}
	}
}

var errHungUp = errors.New("hung up")

// The request upstream ends with the loop and with the context, and nothing of ours is left behind.
func TestNothingIsLeftBehind(t *testing.T) {
	closed := make(chan struct{})
	first, _, _ := strings.Cut(yes, "event: content_block_stop")
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, first)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		closed <- struct{}{}
	})
	m := newModel(t, Config{BaseURL: url, Model: "m"})
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		for _, err := range m.Stream(ctx, prompt) {
			if err != nil && !errors.Is(err, errHungUp) {
				t.Error(err)
			}
			cancel(errHungUp)
		}
		<-closed
		cancel(nil)
		for range m.Stream(t.Context(), prompt) {
			break
		}
		<-closed
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if n := strings.Count(string(stacks), "vela/turn/stream."); n != 0 {
		t.Errorf("%d goroutines of ours are left:\n%s", n, stacks)
	}
}

func TestWrongConfigurations(t *testing.T) {
	half := 0.5
	for _, cfg := range []Config{
		{},
		{BaseURL: "localhost", Model: "m"},
		{Model: "m", Key: "a\nb"},
		{Model: "m", Thinking: 1023},
		{Model: "m", Thinking: 4096},
		{Model: "m", Thinking: 2000, Temperature: &half},
	} {
		if m, err := New(cfg); err == nil {
			m.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}
