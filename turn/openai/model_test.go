package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/stream"
	"vela/turn/tool"
)

var _ agent.Model = (*Model)(nil)

// server answers requests in turn with the functions, the last one again and again, and keeps what was asked.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []map[string]any
}

type answers func(w http.ResponseWriter, r *http.Request)

func serve(t *testing.T, all ...answers) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{"path": r.URL.Path}
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
		}
		s.mu.Lock()
		answer := all[min(len(s.asked), len(all)-1)]
		s.asked = append(s.asked, body)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func says(text string) answers {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func refuses(status int, text string) answers {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

const yes = `data: {"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

func ask(ctx context.Context, m *Model) (string, error) {
	var text string
	for p, err := range m.Stream(ctx, agent.Prompt{Messages: []agent.Message{{Role: turn.User, Text: "?"}}}) {
		if err != nil {
			return text, err
		}
		if d, ok := p.(signal.TextDelta); ok {
			text += d.Content
		}
	}
	return text, nil
}

func TestWhatAServerRefusesIsLeftOut(t *testing.T) {
	s := serve(t,
		refuses(400, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`),
		refuses(400, `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`),
		says(yes))
	m := newModel(t, Config{BaseURL: s.URL, Model: "m", MaxTokens: 5})
	for range 2 {
		if text, err := ask(t.Context(), m); text != "yes" || err != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
	if len(s.asked) != 4 {
		t.Fatalf("%d requests: what was refused is to be remembered", len(s.asked))
	}
	for i, want := range []struct{ options, old, new bool }{{true, true, false}, {false, true, false}, {false, false, true}, {false, false, true}} {
		got := s.asked[i]
		if (got["stream_options"] != nil) != want.options || (got["max_tokens"] != nil) != want.old || (got["max_completion_tokens"] != nil) != want.new {
			t.Errorf("request %d is %v", i+1, got)
		}
	}
}

func TestARefusalIsNotAskedForEver(t *testing.T) {
	s := serve(t, refuses(400, `{"error":{"message":"stream_options, max_completion_tokens: nothing is right"}}`))
	_, err := ask(t.Context(), newModel(t, Config{BaseURL: s.URL, Model: "m", Key: key}))
	if err == nil || len(s.asked) != 3 {
		t.Errorf("%v after %d requests", err, len(s.asked))
	}
}

func TestTheModelIsTheOneThatIsThere(t *testing.T) {
	list := says(`{"object":"list","data":[{"id":"first"},{"id":"second"}]}`)
	s := serve(t, list, says(yes), says(yes), refuses(404, "model not loaded"), list, says(yes))
	m := newModel(t, Config{BaseURL: s.URL})
	for i, failed := range []bool{false, false, true, false} {
		if _, err := ask(t.Context(), m); (err != nil) != failed {
			t.Fatalf("answer %d: %v", i+1, err)
		}
	}
	var got []string
	for _, a := range s.asked {
		got = append(got, fmt.Sprint(a["path"], " ", a["model"]))
	}
	if want := []string{"/models <nil>", "/chat/completions first", "/chat/completions first", "/chat/completions first", "/models <nil>", "/chat/completions first"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q", got)
	}
}

func TestNoModelIsThere(t *testing.T) {
	for body, want := range map[string]string{
		`{"object":"list","data":null}`: "The model's server has no model.",
		`<html>`:                        "The model's server has no list of models.",
	} {
		_, err := ask(t.Context(), newModel(t, Config{BaseURL: serve(t, says(body)).URL}))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCancelledWhileItAsksForTheModels(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errHungUp)
		<-r.Context().Done()
	})
	if _, err := ask(ctx, newModel(t, Config{BaseURL: s.URL})); !errors.Is(err, errHungUp) {
		t.Errorf("got %v", err)
	}
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		answer answers
		want   string
	}{
		"it is there":  {says(`{"data":[{"id":"m"}]}`), ""},
		"it is empty":  {says(`{"object":"list","data":null}`), ""},
		"a wrong key":  {refuses(401, "wrong key "+key), "wrong key [hidden] (set the right key)"},
		"a wrong path": {refuses(404, "nothing here"), "(the base URL usually ends in /v1)"},
		"no list":      {says(`[`), "no list of models"},
	} {
		s := serve(t, c.answer)
		err := newModel(t, Config{BaseURL: s.URL + "/", Key: key}).Probe(t.Context())
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.URL+"/models")):
			t.Errorf("%s: %v", name, err)
		case err != nil && strings.Contains(err.Error(), key):
			t.Errorf("%s: the key is in %v", name, err)
		}
	}
	if err := newModel(t, Config{BaseURL: "http://127.0.0.1:1"}).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "is the server running") {
		t.Errorf("a server that is not there: %v", err)
	}
}

func TestNoErrorHasTheKey(t *testing.T) {
	for name, answer := range map[string]answers{
		"refused":         refuses(400, "your key "+key),
		"in the stream":   says(`data: {"error":{"message":"your key ` + key + `","code":"` + key + `"}}` + "\n\n"),
		"event of errors": says("event: error\ndata: {\"message\":\"" + key + "\"}\n\n"),
		"not a stream":    says(`data: ` + key + "\n\n"),
	} {
		_, err := ask(t.Context(), newModel(t, Config{BaseURL: serve(t, answer).URL, Model: "m", Key: key}))
		var e *stream.Error
		if !errors.As(err, &e) || e.Code() != protocol.CodeAgentFailed {
			t.Errorf("%s: %v", name, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%+v", e), key) || !strings.HasPrefix(e.Error(), "The model") && !strings.HasPrefix(e.Error(), "stream: ") && !strings.HasPrefix(e.Error(), "openai: ") {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

func TestAMessageGoesBackWithItsReasoning(t *testing.T) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		s := serve(t, says(`data: {"choices":[{"delta":{"`+name+`":"Look first."}}]}`+"\n\n"+
			`data: {"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"look"}}]},"finish_reason":"tool_calls"}]}`+"\n\n"), says(yes))
		m := newModel(t, Config{BaseURL: s.URL, Model: "m"})
		answer := agent.Message{Role: turn.Assistant}
		for p, err := range m.Stream(t.Context(), prompt) {
			switch p := p.(type) {
			case nil:
				t.Fatal(err)
			case signal.ToolCall:
				answer.Calls = append(answer.Calls, tool.Call{ID: p.CallID, Name: p.ToolName, Input: p.Input})
			case signal.Other:
				answer.Own = append(answer.Own, p)
			}
		}
		next := agent.Prompt{Messages: []agent.Message{{Role: turn.User, Text: "?"}, answer, {Role: turn.User, Text: "Go on.", Results: []agent.Result{{CallID: "c", Name: "look", Content: "a wall"}}}}}
		for _, err := range m.Stream(t.Context(), next) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := json.Marshal(s.asked[1]["messages"])
		want := `[{"content":"?","role":"user"},{"` + name + `":"Look first.","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"look"},"id":"c","type":"function"}]},` +
			`{"content":"a wall","role":"tool","tool_call_id":"c"},{"content":"Go on.","role":"user"}]`
		if err != nil || string(got) != want {
			t.Errorf("got\n%s, want\n%s, %v", got, want, err)
		}
	}
}

// The request upstream ends with the loop and with the context, and nothing of ours is left behind.
func TestNothingIsLeftBehind(t *testing.T) {
	var open atomic.Int32
	closed := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"x"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		closed <- struct{}{}
	})
	m := newModel(t, Config{BaseURL: s.URL, Model: "m"})
	for range m.Stream(t.Context(), prompt) { // before counting, so that what net/http keeps is there
		break
	}
	<-closed
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
	if open.Load() != 41 {
		t.Errorf("%d requests", open.Load())
	}
}

func TestWrongConfigurations(t *testing.T) {
	for _, cfg := range []Config{{}, {BaseURL: "localhost"}, {BaseURL: "http://localhost/v1?key=x"}, {BaseURL: "http://localhost", Key: "a\nb"}} {
		if m, err := New(cfg); err == nil {
			m.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}
