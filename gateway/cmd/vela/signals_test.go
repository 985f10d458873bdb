package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"vela/gateway"
	"vela/gateway/client"
	"vela/gateway/closedport"
	"vela/protocol"
)

// tail runs the command until stop, which returns its exit code.
func tail(t *testing.T, out *paper, args ...string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"tail"}, args...), out, out) }()
	return func() int { cancel(); return <-code }
}

func TestEmitAndTail(t *testing.T) {
	addr := liveGateway(t, gateway.Config{})
	t.Setenv("VELA_URL", addr)
	emit := func(args ...string) {
		t.Helper()
		if code, out, errs := vela(t, append([]string{"emit"}, args...)...); code != 0 || len(strings.TrimSpace(out)) != 36 {
			t.Fatalf("emit %q: exit %d, %q, %s", args, code, out, errs)
		}
	}
	emit("first", "--source", "build")
	var all, some, lines paper
	ends := []func() int{
		tail(t, &all, "--since", "--color", "always"),
		tail(t, &some, "--since", "--type", "deploy.*", "--source", "build"),
		tail(t, &lines, "--since", "--json", "--internal"),
	}
	emit("deploy.done", "--source", "build", "--correlation", "c", "--payload", ` {"ok":true}`)
	emit("deploy.done", "--source", "other")
	emit("event", "--payload", `{"_meta":{"heartbeat":true}}`)
	emit("thinking", "--payload", "{\"agentId\":\"a\",\"content\":\"\u009b2J\u202e\"}")
	emit("deploy.last", "--source", "build")
	all.await(t, " deploy.last ")
	some.await(t, " deploy.last ")
	lines.await(t, `"type":"deploy.last"`)
	for _, end := range ends {
		if code := end(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	if got := some.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, ` build deploy.done {"ok":true}`+"\n") {
		t.Errorf("of one type and source: %q", got)
	}
	if got := all.String(); strings.Count(got, "\n") != 5 || strings.Contains(got, "heartbeat") || !strings.Contains(got, "mbuild\x1b[0m first {}") || strings.ContainsAny(got, "\u009b\u202e") {
		t.Errorf("all: %q", got)
	}
	if got := lines.String(); strings.Count(got, "\n") != 6 || !strings.Contains(got, `"type":"deploy.done"`) || !strings.Contains(got, `"source":"build","correlationId":"c","payload":{"ok":true}}`) {
		t.Errorf("as JSON: %q", got)
	}
}

// A turn is on the stream, too, and what is read back can be sent again.
func TestATurnIsOnTheStream(t *testing.T) {
	addr := liveGateway(t, gateway.Config{})
	var out paper
	end := tail(t, &out, "--since", "--url", addr, "--source", "session:*")
	conn, err := client.Dial(t.Context(), addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Send(t.Context(), protocol.MockedTurnTrigger{}); err != nil {
		t.Fatal(err)
	}
	out.await(t, " completion ")
	end()
	for _, want := range []string{` task_dispatch {"taskId":"t1","from":"user","to":"vela","description":`, ` text_delta {"agentId":`, ` completion {"taskId":"t1",`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestEmitTakesLines(t *testing.T) {
	addr := liveGateway(t, gateway.Config{})
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdin = r
	if _, err := w.WriteString(`{"id":"one","type":"x"}` + "\n\n" + `{"id":"two","type":"x"}` + "\nnonsense\n" + `{"id":"three","type":"x"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	code, out, errs := vela(t, "emit", "-", "--url", addr)
	if code != 1 || out != "one\ntwo\n" || !strings.Contains(errs, "not JSON") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
}

func TestSignalsThatCannotBe(t *testing.T) {
	closed := "http://" + closedport.New(t)
	strange := httptest.NewServer(http.NotFoundHandler())
	defer strange.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	live := liveGateway(t, gateway.Config{})
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"emit"}, 2, "a signal has a type"},
		{[]string{"emit", "x", "--payload", "[]"}, 2, "a JSON object"},
		{[]string{"emit", "x", "--payload", ""}, 2, "a JSON object"},
		{[]string{"hook"}, 2, "Claude Code calls this by itself"},
		{[]string{"emit", "x", "--url", "ftp://x"}, 1, "not reached by ftp"},
		{[]string{"emit", "x", "--url", closed}, 1, "no gateway answers"},
		{[]string{"emit", "x", "--url", strange.URL}, 1, "takes no signals"},
		{[]string{"emit", "x", "--url", refuses.URL}, 1, "VELA_TOKEN"},
		{[]string{"emit", "thinking", "--url", live}, 1, "the payload of thinking: agentId is missing"},
		{[]string{"tail", "--url", closed}, 1, "no gateway answers"},
		{[]string{"tail", "--url", strange.URL}, 1, "streams no signals"},
		{[]string{"tail", "--url", refuses.URL}, 1, "VELA_TOKEN"},
	} {
		code, _, errs := vela(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit %d, want %d with %q\n%s", c.args, code, c.code, c.says, errs)
		}
	}
}

// A stream that breaks is taken up again, from where it was.
func TestTailComesBack(t *testing.T) {
	places := make(chan string, 8)
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		places <- strings.Join(r.Header["Last-Event-Id"], ",")
		w.Header().Set("Content-Type", "text/event-stream")
		n++
		_, _ = w.Write([]byte("id: abc-" + string(rune('0'+n)) + "\ndata: {\"type\":\"x\",\"source\":\"s\",\"payload\":{}}\n\n"))
		if n == 2 {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	var out paper
	end := tail(t, &out, "--url", s.URL)
	if first, second := <-places, <-places; first != "" || second != "abc-1" {
		t.Errorf("it asks behind %q and then %q", first, second)
	}
	if code := end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// Whose token is over is told so, once.
func TestTailEndsWhereItIsRefused(t *testing.T) {
	first := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !first {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		first = false
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(": connected\n\n"))
	}))
	defer s.Close()
	if code, _, errs := vela(t, "tail", "--url", s.URL); code != 1 || !strings.Contains(errs, "set VELA_TOKEN") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	for color, want := range map[string]bool{"always": true, "never": false, "auto": false} {
		if got := (&tailCmd{Color: color}).colours(new(bytes.Buffer)); got != want {
			t.Errorf("%s: %v", color, got)
		}
	}
	null, err := os.Open(os.DevNull) // a device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	t.Setenv("NO_COLOR", "")
	if !(&tailCmd{Color: "auto"}).colours(null) {
		t.Error("no colours on a device")
	}
	t.Setenv("NO_COLOR", "1")
	if (&tailCmd{Color: "auto"}).colours(null) {
		t.Error("colours, although NO_COLOR is set")
	}
}
