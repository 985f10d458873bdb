// Package anthropic is the [agent.Model] behind Anthropic's Messages API, and behind servers that speak it. It is also
// the only reader of their streams: start at [New] to have a model answer, at [Parse] to understand somebody else's
// stream.
//
// The format is that of Anthropic's API reference, "Create a Message" with stream, version 2023-06-01.
package anthropic

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
	"time"

	"vela/protocol/signal"
	"vela/turn/agent"
	"vela/turn/stream"
)

// Config says which model to ask, and how. Model is required; so is Key with Anthropic itself.
type Config struct {
	BaseURL string // without the version; https://api.anthropic.com if empty. "/v1/messages" is put behind it
	Key     string
	Model   string

	Temperature *float64    // nil leaves it to the server; it has to be nil when Thinking is set
	MaxTokens   int         // of an answer, thoughts included; 4096 if 0
	Thinking    int         // of these, the tokens to think with, at least 1024; 0 lets the model answer at once
	Header      http.Header // goes with each request, beside what the API wants
	AgentID     string      // who the signals are from; "anthropic" if empty

	stream.Timeouts
	Retries int                                                                  // as in stream.Config
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // as in stream.Config
}

// apiVersion is the version of the API that this package speaks.
const apiVersion = "2023-06-01"

// Model is an [agent.Model]. Its methods may be called from several goroutines.
type Model struct {
	cfg    Config
	client *stream.Client
}

// New returns a model, or says what is wrong with the configuration. Nothing is asked of the server yet. Close the model
// when it is not needed any more.
func New(cfg Config) (*Model, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = "https://api.anthropic.com"
	}
	if cfg.AgentID == "" {
		cfg.AgentID = "anthropic"
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = 4096
	}
	switch {
	case cfg.Model == "":
		return nil, errors.New("anthropic: name a model: the API has no default one")
	case cfg.Thinking != 0 && (cfg.Thinking < 1024 || cfg.Thinking >= cfg.MaxTokens):
		return nil, fmt.Errorf("anthropic: the tokens to think with have to be at least 1024, and fewer than the %d of an answer", cfg.MaxTokens)
	case cfg.Thinking != 0 && cfg.Temperature != nil:
		return nil, errors.New("anthropic: a model that thinks takes no temperature")
	}
	header := maps.Clone(cfg.Header)
	if header == nil {
		header = http.Header{}
	}
	header.Set("Anthropic-Version", apiVersion)
	if cfg.Key != "" {
		header.Set("X-Api-Key", cfg.Key)
	}
	client, err := stream.New(stream.Config{
		BaseURL: cfg.BaseURL, Header: header, Secrets: []string{cfg.Key}, Timeouts: cfg.Timeouts, Retries: cfg.Retries, Dial: cfg.Dial,
	})
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	return &Model{cfg: cfg, client: client}, nil
}

// Close lets go of the connections that no request is using.
func (m *Model) Close() { m.client.Close() }

// Stream implements [agent.Model].
func (m *Model) Stream(ctx context.Context, p agent.Prompt) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		body, err := json.Marshal(m.request(p))
		if err != nil {
			yield(nil, stream.Failed("The request to the model cannot be made.", fmt.Errorf("anthropic: %w", err)))
			return
		}
		events := m.client.Open(ctx, stream.Request{Path: "/v1/messages", Body: body, Last: isLast})
		for payload, err := range Parse(m.cfg.AgentID, events) {
			if !yield(payload, m.client.Clean(err)) {
				return
			}
		}
	}
}

// listTime is how long a list of models may take.
const listTime = 3 * time.Second

// Models lists the models that the key may use, the newest first, as far as one page of the list goes. The error is fit
// for a client, with what the server said wrapped.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	body, err := m.client.Get(ctx, "/v1/models?limit=1000")
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, stream.Failed("The model's server has no list of models.", fmt.Errorf("anthropic: the list of models is none: %s", m.client.Hide(err.Error())))
	}
	names := make([]string, 0, len(list.Data))
	for _, d := range list.Data {
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
	where := "anthropic: " + strings.TrimRight(m.cfg.BaseURL, "/") + "/v1/models"
	return stream.Probed(err, where, stream.Advice{
		Unreachable: "is the address right, and the network there?",
		NotFound:    "the base URL has to be without /v1",
	})
}
