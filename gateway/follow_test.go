package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"vela/gateway/client"
	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
)

// talk connects to a gateway, and begins a session of version 2.
func talk(t *testing.T, addr string, ask protocol.SessionStart) (*client.Client, protocol.SessionReady) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c, err := client.Dial(ctx, addr, client.Options{Subprotocols: []string{client.Version2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ready, err := c.Start(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	return c, ready
}

// until receives up to the first message of a type, and returns it.
func until[M protocol.Message](t *testing.T, c *client.Client) M {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		m, err := c.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if e, is := m.(protocol.Error); is {
			t.Fatalf("%+v", e)
		}
		if m, is := m.(M); is {
			return m
		}
	}
}

// tell sends, and waits until it has been done.
func tell(t *testing.T, c *client.Client, m protocol.Message) {
	t.Helper()
	for _, m := range []protocol.Message{m, protocol.HistoryGet{}} {
		if err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	until[protocol.History](t, c)
}

func post(t *testing.T, addr, body string) {
	t.Helper()
	if status, text := asked(t, http.MethodPost, "http://"+addr+"/api/signal", body); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
}

// From a click in one connection to all who follow: another connection, the log, the pipeline, and what comes out of it, each
// as a valid signal, and once.
func TestTheWayOfAClick(t *testing.T) {
	addr, _ := live(t, Config{})
	base := "http://" + addr
	const wiring = `{"choreographies":[{"id":"greet","on":"user.click"},{"id":"loop","on":"command.dispatch"}]}`
	if status, text := asked(t, http.MethodPut, base+"/api/wiring", wiring); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
	stage, ready := talk(t, addr, protocol.SessionStart{})
	host, _ := talk(t, addr, protocol.SessionStart{})
	tell(t, host, protocol.SignalSubscribe{Types: []string{"user.*", "command.*"}})
	logged := events(t, base+"/__signals__/stream")
	if status, text := asked(t, http.MethodPost, base+"/api/run", `{"running":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	tell(t, stage, protocol.SignalEmit{SignalType: "user.click", Payload: json.RawMessage(`{"target":"lamp"}`), CorrelationID: "k"})

	var came []string
	for range 3 {
		s := until[protocol.Signal](t, host)
		e, err := s.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Raw()
		if err != nil {
			t.Fatal(err)
		}
		if err := signal.Check(r); err != nil {
			t.Errorf("%v: %+v", err, s)
		}
		came = append(came, fmt.Sprintf("%s from %s of %s: %s", s.SignalType, s.Source, s.CorrelationID, strings.ReplaceAll(string(s.Payload), clickID(t, s), "ID")))
	}
	source := "session:" + ready.SessionID
	want := []string{
		"command.started from pipeline of : {}",
		`user.click from ` + source + ` of k: {"target":"lamp"}`,
		`command.dispatch from pipeline of k: {"performance":1,"choreography":"greet","type":"user.click","signalId":"ID","signalType":"user.click","correlationId":"k","payload":{"target":"lamp"}}`,
	}
	if strings.Join(came, "\n") != strings.Join(want, "\n") {
		t.Errorf("came:\n%s\nwant:\n%s", strings.Join(came, "\n"), strings.Join(want, "\n"))
	}
	// What came out did not go in again, and the log has what went in alone.
	if status, text := asked(t, http.MethodGet, base+"/api/run", ""); status != 200 || !strings.Contains(text, `"count":1`) {
		t.Errorf("%d %s", status, text)
	}
	post(t, addr, `{"type":"marker","payload":{}}`)
	for _, typ := range []string{"user.click", "marker"} {
		if text := logged(); !strings.Contains(text, `"type":"`+typ+`"`) {
			t.Errorf("in the log: %s, want %s", text, typ)
		}
	}
}

// clickID is the id that a command names, which is made up each time.
func clickID(t *testing.T, s protocol.Signal) string {
	t.Helper()
	var named struct{ SignalID string }
	if err := json.Unmarshal(s.Payload, &named); err != nil {
		t.Fatal(err)
	}
	if named.SignalID == "" {
		return "no id"
	}
	return named.SignalID
}

// A session shows what the agents of the sources do that it follows, and no other; its own turns it does not follow.
func TestASessionShowsWhatOthersDo(t *testing.T) {
	addr, _ := live(t, Config{})
	c, ready := talk(t, addr, protocol.SessionStart{Follow: &[]string{"adapter:tap"}})
	tell(t, c, protocol.SessionStart{Follow: &[]string{"adapter:tap", "session:" + ready.SessionID}})
	call := func(source, id string) string {
		return fmt.Sprintf(`{"type":"tool_call","source":%q,"payload":{"toolName":"Read","agentId":"a","callId":%q,"input":{"file_path":%q}}}`, source, id, id)
	}
	post(t, addr, call("session:"+ready.SessionID, "own"))
	post(t, addr, call("somebody", "else"))
	post(t, addr, call("adapter:tap", "theirs"))
	if s := until[ganglia.Status](t, c); s.Source != "adapter:tap" || s.Detail != "theirs" || s.Action != ganglia.ReadingFile {
		t.Errorf("%+v", s)
	}
	post(t, addr, `{"type":"tool_result","source":"adapter:tap","payload":{"toolName":"Read","agentId":"a","callId":"theirs","success":false,"output":{"error":"gone"}}}`)
	if a := until[ganglia.Artifact](t, c); a.Source != "adapter:tap" || a.Message != "gone" {
		t.Errorf("%+v", a)
	}
}

func TestWhatCannotBeEmitted(t *testing.T) {
	s := &signals{}
	for name, m := range map[string]protocol.SignalEmit{
		"another type":         {SignalType: "deploy", Payload: json.RawMessage(`{}`)},
		"an agent's":           {SignalType: "tool_call", Payload: json.RawMessage(`{"toolName":"x","agentId":"y"}`)},
		"no type":              {Payload: json.RawMessage(`{}`)},
		"half a type":          {SignalType: "user.", Payload: json.RawMessage(`{}`)},
		"a long type":          {SignalType: "user." + strings.Repeat("x", 124), Payload: json.RawMessage(`{}`)},
		"a wrong payload":      {SignalType: "user.move", Payload: json.RawMessage(`{"entityId":7,"toSlot":"a"}`)},
		"too much":             {SignalType: "user.x", Payload: json.RawMessage(`{"x":"` + strings.Repeat("x", signal.MaxSize) + `"}`)},
		"too deep":             {SignalType: "user.x", Payload: json.RawMessage(strings.Repeat(`{"a":`, 130) + "1" + strings.Repeat("}", 130))},
		"a long correlationId": {SignalType: "user.x", Payload: json.RawMessage(`{}`), CorrelationID: strings.Repeat("x", 257)},
	} {
		err := s.Emit("id", m) // which would panic if it went on
		var coded interface{ Code() protocol.Code }
		if !errors.As(err, &coded) || coded.Code() != protocol.CodeInvalidMessage || strings.HasPrefix(err.Error(), "signal") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The host is told of what a person does, whichever way it came, signed, and of nothing else.
func TestTheWebhookIsTold(t *testing.T) {
	const key = "a key of thirty-two bytes, no less"
	got := make(chan string, 10)
	var once sync.Once
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(key))
		_, _ = fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("webhook-signature") != want {
			t.Errorf("signed %s, want %s: %v", r.Header.Get("webhook-signature"), want, err)
		}
		failed := false
		once.Do(func() { failed = true; w.WriteHeader(http.StatusInternalServerError) })
		if !failed {
			got <- string(body)
		}
	}))
	defer host.Close()
	addr, log := live(t, Config{Webhook: Webhook{URL: host.URL + "/a-secret-path", Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(key))}})
	c, ready := talk(t, addr, protocol.SessionStart{})
	tell(t, c, protocol.SignalEmit{SignalType: "user.point", Payload: json.RawMessage(`{"position":{"x":1,"y":2}}`)})
	post(t, addr, `{"type":"tool_call","payload":{"toolName":"x","agentId":"y"}}`)
	post(t, addr, `{"type":"user.zone","payload":{"bounds":{"x":1,"y":2,"w":3,"h":4}}}`)
	for _, want := range []string{`"type":"user.point"`, `"type":"user.zone"`} {
		select {
		case text := <-got:
			if !strings.Contains(text, want) || strings.Contains(text, "user.point") != strings.Contains(text, "session:"+ready.SessionID) {
				t.Errorf("told of %s, want %s", text, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("not told: ", log.String())
		}
	}
	if _, text := asked(t, http.MethodGet, "http://"+addr+"/metrics", ""); !strings.Contains(text, "vela_webhook_retries_total 1") {
		t.Errorf("not counted:\n%s", text)
	}
	if strings.Contains(log.String(), "a-secret-path") || !strings.Contains(log.String(), "cannot be told") {
		t.Errorf("the log: %s", log.String())
	}
}

func TestAWebhookThatCannotBe(t *testing.T) {
	for _, w := range []Webhook{{URL: "hook"}, {URL: "https://host/x"}, {URL: "https://host/x", Secret: "hidden"}} {
		if _, err := New(Config{Webhook: w}); err == nil || !strings.Contains(err.Error(), "webhook") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// A source that somebody added is followed by its id, and cannot pass for a session or the pipeline.
func TestASessionFollowsASource(t *testing.T) {
	address, say := saying(t)
	addr, _ := live(t, Config{})
	base := "http://" + addr
	if status, text := asked(t, "POST", base+"/api/sources", `{"name":"Lab","url":"`+address+`"}`); status != 201 || !strings.Contains(text, `"id":"remote:1"`) {
		t.Fatalf("%d %s", status, text)
	}
	c, ready := talk(t, addr, protocol.SessionStart{})
	tell(t, c, protocol.SessionStart{Follow: &[]string{"remote:1", "session:other", "pipeline"}})
	tell(t, c, protocol.SignalSubscribe{Types: []string{"tool_call"}, Sources: []string{"session:*", "pipeline"}})
	tell(t, c, protocol.SignalSubscribe{Types: []string{"tool_result"}, Sources: []string{"remote:1"}})
	sources := events(t, base+"/api/sources/stream")
	if status, text := asked(t, "POST", base+"/api/sources/remote%3A1/connect", ""); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for sourcesOf(t, sources())["remote:1"].State != "connected" {
	}
	for i, source := range []string{"session:" + ready.SessionID, "session:other", "pipeline", "lamp"} {
		say <- fmt.Sprintf(`{"type":"tool_call","source":%q,"payload":{"toolName":%q,"agentId":"a","callId":"c%d","input":{"command":%q}}}`, source, []string{"Bash", "Read"}[i%2], i, source)
	}
	for range 4 {
		if s := until[ganglia.Status](t, c); s.Source != "remote:1" {
			t.Errorf("%+v", s)
		}
	}
	say <- `{"type":"tool_result","source":"lamp","payload":{"toolName":"Read","agentId":"a","callId":"c3","success":true}}`
	if s := until[protocol.Signal](t, c); s.SignalType != "tool_result" || !strings.Contains(string(s.Metadata), `"sourceId":"remote:1"`) {
		t.Errorf("%+v", s)
	}
}
