package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vela/gateway"
	"vela/gateway/closedport"
)

func TestTapMakesSignalsOfWhatAProgramPrints(t *testing.T) {
	addr := liveGateway(t, gateway.Config{})
	var signals paper
	end := tail(t, &signals, "--since", "--json", "--url", addr)
	t.Setenv("VELA_URL", addr)
	// The program ends once its last signal has come: what waits then is lost on a slow machine.
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	tap := func(last string, args ...string) (code int, out, errs string) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		os.Stdin = r
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			code, out, errs = vela(t, append([]string{"tap"}, args...)...)
		}()
		signals.await(t, last)
		_ = w.Close()
		<-ended
		return code, out, errs
	}
	code, out, errs := tap("invalid_payload", "--correlation-id", "run 7", "--", "sh", "-c",
		`echo '{"type":"tool_call","toolName":"ls","agentId":"me"}'; echo not JSON; echo '{"type":"thinking"}'; read x; exit 4`)
	if code != 4 || errs != "" || out != "{\"type\":\"tool_call\",\"toolName\":\"ls\",\"agentId\":\"me\"}\nnot JSON\n{\"type\":\"thinking\"}\n" {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	code, out, errs = tap("done --raw", "--raw", "--source", "nightly", "sh", "-c", `echo "Using: make"; echo done --raw; read x; exit 0`)
	if code != 0 || errs != "" || out != "Using: make\ndone --raw\n" {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	end()
	got := signals.String()
	for _, want := range []string{
		`"source":"adapter:tap:jsonl","correlationId":"run 7","payload":{"toolName":"ls","agentId":"me"}}`,
		`"code":"invalid_payload"`, // what a line lacks stands among the signals
		`"source":"nightly","payload":{"toolName":"make","agentId":"unknown"}}`,
		`"source":"nightly","payload":{"agentId":"unknown","content":"done --raw"}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 4 {
		t.Errorf("there are %d signals:\n%s", n, got)
	}
}

func TestTapWithoutAGateway(t *testing.T) {
	code, out, errs := vela(t, "tap", "--raw", "--endpoint", "http://"+closedport.New(t), "--", "sh", "-c", "echo one; echo two; exit 9")
	if code != 9 || out != "one\ntwo\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	if !strings.HasPrefix(errs, "vela: 2 of 2 signals did not reach the gateway: no gateway answers") || strings.Count(errs, "\n") != 1 {
		t.Errorf("it says %q", errs)
	}
}

func TestTapCalledWrongly(t *testing.T) {
	long := strings.Repeat("s", 257)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"tap"}, 2, "which program"},
		{[]string{"tap", "--"}, 2, "which program"},
		{[]string{"tap", "--", ""}, 2, "which program"},
		{[]string{"tap", "--bogus", "--", "true"}, 2, "--bogus"},
		{[]string{"tap", "--source", long, "--", "true"}, 2, "at most 256"},
		{[]string{"tap", "--correlation-id", long, "--", "true"}, 2, "at most 256"},
		{[]string{"tap", "--endpoint", "ftp://x", "--", "true"}, 1, "not reached by ftp"},
		{[]string{"tap", "--", "no-such-program-anywhere"}, 127, "cannot be run"},
		{[]string{"tap", "--", "/no/such/program"}, 127, "cannot be run"},
		{[]string{"tap", "--", t.TempDir()}, 126, "cannot be run"},
		{[]string{"hook"}, 2, "settings"},
		{[]string{"hook", filepath.Join(t.TempDir(), "none")}, 1, "Claude Code's settings"},
	} {
		code, out, errs := vela(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%.80q: exit %d, want %d with %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

func TestTapSaysHowItIsUsed(t *testing.T) {
	if code, out, _ := vela(t, "tap", "--help"); code != 0 || !strings.Contains(out, "vela tap --raw --source nightly -- make test") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
