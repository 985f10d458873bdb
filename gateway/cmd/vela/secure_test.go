package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

// written collects what a command writes while it runs.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// running is a vela serve with keys and TLS that anybody on the network could reach.
type running struct {
	*testing.T
	out, log  written
	url       string
	invited   string // the token of its invitation
	client    *http.Client
	stop      context.CancelFunc
	collected strings.Builder // every answer and event that it gave
}

func serveSecurely(t *testing.T, keys string) *running {
	t.Helper()
	t.Setenv("VELA_KEYS", keys)
	ctx, stop := context.WithCancel(context.Background())
	r := &running{T: t, stop: stop, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}}
	code := make(chan int, 1)
	args := []string{"serve", "--addr", "0.0.0.0:0", "--auth", "keys", "--tls", "self", "--data", t.TempDir(), "--invite", "link", "--log-level", "debug"}
	go func() { code <- run(ctx, args, &r.out, &r.log) }()
	r.stop = func() {
		stop()
		if c := <-code; c != 0 {
			t.Errorf("exit %d", c)
		}
		code <- 0
	}
	t.Cleanup(r.stop)
	link := regexp.MustCompile(`https://[^ ]+:(\d+)/#token=(\S+)\n`)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if m := link.FindStringSubmatch(r.out.String()); m != nil {
			r.url, r.invited = "https://127.0.0.1:"+m[1], m[2]
			return r
		}
		if time.Now().After(end) {
			t.Fatalf("not ready\n%s\n%s", &r.out, &r.log)
		}
	}
}

func (r *running) ask(method, path, credential string) (int, []byte) {
	r.Helper()
	req, _ := http.NewRequest(method, r.url+path, strings.NewReader("{}"))
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if path != "/api/tokens" || resp.StatusCode != 200 {
		r.collected.Write(body)
	}
	return resp.StatusCode, body
}

// talk opens a socket with a token as a browser does, and collects what it gets.
func (r *running) talk(token string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	ws, resp, err := websocket.Dial(ctx, strings.Replace(r.url, "https", "wss", 1)+"/ws?turns=agent",
		&websocket.DialOptions{HTTPClient: r.client, Subprotocols: []string{"vela.v1", "vela.token." + token}})
	if resp != nil {
		for _, values := range resp.Header {
			r.collected.WriteString(strings.Join(values, "\n"))
		}
	}
	if err != nil {
		r.collected.WriteString(err.Error())
		return
	}
	defer ws.CloseNow()
	for _, m := range []string{"{", `{"type":"nonsense"}`, `{"type":"input_audio.append","payload":{"chunk":"AAAA"}}`, `{"type":"mocked.turn.trigger","payload":{}}`} {
		_ = ws.Write(ctx, websocket.MessageText, []byte(m))
	}
	for range 6 {
		_, frame, err := ws.Read(ctx)
		if err != nil {
			r.collected.WriteString(err.Error())
			return
		}
		r.collected.Write(frame)
	}
}

// TestNoSecretIsEverShown goes every way there is with credentials, good and bad, with all logging on.
func TestNoSecretIsEverShown(t *testing.T) {
	const secret, wrong = "5ecre7-5ecre7-5ecre7-5ecre7-5ecre7", "wr0ng-wr0ng-wr0ng-wr0ng-wr0ng-wr0ng"
	r := serveSecurely(t, "main:"+secret)
	if os.Getenv("VELA_KEYS") != "" {
		t.Error("the keys are left in the environment")
	}
	status, body := r.ask("POST", "/api/tokens", secret)
	var made struct{ Token string }
	if err := json.Unmarshal(body, &made); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	forged := made.Token[:len(made.Token)-8] + "AAAAAAAA"
	credentials := []string{secret, wrong, made.Token, r.invited, forged, "eyJub25l.c2Vuc2U.YXRhbGw"}
	for _, c := range credentials {
		for _, path := range []string{"/api/engines", "/metrics", "/ws", "/api/nothing", "/", "/healthz"} {
			r.ask("GET", path, c)
		}
		r.ask("POST", "/api/tokens", c+"x")
		r.talk(c)
	}
	_, metrics := r.ask("GET", "/metrics", secret)
	for range 12 { // until it is too often
		r.ask("POST", "/api/tokens", wrong)
	}
	r.stop()

	for what, text := range map[string]string{
		"the log": r.log.String(), "answers and events": r.collected.String(), "metrics": string(metrics),
		"the output": strings.ReplaceAll(r.out.String(), "#token="+r.invited, ""),
	} {
		if text == "" {
			t.Errorf("%s: nothing was collected", what)
		}
		for _, c := range credentials {
			for _, part := range strings.Split(c, ".") {
				if strings.Contains(text, part) {
					t.Errorf("%s shows %q", what, part)
				}
			}
		}
	}
	for _, want := range []string{"caller refused", "forged", "throttled", "token made"} {
		if what := r.log.String() + string(metrics); !strings.Contains(what, want) {
			t.Errorf("%q is nowhere: the test does not go where it should", want)
		}
	}
}

func TestAnInvitation(t *testing.T) {
	r := serveSecurely(t, "main:0123456789abcdef0123456789abcdef")
	if status, _ := r.ask("GET", "/api/engines", r.invited); status != 200 {
		t.Errorf("its token: %d", status)
	}
	for _, want := range []string{"Vela is at https://localhost:", "fingerprint is ", "It is good until "} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("no %q in\n%s", want, &r.out)
		}
	}
	if strings.Contains(r.out.String(), "█") {
		t.Error("a code was drawn that nobody asked for")
	}
}

func TestDrawQR(t *testing.T) {
	var b bytes.Buffer
	if err := drawQR(&b, "https://192.0.2.1:8443/#token="+strings.Repeat("a", 290)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for _, l := range lines {
		modules := strings.TrimSuffix(strings.TrimPrefix(l, "\x1b[38;5;16;48;5;231m"), "\x1b[0m")
		if n := len([]rune(modules)); n != len([]rune(lines[0]))-len("\x1b[38;5;16;48;5;231m\x1b[0m") || n > 80 {
			t.Errorf("a line of %d modules, which does not fit a terminal or the others", n)
		}
	}
	if len(lines) > 40 || strings.ContainsAny(lines[0]+lines[1], "█▀▄") {
		t.Errorf("%d lines, the first %q", len(lines), lines[0])
	}
}

func TestKeyIsForVelaKeys(t *testing.T) {
	_, first, _ := vela(t, "key")
	_, second, _ := vela(t, "key", "spare")
	if !regexp.MustCompile(`^main:[0-9a-f]{64}\n$`).MatchString(first) || !regexp.MustCompile(`^spare:[0-9a-f]{64}\n$`).MatchString(second) || first[5:] == second[6:] {
		t.Errorf("%q %q", first, second)
	}
}

func TestCalledWronglyWithKeysAndTLS(t *testing.T) {
	const good = "main:0123456789abcdef0123456789abcdef"
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for _, c := range []struct {
		keys, args string
		code       int
		says       string
	}{
		{"", "--auth keys", 1, "vela key"},
		{"main:short", "--auth keys", 1, "fewer than 32"},
		{good, "--addr 0.0.0.0:0", 1, "Add --auth keys with"},
		{good, "--addr 0.0.0.0:0 --auth keys", 1, "Add --tls self"},
		{good, "--addr 0.0.0.0:0 --tls self --data " + t.TempDir(), 1, "Add --auth keys"},
		{"", "--auth magic", 2, "keys"},
		{"", "--tls", 2, "--tls"},
		{"", "--tls one", 2, "CERT KEY"},
		{"", "--tls one,", 2, "CERT KEY"},
		{"", "--tls one --turns agent", 2, "CERT KEY"},
		{"", "--tls " + missing + " " + missing, 1, "the certificate cannot be read"},
		{"", "--tls=" + missing + "," + missing, 1, "the certificate cannot be read"},
		{"", "--invite link", 2, "--auth keys"},
		{good, "--auth keys --tls self --data /dev/null/x", 1, "--data"},
	} {
		t.Setenv("VELA_KEYS", c.keys)
		code, out, errs := vela(t, append([]string{"serve"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Contains(out+errs, "0123456789abcdef") {
			t.Errorf("%s: exit %d, want %d with %q\nout: %s\nerr: %s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

// The webhook's secret is asked for, shown nowhere, and left to no program that is started later.
func TestTheWebhooksSecret(t *testing.T) {
	const secret = "whsec_aGlkZGVuLWhpZGRlbi1oaWRkZW4taGlkZGVu"
	for _, c := range []struct{ secret, args, says string }{
		{"", "--webhook https://host.example/x", "VELA_WEBHOOK_SECRET"},
		{"whsec_hidden", "--webhook https://host.example/x", "24 to 64"},
		{strings.TrimPrefix(secret, "whsec_"), "--webhook https://host.example/x", "whsec_"},
		{secret, "--webhook host.example", "write it like https://"},
		{secret, "--webhook https://host.example/x --webhook-types " + strings.Repeat("x", 129), "types"},
		{secret, "--addr 0.0.0.0:0", "does nothing"},
	} {
		t.Setenv("VELA_WEBHOOK_SECRET", c.secret)
		code, out, errs := vela(t, append([]string{"serve"}, strings.Fields(c.args)...)...)
		if code != 1 || !strings.Contains(errs, c.says) || strings.Contains(out+errs, "aGlkZGVu") || strings.Contains(out+errs, "hidden") {
			t.Errorf("%s: exit %d with %s%s", c.args, code, out, errs)
		}
		if os.Getenv("VELA_WEBHOOK_SECRET") != "" {
			t.Errorf("%s: the secret is left in the environment", c.args)
		}
	}
}
