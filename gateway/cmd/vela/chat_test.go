package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"nhooyr.io/websocket"

	"vela/gateway"
)

// liveGateway runs until the test ends.
func liveGateway(t *testing.T, cfg gateway.Config) string {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	t.Cleanup(func() { stop(); <-ended })
	return <-ready
}

// paper takes what is written, and lets a test wait for it.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *paper) await(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(p.String(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q in\n%s", words, p)
		}
	}
}

func TestChatInAPipe(t *testing.T) {
	addr := liveGateway(t, gateway.Config{})
	for in, want := range map[string]string{
		"hello\n":                         "You said: hello\n",
		"hello":                           "You said: hello\n",
		"one\n\ntwo\n/history\n":          "You said: one\nYou said: two\nuser: one\nassistant: You said: one\nuser: two\nassistant: You said: two\n",
		"one\n/new\n/history\n":           "You said: one\n",
		"one\n/quit\ntwo\n":               "You said: one\n",
		"":                                "",
		"/nonsense\n":                     "",
		"der Kapitän grüßt \U0001f44b \n": "You said: der Kapitän grüßt \U0001f44b\n",
	} {
		var out, errs paper
		c := &chat{url: addr, turns: "agent", in: strings.NewReader(in), streams: streams{&out, &errs}}
		if err := c.run(t.Context()); err != nil || out.String() != want {
			t.Errorf("%q: got %q, want %q; the error is %v\n%s", in, &out, want, err, &errs)
		}
	}
}

// What cannot be read is said, after what came before it has been answered.
func TestChatSaysWhatItCannotRead(t *testing.T) {
	addr := liveGateway(t, gateway.Config{})
	for words, in := range map[string]io.Reader{
		"longer than 64 KiB": strings.NewReader("one\n" + strings.Repeat("x", 70_000) + "\ntwo\n"),
		"cannot be read":     io.MultiReader(strings.NewReader("one\n"), iotest.ErrReader(errors.New("unplugged"))),
	} {
		var out, errs paper
		c := &chat{url: addr, turns: "agent", in: in, streams: streams{&out, &errs}}
		if err := c.run(t.Context()); err == nil || !strings.Contains(err.Error(), words) || out.String() != "You said: one\n" {
			t.Errorf("got %q, %v; want %q", &out, err, words)
		}
	}
}

// typist is a chat with somebody who types.
func typist(t *testing.T, url, turns string) (keys io.Writer, ctrlC chan<- os.Signal, out, errs *paper, ended <-chan error) {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	interrupts, done := make(chan os.Signal, 2), make(chan error, 1)
	out, errs = new(paper), new(paper)
	c := &chat{url: url, turns: turns, in: r, interrupts: interrupts, typed: true, colour: true, streams: streams{out, errs}}
	go func() { done <- c.run(t.Context()) }()
	return w, interrupts, out, errs, done
}

// leaves has the chat end by Ctrl-C, and returns how. One alone ends it only soon after another.
func leaves(ctrlC chan<- os.Signal, ended <-chan error) error {
	for {
		select {
		case ctrlC <- os.Interrupt:
		case err := <-ended:
			return err
		}
	}
}

// TestChatCtrlC stops an answer, and twice leaves.
func TestChatCtrlC(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // else the server does not see who leaves
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Well, "}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the answer goes on until it is stopped
	}))
	defer model.Close()
	name := filepath.Join(t.TempDir(), "vela.yaml")
	if err := os.WriteFile(name, []byte("agents:\n  pilot: {kind: openai, url: "+model.URL+"/v1, model: m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := gateway.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	keys, ctrlC, out, errs, ended := typist(t, liveGateway(t, gateway.Config{Agents: file}), "agent")
	out.await(t, "> ")
	errs.await(t, "talking to pilot")
	_, _ = io.WriteString(keys, "hello\n")
	out.await(t, "Well, ")
	ctrlC <- os.Interrupt
	out.await(t, " …\n> ")
	if err := leaves(ctrlC, ended); err != nil {
		t.Error(err)
	}
}

func TestChatLeavesWhenIdle(t *testing.T) {
	_, ctrlC, out, errs, ended := typist(t, liveGateway(t, gateway.Config{}), "deterministic")
	out.await(t, "> ")
	errs.await(t, "the fixed turns")
	ctrlC <- os.Interrupt
	errs.await(t, "once more leaves")
	if err := leaves(ctrlC, ended); err != nil {
		t.Error(err)
	}
}

// TestChatShows plays a gateway that thinks, calls a tool, and loses the connection in the middle of its answer.
func TestChatShows(t *testing.T) {
	const (
		ready  = `{"type":"session.ready","payload":{"sessionId":"s","protocol":2,"resumed":RESUMED,"recovered":RESUMED,"resumeToken":"t","resumeWindowMs":9000,"lastSeq":0,"turns":"agent","agent":"pilot","audio":{},"turnDetection":"none","interrupt":true,"approvals":false,"room":"","features":[]}}`
		beside = `,"ts":1,"seq":`
	)
	play := func(ws *websocket.Conn, texts ...string) {
		for _, text := range texts {
			_ = ws.Write(t.Context(), websocket.MessageText, []byte(text))
		}
	}
	connections := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || strings.Contains(r.URL.String(), "secret") {
			t.Errorf("asked with %v for %s", r.Header, r.URL)
		}
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"vela.v2"}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		_, _, _ = ws.Read(t.Context())
		if connections++; connections == 2 {
			play(ws, strings.ReplaceAll(ready, "RESUMED", "true"), `{"type":"response.text.delta","payload":{"text":" miles."}`+beside+"6}",
				`{"type":"session.state","payload":{"value":"idle"}`+beside+"7}")
			_, _, _ = ws.Read(t.Context())
			return
		}
		play(ws, strings.ReplaceAll(ready, "RESUMED", "false"), `{"type":"session.state","payload":{"value":"idle"}`+beside+"1}")
		_, _, _ = ws.Read(t.Context())
		play(ws, `{"type":"transcript.final","payload":{"text":"how far"}`+beside+"2}",
			`{"type":"thinking.delta","payload":{"text":"The chart."}`+beside+"3}",
			`{"type":"tool.call","payload":{"callId":"c","name":"distance","input":{"to":"port"}}`+beside+"4}",
			`{"type":"response.text.delta","payload":{"text":"Three"}`+beside+"5}")
	}))
	defer s.Close()
	t.Setenv("VELA_TOKEN", "secret")
	keys, _, out, errs, ended := typist(t, s.URL, "agent")
	out.await(t, "> ")
	_, _ = io.WriteString(keys, "how far\n")
	out.await(t, "\x1b[2mThe chart.\x1b[22m\n\x1b[2m[distance {\"to\":\"port\"}]\x1b[22m\nThree\n miles.\n> ")
	errs.await(t, "talking to pilot.")
	errs.await(t, "the connection was lost")
	errs.await(t, "— connected again\n")
	_, _ = io.WriteString(keys, "/quit\n")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(out.String()+errs.String(), "secret") {
		t.Error("the token was shown")
	}
}

// TestChatAsks plays a gateway whose agent asks, changes a file, and tries to write on the terminal.
func TestChatAsks(t *testing.T) {
	const ready = `{"type":"session.ready","payload":{"sessionId":"s","protocol":2,"resumed":false,"recovered":false,"resumeToken":"t","resumeWindowMs":9000,"lastSeq":0,"turns":"agent","agent":"pilot","audio":{},"turnDetection":"none","interrupt":true,"approvals":true,"room":"","features":[]}}`
	ask := func(n int, name string) string {
		return fmt.Sprintf(`{"type":"approval.request","payload":{"approvalId":"a1.%d","callId":"c%[1]d","name":"%s","summary":"Write 1 line to notes","risk":"high","expiresMs":60000},"ts":1,"seq":%d}`, n, name, 10+n)
	}
	heard := make(chan string, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"vela.v2"}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		next := func() {
			_, text, _ := ws.Read(t.Context())
			heard <- string(text)
		}
		play := func(texts ...string) {
			for _, text := range texts {
				_ = ws.Write(t.Context(), websocket.MessageText, []byte(text))
			}
		}
		next() // session.start
		play(ready, `{"type":"session.state","payload":{"value":"idle"},"ts":1,"seq":1}`)
		next() // what was typed
		play(`{"type":"transcript.final","payload":{"text":"go"},"ts":1,"seq":2}`,
			`{"type":"tool.call","payload":{"callId":"c1","name":"write_file","input":{"path":"notes","content":"x"}},"ts":1,"seq":3}`,
			ask(1, "write_file"), ask(2, "bash"), ask(3, "deploy"))
		next()
		next()
		play(`{"type":"tool.result","payload":{"callId":"c1","name":"write_file","success":true,"output":{}},"ts":1,"seq":14}`,
			`{"type":"artifact","payload":{"type":"artifact","artifact_type":"diff","file":"notes","diff":"--- a/notes\n+++ b/notes\n@@ -1 +1 @@\n-old\n+new\u001b[2J\n"},"ts":1,"seq":15}`,
			`{"type":"artifact","payload":{"type":"artifact","artifact_type":"code","title":"a.go","content":"one\ntwo\n"},"ts":1,"seq":16}`,
			`{"type":"tool.result","payload":{"callId":"c3","name":"deploy","success":false,"output":{}},"ts":1,"seq":17}`,
			`{"type":"response.text.delta","payload":{"text":"Done.\u001b]0;evil\u0007"},"ts":1,"seq":18}`,
			`{"type":"session.state","payload":{"value":"idle"},"ts":1,"seq":19}`)
		next()
	}))
	defer s.Close()
	keys, _, out, errs, ended := typist(t, s.URL, "agent")
	out.await(t, "> ")
	if start := <-heard; !strings.Contains(start, `"approvals":true`) {
		t.Errorf("it began with %s", start)
	}
	_, _ = io.WriteString(keys, "go\n")
	<-heard
	errs.await(t, "— may it? Write 1 line to notes (write_file, which may destroy something). Type yes or no")
	_, _ = io.WriteString(keys, "please\n")
	errs.await(t, "— type yes or no")
	_, _ = io.WriteString(keys, "yes\nnever\n")
	for _, want := range []string{
		`{"approvalId":"a1.1","allow":true}`,
		`{"approvalId":"a1.2","allow":false,"remember":true}`,
	} {
		if got := <-heard; !strings.Contains(got, want) {
			t.Errorf("it sent %s, want %s", got, want)
		}
	}
	errs.await(t, "(deploy, which")
	errs.await(t, "— that question is over")
	out.await(t, "\x1b[31m-old\x1b[39m\n\x1b[32m+new[2J\x1b[39m\n\x1b[2m[a.go: 2 lines]\x1b[22m\n")
	out.await(t, "Done.]0;evil\n> ")
	_, _ = io.WriteString(keys, "/quit\n")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestReplayScript: a conversation's journal, as a script, passes against another gateway.
func TestReplayScript(t *testing.T) {
	dir := t.TempDir()
	c := &chat{url: liveGateway(t, gateway.Config{Journal: dir}), turns: "agent", in: strings.NewReader("hello\n"), streams: streams{io.Discard, io.Discard}}
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	journals, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if len(journals) != 1 {
		t.Fatalf("journals: %v", journals)
	}
	code, text, errs := vela(t, "replay", "--script", journals[0])
	if code != 0 || !strings.Contains(text, "You said:") {
		t.Fatalf("exit %d: %s\n%s", code, errs, text)
	}
	made := filepath.Join(dir, "made.vela")
	if err := os.WriteFile(made, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := vela(t, "script", "--url", liveGateway(t, gateway.Config{}), made); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := vela(t, "replay", "--script", made, made); code != 2 || !strings.Contains(errs, "name one") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := vela(t, "replay", "--script", made); code != 1 || !strings.Contains(errs, "no journal") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
