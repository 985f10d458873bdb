package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vela/gateway/auth"
	"vela/gateway/closedport"
	"vela/gateway/discovery"
	"vela/protocol"
	"vela/turn"
)

// ollama stands in for a server of models.
type ollama struct {
	*httptest.Server
	starting atomic.Bool            // and not there yet
	models   atomic.Pointer[string] // a JSON list
	asked    atomic.Pointer[string] // the model that was asked last
}

func newOllama(t *testing.T, models string) *ollama {
	o := &ollama{}
	o.models.Store(&models)
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.starting.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"object":"list","data":%s}`, *o.models.Load())
			return
		}
		body, _ := io.ReadAll(r.Body)
		var q struct{ Model string }
		_ = json.Unmarshal(body, &q)
		o.asked.Store(&q.Model)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I am %s.\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", q.Model)
	}))
	_ = o.Listener.Close()
	var err error
	if o.Listener, err = net.Listen("tcp", closedport.New(t)); err != nil { // where nobody listens once it is closed
		t.Fatal(err)
	}
	o.Start()
	t.Cleanup(o.Close)
	return o
}

// onMachine is a gateway on a machine where just that runs.
func onMachine(t *testing.T, where discovery.Config, cfg Config) *Gateway {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if where.OpenClaw == "" {
		where.OpenClaw = closedport.New(t)
	}
	for _, base := range []*string{&where.LMStudio, &where.Ollama} {
		if *base == "" {
			*base = "http://" + closedport.New(t)
		}
	}
	where.Dir, where.Within = t.TempDir(), time.Minute
	g.taps.where = where
	return g
}

// runs has a gateway run, and returns once it does.
func runs(t *testing.T, g *Gateway) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(net.Addr) { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-ready
	if _, err := g.sources.Sources.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// probed is what a gateway that does not run finds.
func probed(t *testing.T, g *Gateway) string {
	r, _ := g.Probe(t.Context())
	return shows(r)
}

// shows are the agents of a report: those that are not there with a minus.
func shows(r AgentsReport) string {
	var names []string
	for _, a := range r.Agents {
		if !a.Available {
			a.Name = "-" + a.Name
		}
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

// named is the agent of that name.
func namedAgent(t *testing.T, g *Gateway, name string) *made {
	t.Helper()
	i := slices.IndexFunc(g.agents.list, func(m *made) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("there is no agent %s", name)
	}
	return g.agents.list[i]
}

func isAway(err error, words string) bool {
	var coded interface{ Code() protocol.Code }
	return errors.As(err, &coded) && coded.Code() == protocol.CodeAgentUnavailable && strings.Contains(err.Error(), words)
}

func TestWhatRunsOnThisMachineIsOffered(t *testing.T) {
	o := newOllama(t, `[{"id":"small"},{"id":"large"}]`)
	g := onMachine(t, discovery.Config{Ollama: o.URL}, Config{})
	if got := probed(t, g); got != "echo ollama" {
		t.Errorf("before it runs it offers %q", got)
	}
	runs(t, g)
	r := g.agents.report(t.Context())
	if got := shows(r); got != "echo ollama" || r.Default != "echo" || g.agents.first().Name != "echo" {
		t.Errorf("it offers %q, and %s to who does not ask", got, r.Default)
	}
	var names []string
	for _, n := range g.agents.named() {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "echo lm-studio ollama openclaw" {
		t.Errorf("a session has %q", got)
	}
	if text, err := answer(namedAgent(t, g, "echo").engine, "hello"); text != "You said: hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if o.asked.Load() != nil {
		t.Error("it was asked, although nobody has chosen it")
	}
	mine := namedAgent(t, g, "ollama")
	if text, err := answer(mine.engine, "who are you?"); text != "I am small." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := g.sources.Sources.Choose(t.Context(), discovery.Ollama, "large"); err != nil {
		t.Fatal(err)
	}
	if text, err := answer(mine.engine, "who are you?"); text != "I am large." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	o.Close() // and nobody has looked since
	if _, err := answer(mine.engine, "who are you?"); !isAway(err, "Ollama does not run on this machine now. Start it, or choose another agent.") {
		t.Errorf("gone, it says %v", err)
	}
	if got := shows(g.agents.report(t.Context())); got != "echo -ollama" {
		t.Errorf("then it offers %q", got)
	}
}

// Who has chosen one that is not there yet gets it as soon as it is.
func TestAnOfferThatComesLater(t *testing.T) {
	empty := newOllama(t, `[]`)
	empty.starting.Store(true) // who answers no list is not there
	g := onMachine(t, discovery.Config{LMStudio: empty.URL}, Config{})
	runs(t, g)
	if got := shows(g.agents.report(t.Context())); got != "echo" {
		t.Errorf("it offers %q", got)
	}
	mine := namedAgent(t, g, "lm-studio")
	if _, err := answer(mine.engine, "who are you?"); !isAway(err, "LM Studio does not run") {
		t.Errorf("it says %v", err)
	}
	empty.starting.Store(false)
	if _, err := answer(mine.engine, "who are you?"); !isAway(err, "LM Studio has no model. Load one there") {
		t.Errorf("it says %v", err)
	}
	models := `[{"id":"one"}]`
	empty.models.Store(&models)
	if _, err := g.sources.Sources.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := answer(mine.engine, "who are you?"); text != "I am one." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestNothingIsOfferedBesideWhatTheOperatorNames(t *testing.T) {
	keys, err := auth.ParseKeys("main:0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parseFile([]byte("agents:\n  parrot: {kind: echo}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{"agents in the file": {Agents: file}, "keys": {Keys: keys}} {
		g := onMachine(t, discovery.Config{Ollama: newOllama(t, `[{"id":"m"}]`).URL}, cfg)
		if len(g.agents.list) != 1 {
			t.Errorf("with %s there are %d agents", name, len(g.agents.list))
		}
	}
}

// OpenClaw is connected to when somebody asks it, and not before; without a token it is not offered.
func TestOpenClawIsOfferedWithItsToken(t *testing.T) {
	for _, name := range []string{"OPENCLAW_GATEWAY_TOKEN", "OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("OPENCLAW_HOME", t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	g := onMachine(t, discovery.Config{OpenClaw: l.Addr().String()}, Config{})
	claw := namedAgent(t, g, "openclaw")
	if got := probed(t, g); got != "echo" {
		t.Errorf("without a token it offers %q", got)
	}
	if _, err := answer(claw.engine, "hello"); !isAway(err, "token is not known here. Set it") {
		t.Errorf("without a token it says %v", err)
	}
	t.Setenv("OPENCLAW_GATEWAY_TOKEN", "the-token")
	if got := probed(t, g); got != "echo openclaw" {
		t.Errorf("with a token it offers %q", got)
	}
	wanted := claw.engine.(*offeredClaw).wanted
	select {
	case <-wanted:
		t.Error("it connects, and nobody has asked")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Close()
	for range claw.engine.Run(ctx, turn.Request{SessionID: "s", TurnID: "t1", Text: "hello"}) {
		t.Error("a turn that was cancelled says something")
	}
}
