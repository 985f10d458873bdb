package script_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vela/gateway"
	"vela/gateway/script"
)

// live is a gateway that writes journals.
func live(t *testing.T, journals string, pace time.Duration) string {
	t.Helper()
	g, err := gateway.New(gateway.Config{Addr: "127.0.0.1:0", Pace: pace, Journal: journals})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	t.Cleanup(func() { stop(); <-ended })
	return <-ready
}

var limits = regexp.MustCompile(`(?m)^within .*$`)

// TestFromJournal plays scripts, makes scripts of the journals that the gateway wrote of them, and plays those.
func TestFromJournal(t *testing.T) {
	t.Parallel()
	const (
		fast = 60 * time.Millisecond
		slow = 700 * time.Millisecond // where the client acts during the answer, which must not be over by then
	)
	for name, pace := range map[string]time.Duration{
		"mocked-turn": fast, "in-flight-append": slow, "cancel-speaking": slow, "session-start-while-listening": fast,
		"invalid-json-during-a-turn": slow, "v2/typed-turn": fast, "v2/push-to-talk": fast, "v2/binary-audio": fast, "v2/resume": fast,
		"v2/resume-during-a-turn": slow, "v2/resume-from-the-future": fast, "v2/take-over": slow, "v2/interrupt-by-speech": slow,
		"v2/interrupt-by-text": slow, "v2/no-interrupt": slow, "v2/close-during-a-turn": slow, "v2/refs": fast, "v2/history": fast,
		"v2/start-again": fast,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join("..", "..", "e2e", "scripts", filepath.FromSlash(name)+script.Extension)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// How soon the gateway answers is held where the scripts are played from outside.
			runText(t, live(t, dir, pace), path, limits.ReplaceAllString(string(text), ""))
			other := live(t, "", pace)
			journals, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
			if len(journals) == 0 {
				t.Fatal("no journal")
			}
			for _, journal := range journals {
				made := fromJournal(t, journal)
				if strings.Count(made, "\n") < 5 {
					t.Errorf("not much of a script:\n%s", made)
				}
				runText(t, other, "made of "+name, made)
			}
		})
	}
}

func fromJournal(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := script.FromJournal(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func runText(t *testing.T, address, name, text string) {
	t.Helper()
	s, err := script.Parse(name, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if r := script.Run(t.Context(), s, script.Gateway{Address: address}); !r.Passed() {
		t.Errorf("%v\nin\n%s", r, text)
	}
}

// A script does not wait twice for what took its time: once for the event, and again for the pause in which it came.
func TestFromJournalWaitsOnce(t *testing.T) {
	const (
		head  = `{"journal":2,"id":"s","protocol":2,"turns":"deterministic","settings":null}` + "\n" + `{"at":1,"in":{"kind":"joined","peer":1}}` + "\n"
		state = `{"event":{"type":"session.state","payload":{"value":"idle"},"seq":1,"ts":1}}` + "\n"
	)
	audio := func(ms int) string {
		return fmt.Sprintf(`{"at":%d,"in":{"kind":"client","peer":1,"client":{"type":"input_audio.append","payload":{"chunk":"AAA="}}}}`, ms*1_000_000) + "\n"
	}
	tick := `{"at":401000000,"in":{"kind":"tick"}}` + "\n"
	for journal, want := range map[string]string{
		head + audio(1) + audio(431):                "wait 430ms\n",
		head + audio(1) + tick + state + audio(431): "wait 30ms\n",
		head + audio(1) + state + tick + audio(431): "wait 430ms\n",
	} {
		text, err := script.FromJournal(strings.NewReader(journal))
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, want %q in\n%s", err, want, text)
		}
	}
}

func TestFromJournalRefuses(t *testing.T) {
	const head = `{"journal":2,"id":"s","protocol":2,"turns":"agent","settings":null}` + "\n"
	for journal, says := range map[string]string{
		"":                    "no journal",
		"{}":                  "no journal",
		`{"journal":1}`:       "format 1",
		head + "{}\n":         "line 2 of the journal: neither an input nor an event",
		head + "{\n{}\n":      "line 2 of the journal",
		head + `{"event":{}}`: "line 2 of the journal",
		head + `{"in":{"kind":"joined","peer":1,"resume":true}}`: "began in another process",
		head + `{"in":{"kind":"client","peer":1,"client":{}}}`:   "line 2 of the journal",
	} {
		if _, err := script.FromJournal(strings.NewReader(journal)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", journal, err, says)
		}
	}
	for journal, has := range map[string]string{
		head + `{"in":{"kind":"joined","peer":1}}` + "\n" + `{"at":5,"in":{"ki`:                                          "connect as p1 turns=agent protocol=vela.v2\n",
		head + `{"in":{"kind":"joined","peer":1}}` + "\n" + `{"in":{"kind":"followed","source":"s","type":"tool_call"}}`: "# From here on the session shows",
		head + `{"in":{"kind":"joined","peer":1,"seat":1}}`:                                                              "# A room took part",
		head + `{"in":{"kind":"joined","peer":1}}` + "\n" + `{"in":{"kind":"end"}}`:                                      "# The session ended with its process",
		head + `{"in":{"kind":"joined","peer":1}}` + "\n" + `{"in":{"kind":"audio","peer":1,"pcm":"AAE="}}`:              "p1>binary 0001\n",
		head + `{"in":{"kind":"joined","peer":1}}` + "\n" + `{"at":60000000000,"in":{"kind":"tick"}}`:                    "within 2m0s\n",
	} {
		if text, err := script.FromJournal(strings.NewReader(journal)); err != nil || !strings.Contains(text, has) {
			t.Errorf("%s: %v, want %q in\n%s", journal, err, has, text)
		}
	}
}
