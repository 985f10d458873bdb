package signal

import (
	"encoding/json"
	"reflect"
	"testing"
)

// Each well-known payload with all its fields, as the contract (ADR-001 and its nine-plus-five successor) writes them.
var written = map[string]string{
	"task_dispatch":      `{"taskId":"t","from":"a","to":"b","description":"d"}`,
	"tool_call":          `{"toolName":"read_file","agentId":"a","callId":"c","input":{"path":"x"}}`,
	"tool_result":        `{"toolName":"read_file","agentId":"a","callId":"c","success":true,"output":{"n":1}}`,
	"token_usage":        `{"agentId":"a","promptTokens":3,"completionTokens":4,"model":"m","cost":0.5}`,
	"agent_state_change": `{"agentId":"a","from":"idle","to":"thinking","reason":"r"}`,
	"error":              `{"agentId":"a","code":"c","message":"m","severity":"critical"}`,
	"completion":         `{"taskId":"t","agentId":"a","success":false,"result":"r"}`,
	"text_delta":         `{"agentId":"a","content":"c","contentType":"code","index":2}`,
	"thinking":           `{"agentId":"a","content":"c"}`,
	"user.click":         `{"target":"e","position":{"x":1,"y":2}}`,
	"user.move":          `{"entityId":"e","toSlot":"s","toZone":"z"}`,
	"user.zone":          `{"bounds":{"x":1,"y":2,"w":3,"h":4},"intent":"i"}`,
	"user.command":       `{"entityId":"e","action":"a","params":{"p":1}}`,
	"user.point":         `{"position":{"x":1,"y":2},"zone":"z"}`,
}

func TestEveryWellKnownPayloadSurvivesTheWire(t *testing.T) {
	if len(WellKnown()) != 14 {
		t.Fatalf("%d well-known types, want 14", len(WellKnown()))
	}
	for _, p := range WellKnown() {
		body, ok := written[p.SignalType()]
		if !ok {
			t.Errorf("%s: not in the contract", p.SignalType())
			continue
		}
		in := `{"id":"sig-1","type":"` + p.SignalType() + `","timestamp":1738900000000,"source":"adapter:test","correlationId":"task-42","metadata":{"k":"v"},"payload":` + body + `}`
		var e Envelope
		if err := json.Unmarshal([]byte(in), &e); err != nil {
			t.Errorf("%s: %v", p.SignalType(), err)
			continue
		}
		if reflect.TypeOf(e.Payload) != reflect.TypeOf(p) {
			t.Errorf("%s decodes to %T", p.SignalType(), e.Payload)
		}
		out, err := json.Marshal(e)
		if err != nil || string(out) != in {
			t.Errorf("%s: %v\n got %s\nwant %s", p.SignalType(), err, out, in)
		}
	}
}

func TestTheSetOfTypesIsOpen(t *testing.T) {
	in := `{"id":"1","type":"my_custom_event","timestamp":5,"source":"s","payload":{"anything":[1,2]}}`
	var e Envelope
	if err := json.Unmarshal([]byte(in), &e); err != nil {
		t.Fatal(err)
	}
	if other, ok := e.Payload.(Other); !ok || other.Name != "my_custom_event" {
		t.Fatalf("decoded to %#v", e.Payload)
	}
	if out, err := json.Marshal(e); err != nil || string(out) != in {
		t.Fatalf("%v, %s", err, out)
	}
}

func TestEnvelopeRefusesWhatItCannotCarry(t *testing.T) {
	for _, in := range []string{`{`, `{"payload":{}}`, `{"type":"completion","payload":{"success":"yes"}}`, `{"type":"thinking","payload":[]}`} {
		var e Envelope
		if err := json.Unmarshal([]byte(in), &e); err == nil {
			t.Errorf("%s was taken as %#v", in, e)
		}
	}
	if _, err := json.Marshal(Envelope{ID: "x"}); err == nil {
		t.Error("an envelope without a payload was written")
	}
}
