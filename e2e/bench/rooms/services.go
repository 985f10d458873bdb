//go:build cgo && opus

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// What a person writes to be answered in another way than with some words.
const (
	askTools = "tools" // with calls of a tool, one after the other
	askFlood = "flood" // with many pieces, as fast as they can be written
)

const (
	toolCalls   = 8 // of each answer to askTools
	floodPieces = 3000
)

// services are a recogniser, a voice and a model in the formats of OpenAI's API reference. They answer at once, always the
// same, and say when they were asked.
type services struct {
	addr  string
	heard chan time.Time // a recording has come
	spoke chan time.Time // the first sound of an answer is on its way
	voice atomic.Pointer[[]byte]
}

func newServices() (*services, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &services{addr: l.Addr().String(), heard: make(chan time.Time, 1024), spoke: make(chan time.Time, 1024)}
	if err := s.says(time.Second); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	mux.HandleFunc("POST /v1/audio/speech", s.speak)
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	go func() { _ = http.Serve(l, mux) }() // to the end of the program
	return s, nil
}

// says sets what the voice says to every text: some of speech, for so long.
func (s *services) says(long time.Duration) error {
	samples, err := flite("It is half past nine, and the harbour is not far from here, if you walk along the river.")
	if err != nil {
		return err
	}
	want := int(long.Seconds() * rate)
	for len(samples) < want {
		samples = append(samples, samples...)
	}
	pcm := binary16(samples[:want])
	s.voice.Store(&pcm)
	return nil
}

// tell notes that something happened now, for whoever asks.
func tell(to chan time.Time) {
	select {
	case to <- time.Now():
	default:
	}
}

func (s *services) transcribe(w http.ResponseWriter, r *http.Request) {
	tell(s.heard)
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"text":"what time is it"}`)
}

func (s *services) speak(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	tell(s.spoke)
	_, _ = w.Write(*s.voice.Load()) // the gateway may have left
}

func (s *services) complete(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	said, tools := "", 0
	for _, m := range ask.Messages {
		switch m.Role {
		case "user":
			said, tools = string(m.Content), 0
		case "tool":
			tools++
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	write := func(delta, reason string) {
		_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1766318400,"model":"bench","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, reason)
	}
	reason := `"stop"`
	switch {
	case strings.Contains(said, askTools) && tools < toolCalls:
		// What it looks for is when it was called, which those in the room are told. The same twice would be told once.
		tool := []string{`"read_file","arguments":"{\"path\"`, `"glob","arguments":"{\"pattern\"`}[tools%2]
		write(fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%s:\"at-%d\"}"}}]}`,
			tools, tool, time.Now().UnixNano()), "null")
		reason = `"tool_calls"`
	case strings.Contains(said, askFlood):
		for n := range floodPieces {
			write(`{"content":"word `+strconv.Itoa(n)+` "}`, "null")
		}
	default:
		write(`{"role":"assistant","content":"It is half past nine."}`, "null")
	}
	write("{}", reason)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
