// Command model is a language model that costs little: it answers every chat completion of OpenAI's API with the same
// number of pieces, at a steady rate. Each piece of text is its number, from 0, and when it was written, in µs of Unix
// time, so that whoever gets it at the other end knows how long it was under way: "17:1766318400123456 ".
//
// The format is that of OpenAI's API reference, "The chat completion chunk object".
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

func main() {
	rate := flag.Int("rate", 50, "pieces a second of each answer")
	pieces := flag.Int("pieces", 500, "pieces of each answer")
	flag.Parse()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("model is at http://%s\n", l.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_ = answer(w, time.Second/time.Duration(*rate), *pieces) // the client has left
	})
	log.Fatal(http.Serve(l, mux))
}

const (
	before = `data: {"id":"chatcmpl-CjR4nPn1xGm2Vb8TqLw0sYfD6hKeZ","object":"chat.completion.chunk","created":1766318400,` +
		`"model":"bench-1","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":`
	after = `}],"usage":null}` + "\n\n"
)

// answer writes each piece by itself, as soon as it is due. Answers begin out of step with each other.
func answer(w http.ResponseWriter, every time.Duration, pieces int) error {
	out := http.NewResponseController(w)
	var buf []byte
	write := func(delta, reason string) error {
		buf = append(append(append(append(append(buf[:0], before...), delta...), `,"logprobs":null,"finish_reason":`...), reason...), after...)
		if _, err := w.Write(buf); err != nil {
			return err
		}
		return out.Flush()
	}
	if err := write(`{"role":"assistant","content":"","refusal":null}`, "null"); err != nil {
		return err
	}
	time.Sleep(rand.N(every))
	due := time.NewTicker(every)
	defer due.Stop()
	for n := range pieces {
		<-due.C
		text := strconv.Itoa(n) + ":" + strconv.FormatInt(time.Now().UnixMicro(), 10)
		if err := write(`{"content":"`+text+` "}`, "null"); err != nil {
			return err
		}
	}
	if err := write(`{}`, `"stop"`); err != nil {
		return err
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}
