package room

import (
	"fmt"
	"testing"
	"testing/synctest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// A stay in a room is a span, and the turns in it link to it; a room without a tracer has none.
func TestTheSpanOfARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewInMemoryExporter()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
		h := open(t, Config{Tracer: func() trace.Tracer { return tracer }})
		h.tracer = tracer
		s := h.join("kitchen")
		s.happens(came{identity: "bob"})
		s.happens(left{"bob"})
		s.happens(typed{"ann", "hello"})
		synctest.Wait()
		s.room.over(errEnded)
		synctest.Wait()
		var stay, turn tracetest.SpanStub
		for _, span := range spans.GetSpans() {
			switch span.Name {
			case "vela.room":
				stay = span
			case "vela.turn":
				turn = span
			}
		}
		var said string
		for _, a := range stay.Attributes {
			said += fmt.Sprintf("%s=%s ", a.Key, a.Value.String())
		}
		if said != "vela.room.name=kitchen session.id=00000001-session vela.room.end=ended vela.room.people=2 " || stay.Parent.IsValid() {
			t.Errorf("the stay says %s", said)
		}
		if len(turn.Links) != 1 || turn.Links[0].SpanContext.SpanID() != stay.SpanContext.SpanID() || turn.Parent.IsValid() {
			t.Errorf("the turn links to %+v", turn.Links)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{Tracer: func() trace.Tracer { return nil }})
		s := h.join("kitchen")
		s.happens(typed{"ann", "hello"})
		if got := s.says(); got != "hello|hello 0" {
			t.Errorf("said: %s", got)
		}
	})
}
