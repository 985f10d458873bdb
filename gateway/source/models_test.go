package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// openAIServer answers as an OpenAI-compatible server does, as slowly as it is told to.
func openAIServer(t *testing.T, models string, pace time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			write(w, models)
		case "/v1/chat/completions":
			var body struct {
				Model    string `json:"model"`
				Messages []struct{ Role, Content string }
				Stream   bool
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) != 1 || body.Messages[0].Role != "user" || !body.Stream {
				t.Errorf("it is asked %+v, %v", body, err)
			}
			if body.Messages[0].Content == "fail" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, text := range []string{body.Model, " says ", body.Messages[0].Content} {
				content, _ := json.Marshal(text)
				write(w, fmt.Sprintf("data: {\"model\":%q,\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", body.Model, content))
				if !pause(r.Context(), pace) {
					return
				}
			}
			write(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}
}

const twoModels = `{"object":"list","data":[{"id":"m1"},{"id":"m2"}]}`

// An HTTP address is asked for models, for 3 s; one that has none is an event stream.
func TestAProbeTellsModelsFromEvents(t *testing.T) {
	events := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, ":\n\n")
		<-r.Context().Done()
	}
	for name, x := range map[string]struct {
		url      string
		list     http.HandlerFunc
		protocol Protocol
		models   string
	}{
		"models":                       {"http://x.test", func(w http.ResponseWriter, _ *http.Request) { write(w, twoModels) }, OpenAI, "m1,m2"},
		"an address with its version":  {"http://x.test/v1/", func(w http.ResponseWriter, _ *http.Request) { write(w, twoModels) }, OpenAI, "m1,m2"},
		"Ollama without a model":       {"http://x.test", func(w http.ResponseWriter, _ *http.Request) { write(w, `{"object":"list","data":null}`) }, OpenAI, ""},
		"an object that is no list":    {"http://x.test", func(w http.ResponseWriter, _ *http.Request) { write(w, `{"hello":1}`) }, SSE, ""},
		"not there":                    {"http://x.test", http.NotFound, SSE, ""},
		"too slow":                     {"http://x.test", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, SSE, ""},
		"an address that has a query":  {"http://x.test/?a=1", func(w http.ResponseWriter, _ *http.Request) { t.Error("it is asked"); write(w, twoModels) }, SSE, ""},
		"one that would rather stream": {"http://x.test/v1/models", func(w http.ResponseWriter, r *http.Request) { events(w, r) }, SSE, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("x.test", func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/v1/models" {
						x.list(w, r)
						return
					}
					events(w, r)
				})
				w, id := n.added(x.url, "")
				time.Sleep(openAITime + time.Second)
				if s := w.source(id); s.State != Connected || s.Protocol != x.protocol || strings.Join(s.Models, ",") != x.models {
					t.Errorf("it is %+v", s)
				}
			})
		})
	}
}

func TestPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve("x.test", openAIServer(t, twoModels, 0))
		w, id := n.added("http://x.test", "")
		synctest.Wait()
		ctx := t.Context()
		if _, err := w.Choose(ctx, id, "m3"); err == nil {
			t.Error("a model that is not there was chosen")
		}
		if s := w.must(w.Choose(ctx, id, "m2")); s.Model != "m2" {
			t.Errorf("the model is %q", s.Model)
		}
		correlation, err := w.Prompt(ctx, id, "hello")
		if err != nil {
			t.Fatal(err)
		}
		got := w.heard(id, 6)
		want := []string{
			fmt.Sprintf(`task_dispatch {"taskId":%q,"from":"user","to":"m2","description":"hello"}`, correlation),
			`text_delta {"agentId":"m2","content":"m2"}`, `text_delta {"agentId":"m2","content":" says ","index":1}`, `text_delta {"agentId":"m2","content":"hello","index":2}`,
			`token_usage {"agentId":"m2","promptTokens":3,"completionTokens":2,"model":"m2"}`,
			fmt.Sprintf(`completion {"taskId":%q,"agentId":"m2","success":true,"result":"Stream completed (3 chunks)"}`, correlation),
		}
		if !slices.Equal(got, want) {
			t.Errorf("it said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, r := range w.taken[id] {
			if r.CorrelationID != correlation {
				t.Errorf("%s has the correlation id %q", r.Type, r.CorrelationID)
			}
		}
		if _, err := w.Prompt(ctx, id, "fail"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := w.after(0, id); got != "connected The last prompt failed: The model does not accept the gateway's key." || !strings.Contains(w.of(id)[7], `"code":"agent_unavailable"`) {
			t.Errorf("after a prompt that fails it is %q, and said %q", got, w.of(id)[6:])
		}
		if _, err := w.Prompt(ctx, id, "again"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := w.after(0, id); got != "connected" {
			t.Errorf("after one that does not it is %q", got)
		}
	})
}

func TestPromptsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve("models.test", openAIServer(t, twoModels, 0))
		n.serve("none.test", openAIServer(t, `{"data":null}`, 0))
		n.serve("events.test", page(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			write(w, ":\n\n")
			<-r.Context().Done()
		}))
		w := newWorks(t, Config{dial: n.dial})
		ctx := t.Context()
		add := func(url string) string { return w.must(w.Add(ctx, "", url, "")).ID }
		models, none, events := add("http://models.test"), add("http://none.test"), add("http://events.test/events")
		if _, err := w.Prompt(ctx, models, "x"); !errors.Is(err, ErrNotConnected) {
			t.Errorf("before it is connected: %v", err)
		}
		for _, id := range []string{models, none, events} {
			w.must(w.Connect(ctx, id))
		}
		synctest.Wait()
		for _, x := range []struct {
			id, text string
			want     error
		}{{"remote:9", "x", ErrUnknown}, {models, "", ErrNoText}, {none, "x", ErrNoModel}, {events, "x", ErrNoPrompts}, {models, "x", nil}} {
			if _, err := w.Prompt(ctx, x.id, x.text); !errors.Is(err, x.want) {
				t.Errorf("%s is asked %q: %v, want %v", x.id, x.text, err, x.want)
			}
		}
		if s := w.must(w.Choose(ctx, none, "mine")); s.Model != "mine" {
			t.Errorf("of a server that lists none, %q is chosen", s.Model)
		}
		if _, err := w.Prompt(ctx, none, "x"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// A prompt ends when it is stopped, when its source is disconnected, and when everything ends; and nothing comes of it then.
func TestPromptsAreStopped(t *testing.T) {
	for name, stop := range map[string]func(*works, string){
		"stopped":           func(w *works, id string) { _ = w.Stop(w.Context(), id) },
		"disconnected":      func(w *works, id string) { w.must(w.Disconnect(w.Context(), id)) },
		"removed":           func(w *works, id string) { _ = w.Remove(w.Context(), id) },
		"at the end of all": func(w *works, id string) { w.end() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("x.test", openAIServer(t, twoModels, time.Second))
				w, id := n.added("http://x.test", "")
				synctest.Wait()
				for i := range maxPrompts {
					if _, err := w.Prompt(t.Context(), id, "x"); err != nil {
						t.Errorf("prompt %d: %v", i, err)
					}
				}
				if _, err := w.Prompt(t.Context(), id, "x"); !errors.Is(err, ErrBusy) {
					t.Errorf("one more: %v", err)
				}
				time.Sleep(1500 * time.Millisecond)
				stop(w, id)
				synctest.Wait()
				said := w.count(id)
				time.Sleep(time.Minute)
				if w.count(id) != said || said != 3*maxPrompts {
					t.Errorf("%d signals before, %d after", said, w.count(id))
				}
				if name != "stopped" {
					return
				}
				if got := w.after(0, id); got != "connected" {
					t.Errorf("it is %q", got)
				}
				if _, err := w.Prompt(t.Context(), id, "x"); err != nil {
					t.Errorf("a prompt after that: %v", err)
				}
				synctest.Wait()
			})
		})
	}
}

// One check that fails says nothing, however often that happens.
func TestASlowModelServerIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var lists atomic.Int32
		answer := openAIServer(t, twoModels, 0)
		n.serve("x.test", func(w http.ResponseWriter, r *http.Request) {
			if lists.Add(1)%2 == 0 {
				<-r.Context().Done() // busy
				return
			}
			answer(w, r)
		})
		w, id := n.added("http://x.test", "")
		for lists.Load() < 20 {
			if got := w.after(newsEvery, id); got != "connected" {
				t.Fatalf("it is %q after %d checks", got, lists.Load())
			}
		}
	})
}

// A server that is gone is noticed, though nobody asks it anything, and so is that it is there again.
func TestAModelServerIsLookedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		stop := n.serve("x.test", openAIServer(t, twoModels, 0))
		w, id := n.added("http://x.test", "")
		if got := w.after(time.Hour+time.Second, id); got != "connected" {
			t.Errorf("it is %q", got)
		}
		stop()
		if got := w.after(checkEvery, id); got != "connected" {
			t.Errorf("after a check that failed it is %q", got)
		}
		if got := w.after(checkEvery, id); !strings.HasPrefix(got, "connecting ") {
			t.Errorf("after two it is %q", got)
		}
		n.serve("x.test", openAIServer(t, twoModels, 0))
		if got := w.after(time.Minute, id); got != "connected" {
			t.Errorf("back again it is %q", got)
		}
	})
}

func TestAnthropic(t *testing.T) {
	list := func(w http.ResponseWriter) { write(w, `{"data":[{"id":"claude-a"},{"id":"claude-b"}]}`) }
	for name, x := range map[string]struct {
		key    string
		models func(w http.ResponseWriter)
		want   string
		query  string
	}{
		"with a list":        {"secret", list, "connected claude-a,claude-b", ""},
		"without one":        {"secret", func(w http.ResponseWriter) { w.WriteHeader(404) }, "connected ", ""},
		"with a wrong key":   {"wrong", func(w http.ResponseWriter) { w.WriteHeader(401) }, "error The source does not accept the key, or wants one. Set the right key. ", ""},
		"without a key":      {"", list, "error Anthropic wants a key. Set it first. ", ""},
		"with another thing": {"secret", func(w http.ResponseWriter) { write(w, "hello") }, "connected ", ""},
		"with a query":       {"secret", list, "error " + errNoModels.words + " ", "?a=1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("anthropic.test", func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/v1/models" {
						x.models(w)
						return
					}
					body, _ := io.ReadAll(r.Body)
					if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "secret" || !strings.Contains(string(body), `"model":"claude-b"`) {
						t.Errorf("%s is asked %s with %v", r.URL.Path, body, r.Header)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					for _, event := range []string{
						`{"type":"message_start","message":{"model":"claude-b","usage":{"input_tokens":2}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`,
						`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`, `{"type":"content_block_stop","index":0}`,
						`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`,
					} {
						var e struct{ Type string }
						_ = json.Unmarshal([]byte(event), &e)
						write(w, "event: "+e.Type+"\ndata: "+event+"\n\n")
					}
				})
				w, id := n.added("http://anthropic.test"+x.query, x.key)
				synctest.Wait()
				s := w.source(id)
				if got := strings.TrimSpace(string(s.State)+" "+s.Error) + " " + strings.Join(s.Models, ","); got != x.want {
					t.Errorf("it is %q, want %q", got, x.want)
				}
				if s.State != Connected {
					return
				}
				w.must(w.Choose(t.Context(), id, "claude-b"))
				if _, err := w.Prompt(t.Context(), id, "hello"); err != nil {
					t.Fatal(err)
				}
				var types []string
				for _, said := range w.heard(id, 5) {
					types = append(types, strings.Fields(said)[0])
				}
				if want := []string{"task_dispatch", "agent_state_change", "text_delta", "token_usage", "completion"}; !slices.Equal(types, want) {
					t.Errorf("it said %q", types)
				}
				synctest.Wait()
			})
		})
	}
}
