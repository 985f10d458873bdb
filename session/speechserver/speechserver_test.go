package speechserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// The servers of these tests stand in for those of OpenAI, Piper and whisper.cpp: they answer as those are documented to.

const key = "sk-very-secret-key"

// serve is a server for the test, and the configuration that reaches it.
func serve(t *testing.T, answer http.HandlerFunc) Config {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return Config{URL: s.URL + "/v1", Key: key}
}

type synthesizer interface {
	Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error]
	Close()
}

func openAI(t *testing.T, cfg Config) *OpenAISynthesizer {
	t.Helper()
	s, err := NewOpenAISynthesizer(cfg, OpenAIVoice{Model: "tts-1", Voice: "alloy"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func piper(t *testing.T, cfg Config, voice PiperVoice) *PiperSynthesizer {
	t.Helper()
	s, err := NewPiperSynthesizer(cfg, voice)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// listen hears a sentence to its end.
func listen(ctx context.Context, s synthesizer, text string) (samples []int16, rate int, err error) {
	for c, err := range s.Synthesize(ctx, text) {
		if err != nil {
			return samples, rate, err
		}
		if rate != 0 && c.Rate != rate || len(c.Samples) == 0 || c.Duration() > speech.LongestChunk {
			return samples, rate, fmt.Errorf("a chunk of %d samples at %d Hz", len(c.Samples), c.Rate)
		}
		samples, rate = append(samples, c.Samples...), c.Rate
	}
	return samples, rate, nil
}

// ramp is n samples that are all different from their neighbours, in both bytes.
func ramp(n int) []int16 {
	samples := make([]int16, n)
	for i := range samples {
		samples[i] = int16(i * 259)
	}
	return samples
}

func wav(rate int, samples []int16) []byte {
	var b bytes.Buffer
	if err := speech.WriteWAV(&b, rate, samples); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}

// asked reads the object of a request.
func asked(r *http.Request) (path, auth string, object map[string]any, err error) {
	err = json.NewDecoder(r.Body).Decode(&object)
	return r.URL.Path, r.Header.Get("Authorization"), object, err
}

func TestOpenAISpeech(t *testing.T) {
	want := ramp(5000)
	s := openAI(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		path, auth, object, err := asked(r)
		if got := fmt.Sprint(path, auth, object, err); got != "/v1/audio/speechBearer "+key+"map[input:Hello. model:tts-1 response_format:pcm voice:alloy] <nil>" {
			t.Error(got)
		}
		pcm := speech.Bytes(want)
		for n := 1; len(pcm) > 0; n += 2 { // samples are cut in two
			n := min(n, len(pcm))
			w.Write(pcm[:n])
			w.(http.Flusher).Flush()
			pcm = pcm[n:]
		}
	}))
	got, rate, err := listen(t.Context(), s, "Hello.")
	if err != nil || rate != 24000 || !slices.Equal(got, want) {
		t.Errorf("%d samples at %d Hz, %v", len(got), rate, err)
	}
}

func TestOpenAISpeechOfOtherServers(t *testing.T) {
	want := ramp(100)
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _, object, _ := asked(r)
		if object["speed"] == 1.5 {
			w.Write(speech.Bytes(want))
			return
		}
		w.Write(wav(22050, want))
	})
	got, rate, err := listen(t.Context(), openAI(t, cfg), "Hello.")
	if err != nil || rate != 22050 || !slices.Equal(got, want) {
		t.Errorf("a WAV file: %d samples at %d Hz, %v", len(got), rate, err)
	}
	s, err := NewOpenAISynthesizer(cfg, OpenAIVoice{Model: "kokoro", Voice: "af", Rate: 16000, Speed: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, rate, err := listen(t.Context(), s, "Hello."); err != nil || rate != 16000 || !slices.Equal(got, want) {
		t.Errorf("another rate: %d samples at %d Hz, %v", len(got), rate, err)
	}
}

func TestPiper(t *testing.T) {
	want, speaker := ramp(3000), 0
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path, _, object, err := asked(r)
		if got := fmt.Sprint(path, object, err); got != "/v1/synthesizemap[length_scale:1.2 speaker_id:0 text:Hello. voice:lessac] <nil>" {
			t.Error(got)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8") // as Piper's does
		w.Write(wav(22050, want))
	})
	got, rate, err := listen(t.Context(), piper(t, cfg, PiperVoice{Voice: "lessac", Speaker: &speaker, LengthScale: 1.2}), "Hello.")
	if err != nil || rate != 22050 || !slices.Equal(got, want) {
		t.Errorf("%d samples at %d Hz, %v", len(got), rate, err)
	}
}

func TestTextIsCutBetweenWords(t *testing.T) {
	text := strings.Repeat("word ", 2<<20)
	s := openAI(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _, object, _ := asked(r)
		if input, _ := object["input"].(string); len(input) > 4096 || len(input) < 4000 || !strings.HasSuffix(input, " word") {
			t.Errorf("%d characters, to %q", len(input), input[max(0, len(input)-10):])
		}
		w.Write([]byte{1, 2})
	}))
	if _, _, err := listen(t.Context(), s, text); err != nil {
		t.Error(err)
	}
}

// says is all that an error and what it wraps say.
func says(err error) string {
	all := ""
	for ; err != nil; err = errors.Unwrap(err) {
		all += err.Error() + "\n"
	}
	return all
}

func TestErrorsSayWhatToDoAndNameNobody(t *testing.T) {
	pcm := func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte{1, 2}) }
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		code   protocol.Code
		words  string
		cause  string
	}{
		{"wrong key", status(401, "bad key "+key), protocol.CodeSpeechUnavailable, "accept the gateway's key", "401 Unauthorized: bad key [hidden]"},
		{"no model", status(404, "no such model"), protocol.CodeSpeechUnavailable, "no such model or voice", "404"},
		{"too much", status(429, "slow down"), protocol.CodeSpeechUnavailable, "Try again later", "slow down"},
		{"broken", status(500, strings.Repeat("x", mostRefusal-5)+key), protocol.CodeSpeechFailed, "(500)", "xxx"},
		{"moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://example.com/", 307) }, protocol.CodeSpeechFailed, "(307)", ""},
		{"an object", kind("application/json", pcm), protocol.CodeSpeechFailed, "not answer with sound", "application/json"},
		{"MP3", kind("audio/mpeg", pcm), protocol.CodeSpeechFailed, "not answer with sound", "audio/mpeg"},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, protocol.CodeSpeechFailed, "not answer with sound", "empty"},
		{"a wrong rate", func(w http.ResponseWriter, _ *http.Request) { w.Write(wav(7, ramp(10))) }, protocol.CodeSpeechFailed, "broke off", "7 Hz"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte{1, 2})
		}, protocol.CodeSpeechFailed, "broke off", "unexpected EOF"},
		{"without end", func(w http.ResponseWriter, r *http.Request) {
			for b := make([]byte, 1<<16); r.Context().Err() == nil; {
				w.Write(b)
			}
		}, protocol.CodeSpeechFailed, "broke off", "more samples"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := serve(t, c.answer)
			_, _, err := listen(t.Context(), openAI(t, cfg), "Hello.")
			var e *Error
			if !errors.As(err, &e) || e.Code() != c.code || !strings.Contains(err.Error(), c.words) || !strings.Contains(says(err), c.cause) {
				t.Fatal(says(err))
			}
			if strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(says(err), key[:5]) {
				t.Errorf("%s", says(err))
			}
		})
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func kind(name string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", name)
		next(w, r)
	}
}

func TestConnectsOnceMore(t *testing.T) {
	requests := 0
	cfg := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests > 1 {
			w.WriteHeader(500)
			return
		}
		w.Write([]byte{1, 2})
	})
	var log bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := openAI(t, cfg)
	transport := s.client.http.Transport.(*http.Transport)
	dial, refusals, dials := transport.DialContext, 1, 0
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials++; dials <= refusals {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("refused")}
		}
		return dial(ctx, network, addr)
	}
	if _, _, err := listen(t.Context(), s, "Hello."); err != nil || dials != 2 || requests != 1 {
		t.Errorf("%v after %d connections, %d requests", err, dials, requests)
	}
	if _, _, err := listen(t.Context(), s, "Hello."); err == nil || requests != 2 {
		t.Errorf("%v after %d requests: what the server refuses is not asked again", err, requests)
	}
	transport.CloseIdleConnections()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, &net.OpError{Op: "read", Err: errors.New("reset")}
	}
	dials = 0
	if _, _, err := listen(t.Context(), s, "Hello."); err == nil || dials != 1 {
		t.Errorf("%v after %d connections: one that broke may have carried the request", err, dials)
	}
	transport.DialContext = func(_ context.Context, network, _ string) (net.Conn, error) {
		dials++
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("refused")}
	}
	dials = 0
	_, _, err := listen(t.Context(), s, "Hello.")
	var e *Error
	if !errors.As(err, &e) || e.Code() != protocol.CodeSpeechUnavailable || dials != 2 || strings.Contains(err.Error(), "127") {
		t.Errorf("%v after %d connections", err, dials)
	}
	if strings.Contains(log.String(), key) {
		t.Error("the log has the key")
	}
}

var errEnough = errors.New("enough")

func TestTheRequestEndsWithItsReader(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		ended := make(chan bool)
		s := openAI(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Write([]byte{1, 2})
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			ended <- true
		}))
		for range s.Synthesize(t.Context(), "Hello.") {
			break
		}
		<-ended
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var last error
		for _, err := range s.Synthesize(ctx, "Hello.") {
			last = err
			cancel(errEnough)
		}
		if <-ended; last != errEnough { // itself: it is the caller's
			t.Error(last)
		}
	})
	for runtime.NumGoroutine() > before { // those that have nothing left to do end in their own time; the test's bounds it
		runtime.Gosched()
	}
}

func TestGivesUpOnASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var serving sync.WaitGroup
		t.Cleanup(serving.Wait)
		speaks := true
		s := openAI(t, Config{URL: "http://speech.example/v1", Between: 50 * time.Millisecond, Answer: 500 * time.Millisecond})
		s.client.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			serving.Go(func() {
				defer theirs.Close()
				r, err := http.ReadRequest(bufio.NewReader(theirs))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, r.Body)
				if speaks {
					io.WriteString(theirs, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\x01\x02")
				}
				io.Copy(io.Discard, theirs) // until the client is gone
			})
			return ours, nil
		}
		heard, _, err := listen(t.Context(), s, "Hello.")
		var e *Error
		if len(heard) != 1 || !errors.As(err, &e) || e.Code() != protocol.CodeSpeechFailed || !errors.Is(err, errSilent) {
			t.Errorf("in mid-sentence: %d samples, %s", len(heard), says(err))
		}
		speaks = false
		if _, _, err = listen(t.Context(), s, "Hello."); !errors.As(err, &e) || e.Code() != protocol.CodeSpeechUnavailable {
			t.Errorf("from the beginning: %s", says(err))
		}
	})
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	voice := OpenAIVoice{Model: "m", Voice: "v"}
	for _, cfg := range []Config{
		{}, {URL: "localhost:8000"}, {URL: "ftp://x"}, {URL: "http://user:" + key + "@host"}, {URL: "http://host/?key=" + key}, {URL: "http://%" + key},
		{URL: "http://host", Key: key + "\n"},
	} {
		if _, err := NewOpenAISynthesizer(cfg, voice); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	good := Config{URL: "http://host/v1"}
	for _, voice := range []OpenAIVoice{{}, {Model: "m"}, {Model: "m", Voice: "v", Rate: 7}, {Model: "m", Voice: "v", Speed: -1}} {
		if _, err := NewOpenAISynthesizer(good, voice); err == nil {
			t.Errorf("%+v: no error", voice)
		}
	}
	if _, err := NewPiperSynthesizer(good, PiperVoice{LengthScale: -1}); err == nil {
		t.Error("a length scale below 0: no error")
	}
	if _, err := NewOpenAITranscriber(good, "", Hints{}); err == nil {
		t.Error("no model: no error")
	}
}
