package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vela runs the program in this process.
func vela(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestCalledWrongly(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("not a sound"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string // on standard error, and what to do
	}{
		{"fly", 2, "vela --help"},
		{"serve --bogus", 2, "--bogus"},
		{"serve --turns magic", 2, "deterministic"},
		{"serve --pace -1s", 2, "--pace"},
		{"serve --max-sessions 0", 2, "at least 1"},
		{"serve --idle 1ms", 2, "at least 1s"},
		{"serve --speech-decoders -1", 2, "--speech-decoders"},
		{"serve --addr 0.0.0.0:8080", 1, "listen on 127.0.0.1"},
		{"serve --addr 192.168.1.4:8080", 1, "refusing to listen"},
		{"serve --addr :8080", 1, "refusing to listen"},
		{"serve --addr nonsense", 1, "write host:port"},
		{"serve --origin example.org", 1, "write it like https://"},
		{"serve --addr 127.0.0.1:99999", 1, "choose another address or port with --addr"},
		{"serve --addr 127.0.0.1:0 --data " + text, 1, "--data"},
		{"serve --addr 127.0.0.1:0 --nats nats://127.0.0.1:1", 1, "--nats"},
		{"serve --addr 127.0.0.1:0 --data d --nats nats://127.0.0.1:1", 2, "leave one of them out"},
		{"key a:b", 2, "up to 32 letters, digits, - and _"},
		{"say", 2, "<file>"},
		{"say /no/such.wav", 1, "no such file"},
		{"say " + text, 1, "not a WAV file"},
		{"script", 2, "<files>"},
		{"script /no/such.vela", 1, "no such file"},
	} {
		code, out, errs := vela(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("vela %s: exit %d, want %d with %q\nout: %s\nerr: %s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

func TestHelpForANewcomer(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}} {
		code, out, _ := vela(t, args...)
		for _, want := range []string{"vela serve --turns agent", "serve", "say", "script", "engines"} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("vela %v: exit %d, no %q in\n%s", args, code, want, out)
			}
		}
	}
}

func TestEnginesSaysWhatIsThere(t *testing.T) {
	code, out, _ := vela(t, "engines")
	if code != 0 || !strings.Contains(out, "echo") || !strings.Contains(out, "pocketsphinx") {
		t.Errorf("exit %d\n%s", code, out)
	}
	code, out, _ = vela(t, "engines", "--speech-model", t.TempDir())
	if code != 0 || !strings.Contains(out, "no ") {
		t.Errorf("without a model: exit %d\n%s", code, out)
	}
}

func TestServeUntilTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := &ready{seen: make(chan struct{})}
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, out, new(bytes.Buffer)) }()
	<-out.seen
	stop()
	if c := <-code; c != 0 {
		t.Errorf("exit %d", c)
	}
}

// ready notices the line that says where the page is.
type ready struct{ seen chan struct{} }

func (r *ready) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), "Vela is at http://127.0.0.1:") {
		close(r.seen)
	}
	return len(b), nil
}
