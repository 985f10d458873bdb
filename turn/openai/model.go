// Package openai is the [agent.Model] behind any server that speaks OpenAI's chat completions: OpenAI itself, LM Studio,
// Ollama, vLLM, llama.cpp, OpenRouter. It is also the only reader of their streams: start at [New] to have a model
// answer, at [Parse] to understand somebody else's stream.
//
// The format is that of OpenAI's API reference, "Create chat completion" with stream; where other servers deviate, the
// place that copes with it says which.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"vela/protocol/signal"
	"vela/turn/agent"
	"vela/turn/stream"
)

// Config says which model to ask, and how. Only BaseURL is required.
type Config struct {
	BaseURL string // with the version, such as http://localhost:1234/v1; "/chat/completions" is put behind it
	Key     string // of the API; a local server needs none
	Model   string // empty: the first one that the server lists, asked for when it is needed first

	Temperature *float64    // nil leaves it to the server
	MaxTokens   int         // of an answer; 0 leaves it to the server
	Header      http.Header // goes with each request, beside what the API wants
	AgentID     string      // who the signals are from; "openai" if empty

	stream.Timeouts
	Retries int                                                                  // as in stream.Config
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // as in stream.Config
}

// Model is an [agent.Model]. Its methods may be called from several goroutines.
type Model struct {
	cfg    Config
	client *stream.Client

	// What was learnt of the server.
	listed    atomic.Pointer[string] // its first model
	noOptions atomic.Bool            // it refuses stream_options
	newLimit  atomic.Bool            // it wants max_completion_tokens, as OpenAI does for models that reason
}

// New returns a model, or says what is wrong with the configuration. Nothing is asked of the server yet. Close the model
// when it is not needed any more.
func New(cfg Config) (*Model, error) {
	if cfg.AgentID == "" {
		cfg.AgentID = "openai"
	}
	header := maps.Clone(cfg.Header)
	if header == nil {
		header = http.Header{}
	}
	if cfg.Key != "" {
		header.Set("Authorization", "Bearer "+cfg.Key)
	}
	client, err := stream.New(stream.Config{
		BaseURL: cfg.BaseURL, Header: header, Secrets: []string{cfg.Key}, Timeouts: cfg.Timeouts, Retries: cfg.Retries, Dial: cfg.Dial,
	})
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	return &Model{cfg: cfg, client: client}, nil
}

// Close lets go of the connections that no request is using.
func (m *Model) Close() { m.client.Close() }

// Stream implements [agent.Model].
func (m *Model) Stream(ctx context.Context, p agent.Prompt) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		for learnt := true; learnt; {
			learnt = false
			name, err := m.name(ctx)
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for payload, err := range m.ask(ctx, p, name) {
				if learnt = err != nil && m.learn(err); learnt {
					break
				}
				if !yield(payload, m.client.Clean(err)) {
					return
				}
			}
		}
	}
}

// ask makes one request.
func (m *Model) ask(ctx context.Context, p agent.Prompt, name string) iter.Seq2[signal.Payload, error] {
	body, err := json.Marshal(m.request(p, name))
	if err != nil {
		return func(yield func(signal.Payload, error) bool) {
			yield(nil, stream.Failed("The request to the model cannot be made.", fmt.Errorf("openai: %w", err)))
		}
	}
	return Parse(m.cfg.AgentID, m.client.Open(ctx, stream.Request{Path: "/chat/completions", Body: body, Last: isLast}))
}

// learn says whether an error taught something about the server, so that the same prompt, put otherwise, may be
// answered. Each thing can be learnt once. No payload has been yielded before such an error: the server refused.
func (m *Model) learn(err error) bool {
	var refused *stream.Error
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Status() {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		why := stream.Operator(err)
		return strings.Contains(why, "stream_options") && m.noOptions.CompareAndSwap(false, true) ||
			strings.Contains(why, "max_completion_tokens") && m.newLimit.CompareAndSwap(false, true)
	case http.StatusNotFound:
		m.listed.Store(nil) // the server may have loaded another model: ask next time
	}
	return false
}

// name is the model to ask for.
func (m *Model) name(ctx context.Context) (string, error) {
	if m.cfg.Model != "" {
		return m.cfg.Model, nil
	}
	if known := m.listed.Load(); known != nil {
		return *known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	names, err := m.Models(ctx)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", stream.Failed("The model's server has no model.", errors.New("openai: the server lists no model: load one, or name one in the configuration"))
	}
	m.listed.Store(&names[0])
	return names[0], nil
}

// listTime is how long a list of models may take; a server that is busy answering still has it at hand.
const listTime = 3 * time.Second

// Models lists the models that the server has, in its order. The error is fit for a client, with what the server said
// wrapped.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	body, err := m.client.Get(ctx, "/models")
	if err != nil {
		return nil, err
	}
	names, err := ParseModels(body)
	if err != nil {
		return nil, stream.Failed("The model's server has no list of models.", fmt.Errorf("openai: the list of models is none: %s", m.client.Hide(err.Error())))
	}
	return names, nil
}

// ParseModels reads the answer to GET /models, and so tells a server that speaks OpenAI's language from any other: it has
// an object with a member data, or, of a server that has no model, object.
func ParseModels(body []byte) ([]string, error) {
	var list struct {
		Object json.RawMessage `json:"object"`
		Data   json.RawMessage `json:"data"` // null when Ollama has no model
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	if list.Object == nil && list.Data == nil {
		return nil, errors.New("an object with neither data nor object")
	}
	var models []struct {
		ID string `json:"id"`
	}
	if list.Data != nil {
		if err := json.Unmarshal(list.Data, &models); err != nil {
			return nil, err
		}
	}
	names := make([]string, 0, len(models))
	for _, d := range models {
		names = append(names, d.ID)
	}
	return names, nil
}

// Probe asks for the list of models, for at most 3 s, and says in the operator's words what is wrong: the error names
// the address and what the server said, but no key.
func (m *Model) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	_, err := m.Models(ctx)
	if err == nil {
		return nil
	}
	where := "openai: " + strings.TrimRight(m.cfg.BaseURL, "/") + "/models"
	return stream.Probed(err, where, stream.Advice{
		Unreachable: "is the server running, and the address right?",
		NotFound:    "the base URL usually ends in /v1",
	})
}
