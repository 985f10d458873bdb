package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Traces leave by OTLP over HTTP where OpenTelemetry's own variables name an endpoint. They are read here, and by the
// SDK, not in main: they mean the same in every program, and whoever embeds a gateway expects them to.

// endpoints are the variables that name one; the first that is set counts.
var endpoints = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// flushTime is how long a gateway that stops waits for its collector. Only tests set it.
var flushTime = 900 * time.Millisecond

// flushSlack is how long what is cut off then takes to end.
const flushSlack = 100 * time.Millisecond

// traces is what sends spans. Nil sends none.
type traces struct {
	provider *sdktrace.TracerProvider
	cut      context.CancelFunc // ends a request to the collector
}

// openTraces begins to send spans, if there is somebody to send them to. What is wrong with the variables is logged:
// nobody's conversation depends on it.
func (g *Gateway) openTraces(ctx context.Context) {
	log := g.cfg.Log.With("component", "traces")
	endpoint, err := tracesEndpoint(os.Getenv)
	if err == nil && endpoint == nil {
		return
	}
	if err == nil {
		g.traces, err = newTraces(ctx, log)
	}
	if err != nil {
		log.Error("no traces", "error", err)
		return
	}
	g.tracer = g.traces.provider.Tracer("vela")
	log.Info("traces are sent", "host", endpoint.Host)
}

// closeTraces sends what is left, for at most a second. It is called when no session runs.
func (g *Gateway) closeTraces() {
	if g.traces == nil {
		return
	}
	late := time.AfterFunc(flushTime, g.traces.cut)
	defer late.Stop()
	defer g.traces.cut()
	ctx, cancel := context.WithTimeout(context.Background(), flushTime+flushSlack)
	defer cancel()
	_ = g.traces.provider.Shutdown(ctx) // collector has logged what went wrong
}

// tracesEndpoint is nil where no traces are wanted.
func tracesEndpoint(env func(string) string) (*url.URL, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	for _, name := range endpoints {
		value := env(name)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("gateway: %s is no address of a collector: write it like http://127.0.0.1:4318", name)
		}
		return u, protocolKnown(env)
	}
	return nil, nil
}

// protocolKnown refuses what would be sent in vain: most variables that name gRPC name its port, too.
func protocolKnown(env func(string) string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch env(name) {
		case "":
			continue
		case "grpc":
			return fmt.Errorf("gateway: %s is grpc, and traces go by HTTP only: set it to http/protobuf, and the endpoint to the port for that", name)
		}
		return nil
	}
	return nil
}

func newTraces(ctx context.Context, log *slog.Logger) (*traces, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("gateway: traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(identity()...), resource.WithFromEnv())
	if err != nil {
		log.Warn("what OTEL_RESOURCE_ATTRIBUTES says is not whole", "error", err)
	}
	life, cut := context.WithCancel(context.Background())
	// The batches have the bounds of the SDK's defaults, 2,048 spans that wait and 512 in a request, or of OTEL_BSP_*.
	// A span for which there is no room is dropped: a session never waits.
	batches := sdktrace.NewBatchSpanProcessor(&collector{SpanExporter: exporter, life: life, log: log})
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(batches), sdktrace.WithResource(about))
	return &traces{provider: provider, cut: cut}, nil
}

// identity says who sends; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before it.
func identity() []attribute.KeyValue {
	id := []attribute.KeyValue{attribute.String("service.name", "vela")}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		id = append(id, attribute.String("service.version", build.Main.Version))
	}
	return id
}

// collector sends batches, one at a time, and says once when they do not arrive, and once when they do again.
type collector struct {
	sdktrace.SpanExporter
	life context.Context // done when nobody waits any more
	log  *slog.Logger
	away bool // owned by the goroutine of the batches
}

// ExportSpans implements [sdktrace.SpanExporter]. It returns no error: the SDK would print it, each time.
func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !c.away:
		c.log.Warn("traces do not reach the collector, and are dropped until they do", "error", err)
	case err == nil && c.away:
		c.log.Info("traces reach the collector again")
	}
	c.away = err != nil
	return nil
}
