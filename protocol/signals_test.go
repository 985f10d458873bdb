package protocol_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"vela/protocol"
	"vela/protocol/signal"
)

// Every signal that the vocabulary knows goes through the event and comes out as it was.
func TestSignalsSurviveTheEvent(t *testing.T) {
	payloads := append(signal.WellKnown(),
		signal.ToolCall{ToolName: "t", AgentID: "a", CallID: "c", Input: json.RawMessage(`{"a":"<b> & c"}`)},
		signal.TextDelta{AgentID: "a", Content: "a < b && c > d", Index: 2},
		signal.Other{Name: "x.custom", Body: json.RawMessage(`{"any":[1,{"thing":null}]}`)},
	)
	for _, p := range payloads {
		for _, metadata := range []map[string]any{nil, {"k": "<v>"}, {}} {
			in := signal.Envelope{ID: "1", Timestamp: 1738900000000, Source: "adapter:test", CorrelationID: "k", Metadata: metadata, Payload: p}
			event, err := protocol.SignalOf(in)
			if err != nil {
				t.Fatalf("%s: %v", p.SignalType(), err)
			}
			wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: event})
			if bytes.Contains(wire, []byte(`\u003c`)) || bytes.Contains(wire, []byte(`"seq"`)) {
				t.Errorf("%s", wire)
			}
			read, err := protocol.DecodeEnvelope(wire, protocol.Server)
			if err != nil {
				t.Fatalf("%s: %v", wire, err)
			}
			out, err := read.Message.(protocol.Signal).Envelope()
			if err != nil || !reflect.DeepEqual(out, in) {
				t.Errorf("got %+v and the error %v, want %+v", out, err, in)
			}
		}
	}
}

// The event's payload is what package signal writes of the same envelope.
func TestSignalIsTheEnvelope(t *testing.T) {
	in := signal.Envelope{ID: "1", Timestamp: 2, Source: "s", CorrelationID: "k", Metadata: map[string]any{"a": 1.5}, Payload: signal.Thinking{AgentID: "a", Content: "c"}}
	want, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	event, err := protocol.SignalOf(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := protocol.AppendEnvelope(nil, protocol.Envelope{Message: event}); string(got) != `{"type":"signal","payload":`+string(want)+`}` {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSignalOfRefusesWhatNoEventCanCarry(t *testing.T) {
	good := signal.Thinking{AgentID: "a"}
	for says, e := range map[string]signal.Envelope{
		"without a payload": {},
		"without a type":    {Payload: signal.Other{}},
		"before 1970":       {Timestamp: -1, Payload: good},
		"payload":           {Payload: signal.Other{Name: "x", Body: json.RawMessage(`{"a":`)}},
		"no JSON object":    {Payload: signal.Other{Name: "x", Body: json.RawMessage(`[1]`)}},
		"too deep":          {Payload: signal.Other{Name: "x", Body: json.RawMessage(strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300))}},
		"metadata":          {Metadata: map[string]any{"f": func() {}}, Payload: good},
	} {
		s, err := protocol.SignalOf(e)
		if err == nil || !strings.Contains(err.Error(), says) || !reflect.DeepEqual(s, protocol.Signal{}) {
			t.Errorf("%s: %+v, %v", says, s, err)
		}
	}
	for name, s := range map[string]protocol.Signal{
		"payload":  {SignalType: "thinking", Payload: json.RawMessage(`{"content":1}`)},
		"metadata": {SignalType: "x", Payload: json.RawMessage(`{}`), Metadata: json.RawMessage(`[]`)},
	} {
		if e, err := s.Envelope(); err == nil || !reflect.DeepEqual(e, signal.Envelope{}) {
			t.Errorf("a wrong %s: %+v, %v", name, e, err)
		}
	}
}
