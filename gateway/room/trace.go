package room

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// One span for each stay of the agent's in a room, from when it has joined until it leaves. The turns that happen meanwhile
// are traces of their own, which link to it. Nobody's name and nothing that was said is in it.
const (
	spanRoom = "vela.room"

	attrRoom    = attribute.Key("vela.room.name")
	attrEnd     = attribute.Key("vela.room.end")    // why it left, as in the metrics
	attrMost    = attribute.Key("vela.room.people") // who were there at once, at most
	attrSession = attribute.Key("session.id")
)

// startSpan begins the span of a stay; one that goes nowhere where there is no tracer.
func (r *Room) startSpan(ctx context.Context) trace.Span {
	var tracer trace.Tracer
	if r.cfg.Tracer != nil {
		tracer = r.cfg.Tracer()
	}
	if tracer == nil {
		tracer = noop.NewTracerProvider().Tracer("")
	}
	_, span := tracer.Start(ctx, spanRoom, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attrRoom.String(r.name), attrSession.String(r.session.ID()),
	))
	return span
}

// endSpan ends it.
func endSpan(span trace.Span, why error, most int) {
	span.SetAttributes(attrEnd.String(label(why)), attrMost.Int(most))
	span.End()
}

// SpanContext implements [session.Traced].
func (p *peer) SpanContext() trace.SpanContext { return p.span.SpanContext() }
