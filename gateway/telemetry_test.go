package gateway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"vela/gateway/client"
	"vela/gateway/closedport"
	"vela/protocol"
)

// TestMain runs without the variables of whoever runs it.
func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "OPENCLAW_") {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Setenv("OPENCLAW_CONFIG_PATH", os.DevNull) // no gateway of a test listens to somebody's agent
	os.Exit(m.Run())
}

// fakeCollector takes OTLP over HTTP.
type fakeCollector struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*collectorpb.ExportTraceServiceRequest
	paths    []string
	key      string
}

func collects(t *testing.T) *fakeCollector {
	c := &fakeCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s of %s: %v", r.Method, r.Header.Get("Content-Type"), err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests = append(c.requests, &request)
		c.paths = append(c.paths, r.URL.Path)
		c.key = r.Header.Get("Api-Key")
	}))
	t.Cleanup(c.Close)
	return c
}

// serve runs a gateway, holds a turn with it, and stops it. It returns the log.
func serve(t *testing.T) string {
	t.Helper()
	var out lockedBuffer
	g, err := New(Config{Addr: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	addr := <-ready
	conn, err := client.Dial(t.Context(), addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hold(t, conn)
	_ = conn.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return out.String()
}

// hold holds the fixed turn.
func hold(t *testing.T, conn *client.Client) {
	t.Helper()
	if err := conn.Send(t.Context(), protocol.MockedTurnTrigger{}); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := conn.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, over := m.(protocol.ResponseCompleted); over {
			return
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTracesReachTheCollector(t *testing.T) {
	defer func(was time.Duration) { flushTime = was }(flushTime)
	flushTime = time.Minute // the collector is not cut off, however slow the machine
	for name, path := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        "/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "/mine",
	} {
		t.Run(name, func(t *testing.T) {
			c := collects(t)
			t.Setenv(name, c.URL+strings.Replace(path, "/v1/traces", "", 1))
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=open-sesame")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
			log := serve(t)
			if len(c.requests) != 1 || c.paths[0] != path || c.key != "open-sesame" {
				t.Fatalf("%d requests to %v with key %q\n%s", len(c.requests), c.paths, c.key, log)
			}
			of := c.requests[0].GetResourceSpans()[0]
			about := attributes(of.GetResource().GetAttributes())
			if about["service.name"] != "vela" || about["service.version"] == "" || about["deployment.environment.name"] != "test" {
				t.Errorf("sent by %v", about)
			}
			spans := map[string]*tracepb.Span{}
			for _, s := range of.GetScopeSpans()[0].GetSpans() {
				spans[s.GetName()] = s
			}
			turn, engine := spans["vela.turn"], spans["engine"]
			if len(spans) != 2 || !bytes.Equal(engine.GetParentSpanId(), turn.GetSpanId()) || turn.GetKind() != tracepb.Span_SPAN_KIND_SERVER {
				t.Errorf("spans: %v", spans)
			}
			if got := attributes(turn.GetAttributes()); got["vela.turn.outcome"] != "completed" || got["vela.turn.kind"] != "deterministic" {
				t.Errorf("the turn has %v", got)
			}
			if strings.Contains(log, "open-sesame") {
				t.Errorf("the key is in the log:\n%s", log)
			}
		})
	}
}

func attributes(all []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range all {
		m[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return m
}

// A collector that takes a request and never answers costs a second at the end, and no goroutine stays behind.
func TestACollectorThatHangs(t *testing.T) {
	hang := make(chan struct{})
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer c.Close()
	defer close(hang)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	log := serve(t) // that it comes back at all is the point: the collector never answers
	if n := strings.Count(log, "do not reach the collector"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log)
	}
	// The exporter's own goroutine sees the end of its context a moment after whoever ended it.
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ; strings.Contains(stacks(), "batchSpanProcessor"); runtime.Gosched() {
		if soon.Err() != nil {
			t.Fatalf("left behind:\n%s", stacks())
		}
	}
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// A collector that is away costs one line of the log, however many batches do not arrive.
func TestACollectorThatIsAway(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+closedport.New(t))
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1") // a request a span
	log := serve(t)
	if n := strings.Count(log, "do not reach the collector"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log)
	}
}

// outage fails as long as it is told to.
type outage struct {
	sdktrace.SpanExporter
	err error
}

func (o *outage) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return o.err }

func TestAnOutageIsToldOnceAndSoIsItsEnd(t *testing.T) {
	var out bytes.Buffer
	o := &outage{}
	c := &collector{SpanExporter: o, life: t.Context(), log: slog.New(slog.NewTextHandler(&out, nil))}
	for _, err := range []error{nil, io.EOF, io.EOF, nil, nil, io.EOF} {
		o.err = err
		if err := c.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err) // the SDK would print it
		}
	}
	if log := out.String(); strings.Count(log, "\n") != 3 || strings.Count(log, "again") != 1 {
		t.Errorf("logged\n%s", log)
	}
}

func TestNoTraces(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		says string
	}{
		"unset":         {nil, ""},
		"disabled":      {map[string]string{endpoints[1]: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, ""},
		"no exporter":   {map[string]string{endpoints[1]: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, ""},
		"no address":    {map[string]string{endpoints[1]: "user:pass@collector"}, "write it like http://"},
		"by gRPC":       {map[string]string{endpoints[1]: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "HTTP only"},
		"traces before": {map[string]string{endpoints[0]: "nonsense", endpoints[1]: "http://127.0.0.1:1"}, endpoints[0]},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			log := serve(t)
			if test.says == "" && strings.Contains(log, "traces") || !strings.Contains(log, test.says) || strings.Contains(log, "pass@") {
				t.Errorf("want %q in\n%s", test.says, log)
			}
		})
	}
}

// The session traces by OpenTelemetry's API. What becomes of spans is for the gateway to say.
func TestSessionKnowsNoSDK(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "vela/session", "vela/turn/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		if strings.HasPrefix(name, "go.opentelemetry.io/") && (strings.Contains(name, "/sdk") || strings.Contains(name, "/exporters")) {
			t.Errorf("session or turn imports %s", name)
		}
	}
}
