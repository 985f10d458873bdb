package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// model is the model behind OpenClaw: a server of our own that answers by rote, in the stream format of OpenAI's chat
// completions. No real model is asked, so that what OpenClaw does with an answer is the same every time.
type model struct {
	server  *http.Server
	url     string
	running atomic.Int64 // answers being written
}

// piece is one event of the answer, and the pause before it.
type piece struct {
	after time.Duration
	delta map[string]any
}

func startModel() (*model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	m := &model{server: &http.Server{Handler: mux}, url: "http://" + l.Addr().String() + "/v1"}
	mux.HandleFunc("POST /v1/chat/completions", m.answer)
	go func() { _ = m.server.Serve(l) }() // ends with close
	return m, nil
}

func (m *model) close() { _ = m.server.Close() }

type chatRequest struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// asked is the person's last message. OpenClaw puts messages of its own after it, and wraps them so that they are known.
func (r chatRequest) asked() (text string, toolRan bool) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		switch {
		case m.Role == "tool":
			toolRan = true
		case m.Role == "user" && !strings.Contains(string(m.Content), "OPENCLAW_INTERNAL_CONTEXT"):
			return string(m.Content), toolRan
		}
	}
	return "", toolRan
}

func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	m.running.Add(1)
	defer m.running.Add(-1)
	var req chatRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 32<<20)).Decode(&req); err != nil {
		http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
		return
	}
	text, toolRan := req.asked()
	pieces, finish := rote(text, toolRan)
	if pieces == nil {
		http.Error(w, `{"error":{"message":"this model fails when it is asked to","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // our own maps
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	chunk := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"id": "rote", "object": "chat.completion.chunk", "created": 1, "model": "rote",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	send(chunk(map[string]any{"role": "assistant"}, nil))
	for _, p := range pieces {
		select {
		case <-time.After(p.after):
			send(chunk(p.delta, nil))
		case <-r.Context().Done():
			return
		}
	}
	send(chunk(map[string]any{}, finish))
	send(map[string]any{"id": "rote", "object": "chat.completion.chunk", "created": 1, "model": "rote", "choices": []any{},
		"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": len(pieces), "total_tokens": 10 + len(pieces)}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// rote is what the model answers: a text, a tool call after a few words, a slow text, thoughts, or nothing, which is an error.
func rote(text string, toolRan bool) ([]piece, string) {
	switch {
	case strings.Contains(text, "boom"):
		return nil, ""
	case strings.Contains(text, "tool") && !toolRan:
		call := map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function",
			"function": map[string]any{"name": "read", "arguments": `{"path":"NOTES.md"}`}}}}
		return append(words("First I look into the notes. It may take a moment.", 60*time.Millisecond), piece{delta: call}), "tool_calls"
	case strings.Contains(text, "tool"):
		return words("The notes say hello from the workspace.", 0), "stop"
	case strings.Contains(text, "slow"):
		return words(strings.Repeat("and so it goes on ", 200), 50*time.Millisecond), "stop"
	case strings.Contains(text, "think"):
		thoughts := []piece{{delta: map[string]any{"reasoning_content": "Let me think "}}, {delta: map[string]any{"reasoning_content": "for a moment."}}}
		return append(thoughts, words("Forty-two.", 0)...), "stop"
	}
	return words("Hello from the model by rote.", 20*time.Millisecond), "stop"
}

func words(text string, pause time.Duration) []piece {
	var pieces []piece
	for _, w := range strings.SplitAfter(text, " ") {
		pieces = append(pieces, piece{pause, map[string]any{"content": w}})
	}
	return pieces
}
