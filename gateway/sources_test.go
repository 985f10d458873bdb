package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nhooyr.io/websocket"

	"vela/protocol/signal"
)

// saying is a source that says what a test says, to one after the other.
func saying(t *testing.T) (address string, say chan<- string) {
	t.Helper()
	says := make(chan string)
	ctx, cancel := context.WithCancel(context.Background())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.CloseNow() }()
		gone := c.CloseRead(ctx)
		for {
			select {
			case text := <-says:
				// One that failed is missed by whoever follows. Its error says less: who has read all of it may close the
				// connection before the write has returned.
				_ = c.Write(gone, websocket.MessageText, []byte(text))
			case <-gone.Done():
				return
			}
		}
	}))
	t.Cleanup(func() { cancel(); s.Close() })
	return "ws" + strings.TrimPrefix(s.URL, "http"), says
}

// shownSource is what the page reads of a source.
type shownSource struct {
	ID, Name, Colour, Protocol, URL, State, Error string
	HasKey                                        bool
}

func sourcesOf(t *testing.T, text string) map[string]shownSource {
	t.Helper()
	var list struct{ Sources []shownSource }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	all := map[string]shownSource{}
	for _, s := range list.Sources {
		all[s.ID] = s
	}
	return all
}

// From an address that somebody adds to what its signals set off: with the id of the source in their metadata, whatever they
// say themselves, and only by the wires of that source.
func TestASourceFromItsAddressToTheStage(t *testing.T) {
	address, say := saying(t)
	addr, _ := live(t, Config{})
	base := "http://" + addr
	if status, text := asked(t, "POST", base+"/api/sources", `{"name":"Lab","url":"`+address+`","key":"secret"}`); status != 201 || !strings.Contains(text, `"id":"remote:1"`) || strings.Contains(text, "secret") {
		t.Fatalf("%d %s", status, text)
	}
	wiring := `{"choreographies":[{"id":"k","on":"x"}],"wires":[{"id":"w","fromZone":"signal","fromId":%q,"toZone":"signal-type","toId":"x"}]}`
	if status, text := asked(t, "PUT", base+"/api/wiring", fmt.Sprintf(wiring, "remote:1")); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	signals, stage, sources := events(t, base+"/__signals__/stream"), events(t, base+"/__commands__/stream"), events(t, base+"/api/sources/stream")
	if status, text := asked(t, "POST", base+"/api/run", `{"running":true}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := asked(t, "POST", base+"/api/sources/remote%3A1/connect", ""); status != 200 || !strings.Contains(text, `"state":"connect`) {
		t.Errorf("%d %s", status, text)
	}
	for sourcesOf(t, sources())["remote:1"].State != "connected" {
	}
	_, _ = asked(t, "POST", base+"/api/signal", `{"id":"not wired","type":"x","source":"ci","metadata":{"sourceId":"remote:1"}}`)
	say <- `{"id":"1","type":"x","source":"lamp","metadata":{"a":1,"sourceId":"local:ollama"}}`
	say <- `{"id":"2","type":"x","source":"local:openclaw"}`
	for _, want := range []string{
		`"source":"ci","metadata":{"sourceId":null}`, `"source":"lamp","metadata":{"a":1,"sourceId":"remote:1"}`, `"source":"remote:1","metadata":{"sourceId":"remote:1"}`,
	} {
		got := signals()
		var r signal.Raw
		if err := json.Unmarshal([]byte(got), &r); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: want %s in it", got, want)
		} else if err := signal.Check(r); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
	for _, want := range []string{`"started"`, `"signalId":"1"`, `"signalId":"2"`} {
		if got := stage(); !strings.Contains(got, want) {
			t.Errorf("%s: want %s in it", got, want)
		}
	}
	// A wire names a source by what its signals call it, too, but nobody can call himself another source.
	for called, sets := range map[string]string{"lamp": "3", "local:openclaw": "none"} {
		if status, text := asked(t, "PUT", base+"/api/wiring", fmt.Sprintf(wiring, called)); status != 204 {
			t.Fatalf("%d %s", status, text)
		}
		say <- `{"id":"3","type":"x","source":"` + called + `"}`
		_ = signals() // it went the whole way
		if sets == "3" {
			if got := stage(); !strings.Contains(got, `"signalId":"3"`) {
				t.Errorf("a wire from %q sets off %s", called, got)
			}
			continue
		}
		if status, text := asked(t, "GET", base+"/api/run", ""); status != 200 || !strings.Contains(text, `"running":true`) {
			t.Errorf("%d %s", status, text)
		}
	}
	if _, text := asked(t, "POST", base+"/api/run", `{"running":false}`); !strings.Contains(text, `"running":false`) {
		t.Error(text)
	}
	if got := stage(); !strings.Contains(got, `"stopped"`) {
		t.Errorf("what called itself another source set off %s", got)
	}
	if status, text := asked(t, "GET", base+"/metrics", ""); status != 200 || !strings.Contains(text, `vela_sources{state="connected"} 1`) || !strings.Contains(text, `vela_source_signals_total{protocol="websocket"} `) {
		t.Errorf("the metrics say nothing of it: %d", status)
	}
	if status, text := asked(t, "POST", base+"/api/sources/remote%3A1/disconnect", ""); status != 200 || !strings.Contains(text, `"state":"disconnected"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := asked(t, "DELETE", base+"/api/sources/remote%3A1", ""); status != 204 {
		t.Errorf("%d", status)
	}
}

// What was added is there again after a restart, and its key is written nowhere.
func TestSourcesSurviveARestart(t *testing.T) {
	data := t.TempDir()
	t.Run("before", func(t *testing.T) {
		addr, _ := live(t, Config{Data: data})
		for _, body := range []string{`{"name":"Lab","url":"ws://127.0.0.1:9/x","key":"secret-key"}`, `{"url":"http://127.0.0.1:9"}`} {
			if status, text := asked(t, "POST", "http://"+addr+"/api/sources", body); status != 201 {
				t.Errorf("%d %s", status, text)
			}
		}
		if status, _ := asked(t, "DELETE", "http://"+addr+"/api/sources/remote:2", ""); status != 204 {
			t.Errorf("%d", status)
		}
		if status, text := asked(t, "POST", "http://"+addr+"/api/sources/remote:1/connect", ""); status != 200 {
			t.Errorf("%d %s", status, text)
		}
	})
	t.Run("after", func(t *testing.T) {
		addr, log := live(t, Config{Data: data})
		_, text := asked(t, "GET", "http://"+addr+"/api/sources", "")
		all := sourcesOf(t, text)
		if s := all["remote:1"]; s.Name != "Lab" || s.URL != "ws://127.0.0.1:9/x" || s.HasKey || s.State != "error" || !strings.Contains(s.Error, "key was not kept") {
			t.Errorf("it is %+v", s)
		}
		if _, there := all["remote:2"]; there {
			t.Error("what was removed is there again")
		}
		if strings.Contains(log.String(), "secret-key") {
			t.Error("the key is in the log")
		}
	})
	err := filepath.WalkDir(data, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), "secret-key") {
			t.Errorf("the key is in %s", d.Name())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(data, sourcesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Data: data}); err == nil || !strings.Contains(err.Error(), "sources that were added") {
		t.Errorf("a file that is none: %v", err)
	}
}

// The wires of a source that is removed go with it, and nothing else does.
func TestARemovedSourceLeavesNoWires(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wiring.json")
	addr, _ := live(t, Config{Wiring: file})
	base := "http://" + addr
	for range 2 {
		if status, text := asked(t, "POST", base+"/api/sources", `{"url":"ws://127.0.0.1:9"}`); status != 201 {
			t.Fatalf("%d %s", status, text)
		}
	}
	wire := func(id, from string) string {
		return fmt.Sprintf(`{"id":%q,"fromZone":"signal","fromId":%q,"toZone":"signal-type","toId":"x"}`, id, from)
	}
	const rest = `{"choreographies":[{"id":"k","on":"x","when":{"a":{"gt":1}}}],"positions":{"here":{"x":1,"y":2}},"wires":[`
	before := rest + wire("a", "remote:1") + "," + wire("b", "remote:2") + "," + wire("c", "remote:1") + `]}`
	if status, text := asked(t, "PUT", base+"/api/wiring", before); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	for _, x := range [][2]string{{"remote:1", rest + wire("b", "remote:2") + `]}`}, {"remote:2", rest + `]}`}} {
		if status, text := asked(t, "DELETE", base+"/api/sources/"+x[0], ""); status != 204 {
			t.Errorf("%d %s", status, text)
		}
		_, text := asked(t, "GET", base+"/api/wiring", "")
		var got, want any
		if json.Unmarshal([]byte(text), &got) != nil || json.Unmarshal([]byte(x[1]), &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("without %s the wiring is %s, want %s", x[0], text, x[1])
		}
		if kept, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(kept)) != text {
			t.Errorf("the file has %s, %v", kept, err)
		}
	}
}

// What a caller does wrong is told in words, with a status that says whose fault it is.
func TestMistakesWithSources(t *testing.T) {
	addr, _ := live(t, Config{})
	for _, x := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/scan", "", 200, `"local:ollama"`}, // which is known from then on
		{"POST", "", `{"url":"file:///etc/passwd"}`, 400, "An address begins with"},
		{"POST", "", `{"url":"http://169.254.169.254/"}`, 400, "not for sources"},
		{"POST", "", `{"url":"http://user:pass@x"}`, 400, "set the key by itself"},
		{"DELETE", "/remote:9", "", 404, "There is no such source."},
		{"DELETE", "/local:ollama", "", 409, "cannot be removed"},
		{"POST", "/local:ollama/prompt", `{"text":"hi"}`, 409, "Connect it first"},
		{"PUT", "/local:ollama/model", `{"model":""}`, 400, "no such model"},
		{"PUT", "/local:ollama/key", `{"key":"a\nb"}`, 400, "one line"},
		{"POST", "/local:ollama/key/paste", "", 400, "Only the key of an OpenClaw"},
	} {
		if status, text := asked(t, x.method, "http://"+addr+"/api/sources"+x.path, x.body); status != x.status || !strings.Contains(text, x.says) {
			t.Errorf("%s %s %s: %d %s, want %d %s", x.method, x.path, x.body, status, text, x.status, x.says)
		}
	}
}

// Who asks for hooks by the route of their own is answered when they are there, or not.
func TestHooksAreAnsweredFor(t *testing.T) {
	project := t.TempDir()
	addr, _ := live(t, Config{Project: project})
	settings := filepath.Join(project, ".claude", "settings.local.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		text, err := os.ReadFile(settings)
		return err == nil && strings.Contains(string(text), "/api/tap/hook")
	}
	for _, x := range []struct {
		do    string
		there bool
	}{{"connect", true}, {"connect", true}, {"disconnect", false}, {"disconnect", false}} {
		if status, text := asked(t, "POST", "http://"+addr+"/api/tap/"+x.do, ""); status != 200 || text != `{"ok":true}` || there() != x.there {
			t.Errorf("%s: %d %s, hooks %v", x.do, status, text, there())
		}
	}
	if err := os.WriteFile(settings, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := asked(t, "POST", "http://"+addr+"/api/tap/connect", ""); status != 500 || !strings.HasPrefix(text, `{"error":"Claude Code's settings`) || !strings.HasSuffix(text, `,"ok":false}`) {
		t.Errorf("%d %s", status, text)
	}
}
