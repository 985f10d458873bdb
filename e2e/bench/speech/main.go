// Command speech is a recogniser and a voice that cost little and always take the same time: every recording is
// recognised as the same words, and every text is spoken as silence, so many milliseconds a byte. The formats are those of
// OpenAI's API reference, "Create transcription" and "Create speech" with response_format pcm, at 16 kHz.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

const bytesPerMs = 32 // PCM16 at 16 kHz

func main() {
	hears := flag.Duration("hears", 50*time.Millisecond, "how long a recording takes to be recognised")
	speaks := flag.Duration("speaks", 50*time.Millisecond, "how long a text takes to be spoken, before its first sound")
	pace := flag.Int("pace", 70, "ms of sound for each byte of text")
	flag.Parse()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("speech is at http://%s\n", l.Addr())
	silence := make([]byte, 64<<10)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(*hears)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"how far is the harbour"}`) // the client may have left
	})
	mux.HandleFunc("POST /v1/audio/speech", func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Input string }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.Sleep(*speaks)
		for left := len(ask.Input) * *pace * bytesPerMs; left > 0; left -= len(silence) {
			if _, err := w.Write(silence[:min(left, len(silence))]); err != nil {
				return
			}
		}
	})
	log.Fatal(http.Serve(l, mux))
}
