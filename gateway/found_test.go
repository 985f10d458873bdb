package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vela/session/sherpa"
)

// TestWhisperProcess is no test: run by another one it is a server such as whisper.cpp has, on a port of its own, until its
// standard input ends.
func TestWhisperProcess(t *testing.T) {
	if os.Getenv("VELA_TEST_WHISPER") == "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html><head><title>Whisper.cpp Server</title></head></html>")
	})
	mux.HandleFunc("POST /inference", func(w http.ResponseWriter, r *http.Request) {
		file, _, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b, _ := io.ReadAll(file)
		_ = json.NewEncoder(w).Encode(map[string]string{"text": fmt.Sprint("heard ", len(b), " bytes of ", string(b[:4]))})
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	fmt.Println("PORT", port)
	go func() { _ = http.Serve(l, mux) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// whisperProcess runs it and returns its port.
func whisperProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestWhisperProcess$")
	cmd.Env = append(os.Environ(), "VELA_TEST_WHISPER=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	port, ok := strings.CutPrefix(strings.TrimSpace(line), "PORT ")
	if err != nil || !ok {
		t.Fatalf("it said %q, %v", line, err)
	}
	return port
}

// A server in a process of its own is found, offered in words that work, and not used.
func TestAWhisperServerIsOffered(t *testing.T) {
	port := whisperProcess(t)
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	g.finder.ports, g.finder.within = []string{port}, time.Minute
	r := g.Report(t.Context())
	offered := slices.IndexFunc(r.Ears, func(e Engine) bool { return e.Offered })
	if offered < 0 {
		t.Fatalf("it is not offered: %+v", r.Ears)
	}
	e := r.Ears[offered]
	if e.Available || e.Name != "whisper" || r.Transcriber.Name != "pocketsphinx" || !strings.Contains(r.Transcriber.Better, "a whisper.cpp server on this machine") {
		t.Errorf("offered is %+v, at work %+v", e, r.Transcriber)
	}
	if public, _ := json.Marshal(r); strings.Contains(string(public), port) {
		t.Errorf("everybody is told its port: %s", public)
	}
	_, line, ok := strings.Cut(e.Cause.Error(), "vela.yaml:")
	f, err := parseFile([]byte("ears:\n" + line))
	if !ok || err != nil {
		t.Fatalf("what to put into vela.yaml is %q: %v", line, err)
	}
	g, err = New(Config{Agents: f})
	if err != nil {
		t.Fatal(err)
	}
	g.finder.ports, g.finder.within = []string{port}, time.Minute
	if r := g.Report(t.Context()); len(r.Ears) != 1 || !r.Transcriber.Available || r.Transcriber.Name != "whisper" {
		t.Errorf("with that, there are %+v", r.Ears)
	}
	for tr, err := range g.ears.transcriber().Transcribe(t.Context(), slices.Values([][]int16{make([]int16, 1600)})) {
		if err != nil || tr.Final && !strings.HasSuffix(tr.Text, "bytes of RIFF") {
			t.Errorf("%+v, %v", tr, err)
		}
	}
}

func TestWhatAnswersAtAPort(t *testing.T) {
	for name, test := range map[string]struct {
		path, answer string
		status       int
		want         string // how the line begins behind its kind; empty: nothing is found
	}{
		"speaches":             {"/v1/models", `{"data":[{"id":"kokoro","task":"text-to-speech"},{"id":"Systran/faster-whisper-small","task":"automatic-speech-recognition"}]}`, 200, `model: "Systran/faster-whisper-small"}`},
		"its predecessor":      {"/v1/models", `{"data":[{"id":"Systran/faster-Whisper-tiny"}]}`, 200, `model: "Systran/faster-Whisper-tiny"}`},
		"a server for text":    {"/v1/models", `{"data":[{"id":"qwen3"}]}`, 200, ""},
		"a voice":              {"/v1/models", `{"data":[{"id":"whisper-voice","task":"text-to-speech"}]}`, 200, ""},
		"no models":            {"/v1/models", `{"data":[]}`, 200, ""},
		"no JSON":              {"/v1/models", `whisper`, 200, ""},
		"an error":             {"/v1/models", `{"data":[{"id":"whisper"}]}`, 500, ""},
		"who sends elsewhere":  {"/v1/models", `{"data":[{"id":"whisper"}]}`, 302, ""},
		"a page":               {"/", `<title>Vela</title>`, 200, ""},
		"whisper.cpp":          {"/", `<title>Whisper.cpp Server</title>`, 200, "{kind: whisper"},
		"whisper.cpp, broken":  {"/", `<title>Whisper.cpp Server</title>`, 503, ""},
		"more than is read":    {"/", strings.Repeat(" ", mostAnswer) + `Whisper.cpp Server`, 200, ""},
		"a name with a quote":  {"/v1/models", `{"data":[{"id":"whisper\"} \n- {kind: x"}]}`, 200, `model: "whisper\"} \n- {kind: x"}`},
		"a model without name": {"/v1/models", `{"data":[{"task":"automatic-speech-recognition"}]}`, 200, ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != test.path {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.answer)
		}))
		f := newFinder()
		got := f.ask(t.Context(), s.URL)
		switch {
		case test.want == "" && got != nil:
			t.Errorf("%s: %+v is found", name, got)
		case test.want != "" && (got == nil || !strings.Contains(got.line, test.want)):
			t.Errorf("%s: %+v is found, want %s", name, got, test.want)
		case got != nil:
			if _, err := parseFile([]byte("ears:\n  - " + got.line)); err != nil {
				t.Errorf("%s: %s cannot be put into a file: %v", name, got.line, err)
			}
		}
		s.Close()
	}
}

// However many ask, a port is asked once in a while; a port that never answers costs 0.3 s, and nothing is left of it.
func TestLookingForEarsIsBounded(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/" {
			<-r.Context().Done() // it is let go of
		}
	}))
	defer s.Close()
	f := newFinder()
	f.ports = []string{s.URL[strings.LastIndex(s.URL, ":")+1:]}
	for range 5 {
		if found := f.lately(t.Context()); len(found) > 0 {
			t.Errorf("%v are found", found)
		}
	}
	if n := asked.Load(); n > 2 { // the page, and the models if there was time
		t.Errorf("it was asked %d times", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	f = newFinder()
	f.ports = nil
	for range 20 { // one of which asks
		f.lately(gone)
	}
	if !f.until.IsZero() {
		t.Error("what nobody waited for is kept")
	}
}

// Who has named ears of their own is offered none, and their ports are not asked.
func TestNothingIsOfferedBesideNamedEars(t *testing.T) {
	f, err := parseFile([]byte(`ears: [{kind: whisper, url: "http://127.0.0.1:1"}]`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Agents: f})
	if err != nil {
		t.Fatal(err)
	}
	g.Report(t.Context())
	if !g.finder.until.IsZero() {
		t.Error("it looked for others")
	}
}

// Who speaks to a model that did not load is told so, once loading is over.
func TestAModelThatDoesNotLoad(t *testing.T) {
	m := newLocalModel(sherpa.Config{Model: t.TempDir()}, slog.New(slog.DiscardHandler))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for tr, err := range m.Transcribe(gone, slices.Values([][]int16{{1}})) {
		t.Errorf("while it loads: %+v, %v", tr, err)
	}
	m.load()
	defer m.close()
	n := 0
	for tr, err := range m.Transcribe(t.Context(), slices.Values([][]int16{{1}})) {
		if n++; err != errNotLoaded || tr.Final {
			t.Errorf("%+v, %v", tr, err)
		}
	}
	if n != 1 {
		t.Errorf("it was told %d times", n)
	}
}

func TestASherpaEarThatIsNotThere(t *testing.T) {
	f, err := parseFile([]byte("ears:\n  - {kind: sherpa, model: nowhere/secret, language: en}\n  - {kind: pocketsphinx}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	g, err := New(Config{Agents: f, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	g.finder.ports = nil
	r := g.Report(t.Context())
	public, _ := json.Marshal(r)
	if e := r.Ears[0]; e.Available || e.Why == "" || e.Cause == nil || strings.Contains(string(public), "secret") {
		t.Errorf("%+v; %s", e, public)
	}
	if !strings.Contains(log.String(), "an ear is not there") {
		t.Errorf("the log says %s", &log)
	}
	if err := g.ready(); err == nil {
		t.Error("it is ready before anything was loaded")
	}
}
