// Package e2e runs the built program from outside, as its users do: it imports none of Vela's code. The program is
// ../bin/vela, which make builds; VELA_BIN names another.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VELA_BIN")
	if path == "" {
		path = filepath.Join("..", "bin", "vela")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the program is not built: run make build (%v)", err)
	}
	return path
}

// gateway is a running vela serve.
type gateway struct {
	*testing.T
	cmd  *exec.Cmd
	addr string
	log  *bytes.Buffer // complete once the process has ended
}

func serve(t *testing.T, args ...string) *gateway {
	t.Helper()
	return serveAt(t, "127.0.0.1:0", args...)
}

func serveAt(t *testing.T, addr string, args ...string) *gateway {
	t.Helper()
	g := &gateway{T: t, log: new(bytes.Buffer)}
	g.cmd = exec.Command(program(t), append([]string{"serve", "--addr", addr}, args...)...)
	g.cmd.Stderr = g.log
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.cmd.Process.Kill(); _ = g.cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	_, at, ok := strings.Cut(strings.TrimSpace(line), "Vela is at http://")
	if !ok {
		t.Fatalf("it said %q (%v)\n%s", line, err, g.log)
	}
	g.addr = at
	g.eventually("ready", func() bool { status, _ := g.get("/readyz"); return status == http.StatusOK })
	return g
}

func (g *gateway) get(path string) (int, string) {
	g.Helper()
	resp, err := http.Get("http://" + g.addr + path)
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// eventually asks again, fifty times a second, until it holds.
func (g *gateway) eventually(what string, holds func() bool) {
	g.Helper()
	end := time.After(30 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-end:
			g.Fatalf("never %s", what)
		case <-again.C:
		}
	}
}

// metric is the value of one of the gateway's metrics.
func (g *gateway) metric(name string) float64 {
	g.Helper()
	_, text := g.get("/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		g.Fatalf("no metric %s", name)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		g.Fatal(err)
	}
	return v
}

// run runs the program to its end.
func run(t *testing.T, stdin io.Reader, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(ctx, program(t), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &o, &e
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// slower than the default, so that what a script sends between two events is there before the second on a busy machine too.
const slower = "300ms"

// TestScripts runs every scripted turn against one gateway: what one does must not disturb the others. Those that speak
// run one after the other, since only so many may speak at once.
func TestScripts(t *testing.T) {
	g := serve(t, "--pace", slower)
	g.passAtOnce(t, "scripts/*.vela", 60)
}

// TestScriptsOfVersion2 is the same for version 2.
func TestScriptsOfVersion2(t *testing.T) {
	g := serve(t, "--pace", slower)
	g.passAtOnce(t, "scripts/v2/*.vela", 40)
}

// TestScriptsThatSpeak is the same for turns that are recognised.
func TestScriptsThatSpeak(t *testing.T) {
	g := serve(t)
	each(t, "scripts/agent/*.vela", 15, g.passes)
}

// passAtOnce runs scripts eight at a time, whatever the machine: most of their time they wait.
func (g *gateway) passAtOnce(t *testing.T, pattern string, least int) {
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	for _, file := range scripts(t, pattern, least) {
		places <- struct{}{}
		all.Go(func() {
			g.passes(t, file)
			<-places
		})
	}
	all.Wait()
}

func scripts(t *testing.T, pattern string, least int) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < least {
		t.Fatalf("%d scripts in %s, %v; want at least %d", len(files), pattern, err, least)
	}
	return files
}

func each(t *testing.T, pattern string, least int, test func(*testing.T, string)) {
	for _, file := range scripts(t, pattern, least) {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "scripts/"), ".vela")
		t.Run(name, func(t *testing.T) { test(t, file) })
	}
}

func (g *gateway) passes(t *testing.T, file string) {
	if code, out, errs := run(t, nil, "script", "--url", g.addr, file); code != 0 {
		t.Errorf("%s: exit %d\n%s%s", file, code, out, errs)
	}
}

// TestScriptsWithAGatewayOfTheirOwn: without --url one is started; a failing script fails the command.
func TestScriptsWithAGatewayOfTheirOwn(t *testing.T) {
	if code, out, errs := run(t, nil, "script", "scripts/handshake.vela"); code != 0 || !strings.Contains(out, "PASS") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.vela")
	text := "# Expects what no gateway sends.\n< {\"type\":\"session.ready\",\"payload\":{\"sessionId\":\"me\"}}\n"
	if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := run(t, nil, "script", wrong); code != 1 || !strings.Contains(out, "FAIL") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestSay speaks with flite's voice, resampled by flite itself to 16 kHz and sent both ways.
func TestSay(t *testing.T) {
	wav := filepath.Join(t.TempDir(), "said.wav")
	const sentence = "what is the weather like in london today"
	if out, err := exec.Command("flite", "-voice", "slt", "-t", sentence, "-o", wav).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	g := serve(t)
	for _, args := range [][]string{{"say", wav}, {"say", "--fast", wav}} {
		code, out, errs := run(t, nil, append(args, "--url", g.addr)...)
		heard, answered, ok := strings.Cut(out, "\nagent: You said: ")
		heard = strings.TrimPrefix(heard, "you: ")
		if code != 0 || !ok || strings.TrimSpace(answered) != heard || !strings.Contains(heard, "weather") {
			t.Errorf("vela %v: exit %d\n%s%s", args, code, out, errs)
		}
		if !strings.Contains(errs, "… ") {
			t.Errorf("vela %v showed no partial transcript\n%s", args, errs)
		}
	}
	if code, _, errs := run(t, nil, "say", "--url", "127.0.0.1:1", wav); code != 1 || !strings.Contains(errs, "vela serve") {
		t.Errorf("with no gateway: exit %d, %s", code, errs)
	}
}

// TestStopping: SIGTERM ends sessions in the middle of a turn with 1001, and the process within 5 s and with 0, also where
// clients never read, and so never say goodbye, and go on talking.
func TestStopping(t *testing.T) {
	g := serve(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	trigger := []byte(`{"type":"mocked.turn.trigger","payload":{}}`)
	busy := g.dial(ctx)
	if err := busy.Write(ctx, websocket.MessageText, trigger); err != nil {
		t.Fatal(err)
	}
	var talking, mutes sync.WaitGroup
	for range 50 {
		mute := g.dial(ctx)
		talking.Add(1)
		mutes.Go(func() {
			talks := sync.OnceFunc(talking.Done)
			defer talks()
			for n := 0; mute.Write(ctx, websocket.MessageText, trigger) == nil; n++ {
				if n == 10 {
					talks()
				}
				wait(ctx, time.Millisecond)
			}
		})
	}
	talking.Wait()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, _, err = busy.Read(ctx)
	}
	if code := websocket.CloseStatus(err); code != websocket.StatusGoingAway {
		t.Errorf("closed with %d, want 1001", code)
	}
	if err := g.cmd.Wait(); err != nil { // its own last resort, after 4.8 s, ends it with 1
		t.Errorf("the process: %v\n%s", err, g.log)
	}
	mutes.Wait()
}

func (g *gateway) dial(ctx context.Context) *websocket.Conn {
	g.Helper()
	c, _, err := websocket.Dial(ctx, "ws://"+g.addr+"/ws", nil)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// TestThePortIsTaken: the words say what to do.
func TestThePortIsTaken(t *testing.T) {
	g := serve(t)
	code, _, errs := run(t, nil, "serve", "--addr", g.addr)
	if code != 1 || !strings.Contains(errs, "--addr") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestTheProcessIsAsBefore: 1,000 sessions come and go, after a first 3,000 that fill what is kept for good, the log of the
// last 10,000 signals above all: a turn has at least four.
func TestTheProcessIsAsBefore(t *testing.T) {
	g := serve(t, "--pace", "0s", "--log-level", "error")
	goroutines := func() float64 { return g.metric("go_goroutines") }
	before := goroutines()
	for range 3 {
		g.comeAndGo(1000)
	}
	g.eventually(fmt.Sprintf("down to %v goroutines", before), func() bool { return goroutines() <= before })
	var memory, after float64
	for range 5 { // a leak adds in each; pages that the runtime gave back meanwhile are missing in one
		memory = g.metric("process_resident_memory_bytes")
		g.comeAndGo(1000)
		g.eventually(fmt.Sprintf("down to %v goroutines", before), func() bool { return goroutines() <= before })
		if after = g.metric("process_resident_memory_bytes"); after <= 1.1*memory {
			return
		}
	}
	t.Errorf("%.1f MB before, %.1f MB after: more than 10 %% more", memory/1e6, after/1e6)
}

// comeAndGo has fifty clients at a time each run a turn and leave.
func (g *gateway) comeAndGo(sessions int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	places := make(chan struct{}, 50)
	var wg sync.WaitGroup
	for range sessions {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := g.oneTurn(ctx); err != nil {
				g.Error(err)
			}
		})
	}
	wg.Wait()
	g.eventually("without a session", func() bool { return g.metric("vela_sessions") == 0 })
}

func (g *gateway) oneTurn(ctx context.Context) error {
	c, _, err := websocket.Dial(ctx, "ws://"+g.addr+"/ws", nil)
	if err != nil {
		return err
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"mocked.turn.trigger","payload":{}}`)); err != nil {
		return err
	}
	for {
		_, frame, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if strings.Contains(string(frame), "response.completed") {
			return nil
		}
	}
}

// TestNothingSecretIsTold: what clients and operators see names no path of the host.
func TestNothingSecretIsTold(t *testing.T) {
	home, _ := os.Getwd()
	g := serve(t, "--speech-model", filepath.Join(home, "no-such-model"))
	for _, path := range []string{"/api/engines", "/metrics", "/", "/readyz"} {
		if _, body := g.get(path); strings.Contains(body, home) {
			t.Errorf("%s names a path of the host:\n%.400s", path, body)
		}
	}
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	_ = g.cmd.Wait()
	if strings.Contains(g.log.String(), home) {
		t.Errorf("the log names a path of the host:\n%s", g.log)
	}
}
