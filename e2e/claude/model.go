package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// last is what the model says in the end.
const last = "The notes say hello."

// model is the model behind Claude Code: a server of our own that answers by rote, in the stream format of Anthropic's
// messages.
type model struct {
	server *http.Server
	url    string
	notes  string // a file that is there
}

func startModel(notes string) (*model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	m := &model{server: &http.Server{Handler: mux}, url: "http://" + l.Addr().String(), notes: notes}
	mux.HandleFunc("POST /v1/messages", m.answer)
	go func() { _ = m.server.Serve(l) }() // ends with close
	return m, nil
}

func (m *model) close() { _ = m.server.Close() }

type object = map[string]any

// answer reads a file that is there, then one that is not, and then says a word. Whoever has no tool gets the word at once.
func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model    string
		Tools    []struct{ Name string }
		Messages json.RawMessage
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 32<<20)).Decode(&q); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	reads := false
	for _, t := range q.Tools {
		reads = reads || t.Name == "Read"
	}
	ran := strings.Count(string(q.Messages), `"tool_use_id"`)
	block, delta, reason := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": last}, "end_turn"
	if reads && ran < 2 {
		input, _ := json.Marshal(object{"file_path": m.notes + strings.Repeat(".missing", ran)}) // strings always have a JSON
		block = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", ran+1), "name": "Read", "input": object{}}
		delta, reason = object{"type": "input_json_delta", "partial_json": string(input)}, "tool_use"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []object{
		{"type": "message_start", "message": object{"id": "m", "type": "message", "role": "assistant", "model": q.Model, "content": []any{},
			"usage": object{"input_tokens": 10, "output_tokens": 1}}},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": reason}, "usage": object{"output_tokens": 5}},
		{"type": "message_stop"},
	} {
		b, err := json.Marshal(e)
		if err != nil {
			panic(err) // our own maps
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], b)
	}
}
