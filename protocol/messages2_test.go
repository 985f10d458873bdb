package protocol_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/protocol"
	"vela/protocol/ganglia"
)

// messages2 has one example of every event as version 2 writes it, in the order of the table. Their bytes are in
// testdata/messages/v2. Together they tell of one turn, so that the documents read as one.
var messages2 = []protocol.Envelope{
	{ID: "m1", Message: protocol.SessionStart{
		Turns:         "agent",
		Agent:         "pilot",
		Voice:         "deep",
		Audio:         &protocol.AudioFormats{Input: &pcm16k},
		TurnDetection: "vad",
		VAD:           &protocol.VAD{Threshold: 0.6, SilenceMs: 800},
		Interrupt:     new(true),
		Approvals:     new(false),
		Room:          "",
		Follow:        &[]string{"local:claude-code"},
		Language:      "en-US",
		Metadata:      map[string]string{"page": "bridge"},
	}},
	{Message: protocol.MockedTurnTrigger{}},
	{Message: protocol.InputAudioAppend{Chunk: "AAABAAIAAwAEAAUABgAHAA=="}},
	{ID: "m2", Message: protocol.InputAudioCommit{}},
	{ID: "m3", Message: protocol.ResponseCancel{ResponseID: "r1", PlayedMs: 640}},

	{Message: protocol.SessionReady{SessionID: "6f1b2d0e-5c0a-4a7e-9d57-3f6f0c1f2a44", Terms: &protocol.Terms{
		Protocol:       2,
		ResumeToken:    "q1Y9hRk2ZsT0uVwXyA4bCd",
		ResumeWindowMs: 120_000,
		Turns:          "agent",
		Agent:          "pilot",
		Voice:          "deep",
		Audio:          protocol.AudioFormats{Input: &pcm16k},
		TurnDetection:  "vad",
		VAD:            &protocol.VAD{Threshold: 0.6, SpeechMs: 200, SilenceMs: 800},
		Interrupt:      true,
		Follow:         []string{"local:claude-code"},
		Features:       []string{"text", "audio_in", "resume", "history", "vad", "signals", "emit"},
	}}},
	{Seq: 2, TS: 1767225600000, Message: protocol.SessionState{Value: protocol.Listening}},
	{Seq: 3, TS: 1767225600480, Message: protocol.TranscriptPartial{Text: "how far", ItemID: "i1"}},
	{Seq: 4, TS: 1767225601200, Message: protocol.TranscriptFinal{Text: "how far is the harbour", ItemID: "i1"}},
	{Seq: 7, TS: 1767225601720, Message: protocol.ResponseTextDelta{Text: "Three miles, ", ResponseID: "r1"}},
	{Seq: 16, TS: 1767225603010, Message: protocol.ResponseCompleted{
		ResponseID: "r1",
		Usage:      &protocol.Usage{PromptTokens: 212, CompletionTokens: 9},
		HeardText:  "Three miles, to the north.",
	}},
	{Message: protocol.Error{Code: protocol.CodeUnsupported, Message: "This gateway cannot give that audio.input.encoding. What it has: pcm16 or opus. Nothing changed.", Ref: "m1"}},

	{Message: protocol.SessionResume{Token: "q1Y9hRk2ZsT0uVwXyA4bCd", After: 7}},
	{Message: protocol.InputAudioClear{}},
	{ID: "m4", Message: protocol.InputTextSubmit{Text: "How far is the harbour?"}},
	{Message: protocol.PlaybackAck{ResponseID: "r1", PlayedMs: 640}},
	{Message: protocol.ApprovalAnswer{ApprovalID: "p1", Allow: true, Remember: true}},
	{Message: protocol.SignalEmit{SignalType: "user.click", Payload: json.RawMessage(`{"target":"harbour","position":{"x":12,"y":40}}`), CorrelationID: "k1"}},
	{Message: protocol.SignalSubscribe{Types: []string{"tool_call"}, Sources: []string{"pilot"}}},
	{Message: protocol.SignalUnsubscribe{Types: []string{"tool_call"}, Sources: []string{"pilot"}}},
	{Message: protocol.HistoryGet{}},
	{Message: protocol.HistoryClear{}},
	{Message: protocol.SessionClose{}},

	{Seq: 6, TS: 1767225601215, Message: protocol.ResponseCreated{ResponseID: "r1", TurnID: "t1"}},
	{Seq: 13, TS: 1767225602100, Message: protocol.ResponseAudioDelta{ResponseID: "r1", Chunk: "AAABAAIAAwA=", StartMs: 0, Text: "Three miles, "}},
	{Seq: 17, TS: 1767225603030, Message: protocol.ResponseCancelled{
		ResponseID: "r1", Reason: protocol.CancelBargeIn, HeardText: "Three miles, ", PlayedMs: 640,
	}},
	{Seq: 8, TS: 1767225601730, Message: protocol.ThinkingDelta{Text: "The chart says so."}},
	{Seq: 9, TS: 1767225601740, Message: protocol.ToolCall{CallID: "c1", Name: "read_file", Input: json.RawMessage(`{"path":"charts/harbour.md"}`)}},
	{Seq: 11, TS: 1767225601990, Message: protocol.ToolResult{
		CallID: "c1", Name: "read_file", Success: true, Output: json.RawMessage(`{"content":"# The harbour\n\nThree miles to the north.\n","path":"charts/harbour.md"}`),
	}},
	{Seq: 14, TS: 1767225602200, Message: protocol.ApprovalRequest{
		ApprovalID: "p1", CallID: "c2", Name: "set_course", Summary: "Set the course to the north.", Risk: "high", ExpiresMs: 30_000,
	}},
	{Seq: 10, TS: 1767225601741, Message: ganglia.Status{Action: ganglia.ReadingFile, Detail: "charts/harbour.md", StartedAt: 1767225601740}},
	{Seq: 12, TS: 1767225601991, Message: ganglia.Artifact{
		ArtifactType: ganglia.Markdown, Title: "harbour.md", Path: "charts/harbour.md", Content: "# The harbour\n\nThree miles to the north.\n",
	}},
	{Message: protocol.Signal{
		ID: "0d4c8b62-6a0e-4f0e-8a57-1b1f5f6f2f11", SignalType: "tool_call", Timestamp: 1767225601740, Source: "engine:pilot", CorrelationID: "t1",
		Metadata: json.RawMessage(`{"model":"pilot-1"}`),
		Payload:  json.RawMessage(`{"toolName":"read_file","agentId":"pilot","callId":"c1","input":{"path":"charts/harbour.md"}}`),
	}},
	{Message: protocol.SignalMissed{Count: 12}},
	{Message: protocol.History{Items: []protocol.HistoryItem{
		{Role: "user", Text: "how far is the harbour", At: 1767225601200},
		{Role: "assistant", Text: "Three miles, to the north.", HeardText: new("Three miles, "), At: 1767225601215},
	}}},
	{Seq: 18, TS: 1767225603031, Message: protocol.TurnMetrics{
		TurnID: "t1", SttMs: new(int64(210)), FirstTokenMs: new(int64(505)), FirstAudioMs: new(int64(890)),
		GatewayMs: 6, TotalMs: 1815, Usage: &protocol.Usage{PromptTokens: 212, CompletionTokens: 9},
	}},
	{Seq: 20, TS: 1767225610000, Message: protocol.SessionEnded{Reason: protocol.EndClosed}},
}

var pcm16k = protocol.Format{Encoding: "pcm16", Rate: 16000, Framing: "json"}

func goldenMessage2(typ string) string {
	return filepath.Join("testdata", "messages", "v2", typ+".json")
}

func TestGoldenMessagesOfVersion2(t *testing.T) {
	if len(messages2) != len(protocol.Events()) {
		t.Fatalf("%d examples for %d events", len(messages2), len(protocol.Events()))
	}
	for i, e := range protocol.Events() {
		m := messages2[i]
		if m.Message.Type() != e.Type {
			t.Fatalf("example %d is of %s, the event there is %s", i, m.Message.Type(), e.Type)
		}
		t.Run(e.Type, func(t *testing.T) {
			wire := protocol.AppendEnvelope(nil, m)
			golden(t, goldenMessage2(e.Type), wire)
			if want := viaJSON2(t, m); !bytes.Equal(wire, want) {
				t.Errorf("AppendEnvelope gives %s\nencoding/json          %s", wire, want)
			}
			for name, frame := range variants2(t, wire) {
				got, err := protocol.DecodeEnvelope(frame, e.From)
				if err != nil {
					t.Errorf("%s: %v\n%s", name, err, frame)
				} else if !reflect.DeepEqual(got, m) {
					t.Errorf("%s: got %#v, want %#v", name, got, m)
				}
			}
		})
	}
}

func TestGoldenMessagesOfVersion2HaveNoStranger(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "messages", "v2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		typ, _ := strings.CutSuffix(f.Name(), ".json")
		if _, ok := sender[typ]; !ok {
			t.Errorf("testdata/messages/v2/%s belongs to no event", f.Name())
		}
	}
}

// variants2 are other ways to write the same message of version 2.
func variants2(t *testing.T, wire []byte) map[string][]byte {
	var m struct {
		Type, Payload json.RawMessage
		Seq, TS, ID   json.RawMessage
	}
	if err := json.Unmarshal(wire, &m); err != nil {
		t.Fatal(err)
	}
	typ, payload, beside := string(m.Type), string(m.Payload), ""
	for name, value := range map[string]json.RawMessage{"seq": m.Seq, "ts": m.TS, "id": m.ID} {
		if value != nil {
			beside += `,"` + name + `":` + string(value)
		}
	}
	around := func(payload string) []byte { return []byte(`{"type":` + typ + `,"payload":` + payload + beside + `}`) }
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(m.Payload, &fields); err != nil {
		t.Fatal(err)
	}
	twice, other, escaped := "{", "{", "{"
	for name, value := range fields {
		twice += `"` + name + `":[[]],`
		other += `"` + strings.ToUpper(name[:1]) + name[1:] + `":[[]],"` + strings.ToUpper(name) + `":-1,`
		escaped += `"` + escapeAll(name) + `":` + string(value) + `,`
	}
	return map[string][]byte{
		"as it was encoded":             wire,
		"unknown fields":                []byte(`{"type":` + typ + `,"v":3,"payload":` + payload + beside + `,"seqs":-1,"Id":{},"TS":"x"}`),
		"payload last, beside it first": []byte(`{` + strings.TrimPrefix(beside+`,"type":`, ",") + typ + `,"payload":` + payload + `}`),
		"repeated, last wins":           []byte(`{"seq":0,"ts":0,"id":"no","type":7,"seq":null,"ts":null,"id":null` + beside + `,"type":` + typ + `,"payload":` + payload + `}`),
		"escaped keys beside":           []byte(strings.NewReplacer(`"seq"`, `"s\u0065q"`, `"ts"`, `"\u0074s"`, `"id"`, `"\u0069d"`).Replace(string(around(payload)))),
		"unknown in the payload":        around(strings.Replace(payload, "{", `{"later":[{}]`+comma(payload), 1)),
		"a field twice, last wins":      around(twice + payload[1:]),
		"other letters are unknown":     around(other + payload[1:]),
		"escaped fields":                around(strings.TrimSuffix(escaped, ",") + "}"),
	}
}

// viaJSON2 encodes a message of version 2 as encoding/json does, without HTML escaping. It is what AppendEnvelope is
// held to.
func viaJSON2(t testing.TB, e protocol.Envelope) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if e.Seq == 0 {
		e.TS = 0
	}
	err := enc.Encode(struct {
		Type    string           `json:"type"`
		Payload protocol.Message `json:"payload"`
		Seq     uint64           `json:"seq,omitempty"`
		TS      int64            `json:"ts,omitempty"`
		ID      string           `json:"id,omitempty"`
	}{e.Message.Type(), e.Message, e.Seq, e.TS, e.ID})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// withText2 puts a string into every place of version 2 that carries one and is written by hand, and into some others.
func withText2(s string) []protocol.Envelope {
	return []protocol.Envelope{
		{ID: s, Message: protocol.InputAudioAppend{Chunk: s}},
		{Seq: 1, TS: 1, Message: protocol.SessionState{Value: protocol.State(s)}},
		{Seq: 1 << 63, TS: -1, Message: protocol.ResponseTextDelta{Text: s, ResponseID: s}},
		{Seq: 2, TS: 2, Message: protocol.TranscriptPartial{Text: s, ItemID: s}},
		{Seq: 3, TS: 3, Message: protocol.TranscriptFinal{Text: s, ItemID: s}},
		{Message: protocol.Error{Code: protocol.CodeInternal, Message: s, Ref: s}},
		{ID: s, Message: protocol.SessionStart{Language: s, Metadata: map[string]string{"x": s}}},
		{Message: protocol.SignalSubscribe{Types: []string{s, s}}},
		{Message: protocol.ResponseCancelled{ResponseID: s, Reason: protocol.CancelReason(s), HeardText: s}},
		{Message: protocol.History{Items: []protocol.HistoryItem{{Role: s, Text: s}}}},
	}
}

func TestAppendEnvelopeIsEncodingJSON(t *testing.T) {
	for _, s := range nasty {
		for _, e := range withText2(s) {
			got, want := protocol.AppendEnvelope([]byte("before"), e), "before"+string(viaJSON2(t, e))
			if string(got) != want {
				t.Errorf("%T %.200q:\ngot  %.300s\nwant %.300s", e.Message, s, got, want)
			}
		}
	}
}

func TestRoundTripOfVersion2(t *testing.T) {
	for _, s := range nasty {
		roundTrip2(t, s)
	}
}

func roundTrip2(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	for _, e := range withText2(s) {
		if len(e.ID) > 128 {
			e.ID = ""
		}
		got, err := protocol.DecodeEnvelope(protocol.AppendEnvelope(nil, e), sender[e.Message.Type()])
		if err != nil {
			t.Errorf("%T %.200q: %v", e.Message, s, err)
		} else if !reflect.DeepEqual(got, e) {
			t.Errorf("got %.300v, want %.300v", got, e)
		}
	}
}

// Every field there is goes out and comes back.
func TestRoundTripOfEveryField(t *testing.T) {
	for _, e := range protocol.Events() {
		m := filled(e)
		wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: m})
		got, err := protocol.DecodeEnvelope(wire, e.From)
		if err != nil || !reflect.DeepEqual(got.Message, m) {
			t.Errorf("%s: got %#v and the error %v, want %#v", wire, got.Message, err, m)
		}
		for _, f := range flat(fields(e, 2)) {
			if !bytes.Contains(wire, []byte(`"`+f.name+`":`)) {
				t.Errorf("%s is not in %s", f.name, wire)
			}
		}
	}
}

// An event written with nothing set still has every field that the contract requires, in its own shape.
func TestZeroMessagesKeepTheirShape(t *testing.T) {
	for _, e := range protocol.Events() {
		m := e.Zero()
		if e.Type == "session.ready" {
			m = protocol.SessionReady{Terms: &protocol.Terms{}}
		}
		wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: m})
		if bytes.Contains(wire, []byte("null")) {
			t.Errorf("a null: %s", wire)
		}
		if e.Type == "input_text.submit" {
			continue // an empty one is no turn
		}
		if _, err := protocol.DecodeEnvelope(wire, e.From); err != nil {
			t.Errorf("%s: %v", wire, err)
		}
	}
}

// Messages are shared by all who are told of them.
func TestAppendEnvelopeLeavesTheMessageAlone(t *testing.T) {
	terms := &protocol.Terms{}
	protocol.AppendEnvelope(nil, protocol.Envelope{Message: protocol.SessionReady{Terms: terms}})
	if terms.Features != nil {
		t.Error("the terms have changed")
	}
}

// What an agent or a tool leaves behind is not always JSON. It must not stop the gateway, nor reach a client.
func TestAppendEnvelopeTakesAnyRawJSON(t *testing.T) {
	for _, raw := range []string{
		"", "null", "1", `"words"`, "[]", "{", "{}x", `{"a":}`, "{\"a\":\"\xff\"}", "{\"a\":\"\n\"}", strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300),
		strings.Repeat(`{"a":`, 255) + "1" + strings.Repeat("}", 255),
	} {
		for _, c := range []struct {
			message protocol.Message
			want    string
		}{
			{protocol.ToolCall{Input: json.RawMessage(raw)}, `"input":{}}`},
			{protocol.ToolResult{Output: json.RawMessage(raw)}, `"success":false}`},
			{protocol.Signal{Payload: json.RawMessage(raw)}, `"source":"","payload":{}}`},
			{protocol.Signal{Metadata: json.RawMessage(raw)}, `"source":"","payload":{}}`},
			{protocol.SignalEmit{Payload: json.RawMessage(raw)}, `"payload":{}}`},
		} {
			wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: c.message})
			if !bytes.HasSuffix(wire, []byte(c.want+"}")) {
				t.Errorf("%.50q is written %.300q", raw, wire)
			}
		}
	}
	deep := strings.Repeat(`{"a":`, 254) + "1" + strings.Repeat("}", 254)
	for _, raw := range []string{`{}`, " {\n\"a\": [1, 2] }\t", `{"a":"<ü>"}`, deep} {
		wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: protocol.ToolCall{Input: json.RawMessage(raw)}})
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(wire, append([]byte(`"input":`), compact.Bytes()...)) {
			t.Errorf("%.50q is written %.300q", raw, wire)
		}
		if _, err := protocol.DecodeEnvelope(wire, protocol.Server); err != nil {
			t.Errorf("%.50q: %v", raw, err)
		}
	}
}

// A version 1 client notices nothing: its messages are what they were, byte for byte, whatever of version 2 is set, and
// what version 1 does not have is not written at all.
func TestAppendToWritesVersion1(t *testing.T) {
	allowed := map[string][]string{
		"session.start": {}, "mocked.turn.trigger": {}, "input_audio.append": {"chunk"}, "input_audio.commit": {}, "response.cancel": {},
		"session.ready": {"sessionId"}, "session.state": {"value"}, "transcript.partial": {"text"}, "transcript.final": {"text"},
		"response.text.delta": {"text"}, "response.completed": {}, "error": {"code", "message", "retryable"},
	}
	for _, e := range protocol.Events() {
		m := filled(e)
		wire := protocol.AppendTo([]byte("before"), m)
		names, ok := allowed[e.Type]
		if !ok {
			if string(wire) != "before" || len(protocol.Encode(m)) != 0 {
				t.Errorf("version 1 has no %s: %s", e.Type, wire)
			}
			continue
		}
		var got struct {
			Type    string
			Payload map[string]any
		}
		if err := json.Unmarshal(wire[len("before"):], &got); err != nil || got.Type != e.Type || len(got.Payload) != len(names) {
			t.Errorf("%s: %v", wire, err)
		}
		for _, name := range names {
			if got.Payload[name] == nil {
				t.Errorf("%s has no %s", wire, name)
			}
		}
		var envelope map[string]any
		if json.Unmarshal(wire[len("before"):], &envelope); len(envelope) != 2 {
			t.Errorf("more than type and payload: %s", wire)
		}
	}
	for _, e := range messages2[:len(messages)] {
		wire := protocol.AppendTo(nil, e.Message)
		m, err := protocol.Decode(wire, sender[e.Message.Type()])
		if err != nil || !bytes.Equal(protocol.Encode(m), wire) {
			t.Errorf("%s: %v", wire, err)
		}
	}
	if wire := protocol.AppendTo(nil, stranger{}); wire != nil {
		t.Errorf("an event of nobody's: %s", wire)
	}
}

type stranger struct{}

func (stranger) Type() string { return "stranger" }

func TestAppendEnvelopeDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, m := range []protocol.Message{
		protocol.SessionState{Value: protocol.Thinking},
		protocol.TranscriptPartial{Text: "some words", ItemID: "i1"},
		protocol.ResponseTextDelta{Text: "你好 🛥️", ResponseID: "r1"},
		protocol.InputAudioAppend{Chunk: strings.Repeat("A", 856)},
	} {
		e := protocol.Envelope{Seq: 12345, TS: 1767225600000, ID: "m1", Message: m}
		if n := testing.AllocsPerRun(100, func() { protocol.AppendEnvelope(buf, e) }); n != 0 {
			t.Errorf("%T: %v allocations", m, n)
		}
	}
}
