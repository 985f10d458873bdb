package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// live runs a gateway until the test ends. It returns where it is, and its log.
func live(t *testing.T, cfg Config) (address string, log *lockedBuffer) {
	t.Helper()
	log = new(lockedBuffer)
	cfg.Addr, cfg.Log = "127.0.0.1:0", slog.New(slog.NewTextHandler(log, nil))
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return <-ready, log
}

// asked makes a request, and returns the status and the answer.
func asked(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

// events opens an event stream; next returns the data of one event after the other.
func events(t *testing.T, url string) (next func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() string {
		t.Helper()
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return data
			}
		}
		t.Fatal("the stream ended: ", lines.Err())
		return ""
	}
}

const (
	glow = `{"choreographies":[{"id":"glow","on":"deploy","when":{"ok":{"equals":true}}}],
		"wires":[{"id":"w","fromZone":"signal-type","fromId":"deploy","toZone":"choreographer","toId":"glow","filters":[{"type":"sample","every":2}]}],
		"bindings":[{"id":"b","targetEntityId":"lamp","property":"opacity","sourceChoreographyId":"glow","sourceType":"float"}]}`
	deploy = `{"id":"d","type":"deploy","source":"ci","correlationId":"c","payload":{"ok":true,"value":0.5}}`
)

// From a signal that is posted to what it sets off, as a stage sees it.
// since is when a wiring came in force, which no test knows.
var since = regexp.MustCompile(`,"since":[1-9][0-9]{12}`)

func TestARun(t *testing.T) {
	addr, _ := live(t, Config{})
	base := "http://" + addr
	expect := func(method, path, body string, status int, want string) {
		t.Helper()
		got, text := asked(t, method, base+path, body)
		if text = since.ReplaceAllString(text, ""); got != status || text != want {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, got, text, status, want)
		}
	}
	expect("GET", "/api/wiring", "", 200, "{}")
	expect("PUT", "/api/wiring", `{"wires":[{}]}`, 400, `{"message":"The wiring is wrong; what was in force stays.","mistakes":["/wires/0: missing properties 'id', 'fromZone', 'fromId', 'toZone', 'toId'"]}`)
	expect("PUT", "/api/wiring", glow, 204, "")
	expect("GET", "/api/wiring", "", 200, glow)
	expect("GET", "/api/run", "", 200, `{"running":false,"count":0,"dropped":0,"wires":[],"choreographies":[]}`)
	expect("POST", "/api/run", `{}`, 400, `{"message":"Say {\"running\": true} or {\"running\": false}, as application/json."}`)
	expect("POST", "/api/signal", deploy, 200, `{"ok":true,"id":"d","clients":0}`)

	next := events(t, base+"/__commands__/stream")
	expect("POST", "/api/run", `{"running":true}`, 200, `{"running":true,"count":0,"dropped":0,"wires":[{"id":"w","seen":0,"passed":0,"filters":[{"type":"sample","seen":0,"passed":0}]}],"choreographies":[{"id":"glow","seen":0,"performed":0}]}`)
	for range 2 {
		expect("POST", "/api/signal", deploy, 200, `{"ok":true,"id":"d","clients":1}`)
	}
	for _, want := range []string{
		`{"command":"started"}`,
		`{"command":"assignment","binding":"b","entity":"lamp","property":"opacity","value":0.5}`,
		`{"command":"dispatch","performance":1,"choreography":"glow","type":"__f:glow","signalId":"d","signalType":"deploy","correlationId":"c","payload":{"ok":true,"value":0.5}}`,
		`{"command":"assignment","binding":"b","entity":"lamp","property":"opacity","value":0.5}`,
	} {
		if got := next(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	expect("GET", "/api/run", "", 200, `{"running":true,"count":2,"dropped":0,"wires":[{"id":"w","seen":2,"passed":1,"filters":[{"type":"sample","seen":2,"passed":1}]}],"choreographies":[{"id":"glow","seen":1,"performed":1}]}`)
	expect("POST", "/api/run", `{"running":false}`, 200, `{"running":false,"count":0,"dropped":0,"wires":[],"choreographies":[]}`)
	if got, want := next(), `{"command":"stopped","entities":[{"id":"lamp","x":0,"y":0,"scale":1,"rotation":0,"opacity":1,"visible":true}]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if status, text := asked(t, "GET", base+"/schema/wiring.json", ""); status != 200 || !json.Valid([]byte(text)) {
		t.Errorf("%d %.100s", status, text)
	}
}

func TestDiscoveryIsServed(t *testing.T) {
	addr, _ := live(t, Config{})
	var found struct{ Services []struct{ ID string } }
	status, text := asked(t, "GET", "http://"+addr+"/api/discover/local", "")
	if err := json.Unmarshal([]byte(text), &found); err != nil || status != 200 || len(found.Services) != 4 || found.Services[0].ID != "local:claude-code" {
		t.Errorf("%d %s, %v", status, text, err)
	}
}

func TestTheWiringsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wiring.json")
	addr, log := live(t, Config{Wiring: file})
	url := "http://" + addr + "/api/wiring"
	inForce := func(want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, got := asked(t, "GET", url, ""); got == want {
				return
			} else if time.Now().After(end) {
				t.Fatalf("in force is %s, want %s\n%s", got, want, log)
			}
		}
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inForce("{}") // there is no file yet
	put(glow)
	inForce(glow)
	put(`{"wires":7}`)
	for end := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), "/wires: got number, want array"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a wrong file is not told:\n%s", log)
		}
	}
	inForce(glow)
	status := func() string {
		_, text := asked(t, "GET", "http://"+addr+"/api/run", "")
		return since.ReplaceAllString(text, "")
	}
	if got, want := status(), `{"running":false,"count":0,"dropped":0,"wires":[],"choreographies":[],"mistakes":["/wires: got number, want array"]}`; got != want {
		t.Errorf("with a wrong file the status is %s, want %s", got, want)
	}
	if status, text := asked(t, "PUT", url, `{"entities":[]}`); status != 204 {
		t.Errorf("%d %s", status, text)
	}
	if got := status(); strings.Contains(got, "mistakes") {
		t.Errorf("what was wrong is still told: %s", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != `{"entities":[]}` {
		t.Errorf("the file is %s, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".wiring-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if err := os.WriteFile(file, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Wiring: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a gateway starts with a wrong wiring: %v", err)
	}
	if _, err := New(Config{Wiring: filepath.Dir(file)}); err == nil {
		t.Error("a gateway starts with a folder as its wiring")
	}
	if _, err := New(Config{Wiring: filepath.Join(filepath.Dir(file), "none", "wiring.json")}); err == nil || !strings.Contains(err.Error(), "no folder to lie in") {
		t.Errorf("a gateway starts with a wiring that can never be: %v", err)
	}
}

// The log outlives the process with the conversations, and a reader that comes back misses nothing.
func TestSignalsSurviveARestart(t *testing.T) {
	data := t.TempDir()
	var place string
	t.Run("before", func(t *testing.T) {
		addr, _ := live(t, Config{Data: data})
		for _, id := range []string{"one", "two", "three"} {
			if status, text := asked(t, "POST", "http://"+addr+"/api/signal", `{"id":"`+id+`","type":"x"}`); status != 200 {
				t.Fatal(text)
			}
		}
		place = places(t, addr, "")[0]
	})
	addr, _ := live(t, Config{Data: data})
	if got := places(t, addr, place); len(got) != 2 {
		t.Errorf("behind the first there are %d", len(got))
	}
	if got := places(t, addr, "elsewhere-2"); len(got) != 3 || got[0] != place {
		t.Errorf("from the beginning there are %v", got)
	}
}

// places reads the stream behind a place, up to the signal three.
func places(t *testing.T, addr, after string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/__signals__/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Last-Event-Id"] = []string{after}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var all []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if place, is := strings.CutPrefix(lines.Text(), "id: "); is {
			all = append(all, place)
		}
		if strings.Contains(lines.Text(), `"id":"three"`) {
			return slices.Clip(all)
		}
	}
	t.Fatal("the stream ended")
	return nil
}
