package protocol_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vela/protocol"
)

// client2 is a message of version 2 from a client.
func client2(typ, payload string) string {
	return `{"type":"` + typ + `","payload":` + payload + `,"id":"m1"}`
}

// badInput2 is what version 2 adds to the ways in which a frame from a client is no event, with words that the answer
// must have. The code is always invalid_message: what is no JSON is the same in both versions.
var badInput2 = []struct{ name, frame, says string }{
	{"text is missing", client2("input_text.submit", `{}`), `needs a string "text"`},
	{"text is a number", client2("input_text.submit", `{"text":1}`), `needs a string "text"`},
	{"text is null", client2("input_text.submit", `{"text":null}`), `needs a string "text"`},
	{"text in capitals is another field", client2("input_text.submit", `{"Text":"x"}`), `needs a string "text"`},
	{"text is empty", client2("input_text.submit", `{"text":""}`), "at least one word"},
	{"text is blank", client2("input_text.submit", `{"text":" \t\n\r"}`), "at least one word"},
	{"text is blank beyond ASCII", client2("input_text.submit", `{"text":"\u2003 \u00a0"}`), "at least one word"},
	{"text over 64 KiB", client2("input_text.submit", `{"text":"`+strings.Repeat("x", 64<<10+1)+`"}`), "over 64 KiB"},
	{"text over 64 KiB in bytes", client2("input_text.submit", `{"text":"`+strings.Repeat("é", 32<<10)+`x"}`), "over 64 KiB"},
	{"text over 64 KiB of escapes", client2("input_text.submit", `{"text":"`+strings.Repeat(`\n`, 64<<10)+`x"}`), "over 64 KiB"},
	{"text that is blank and long", client2("input_text.submit", `{"text":"`+strings.Repeat(" ", 64<<10+1)+`"}`), "at least one word"},

	{"id too long", `{"type":"history.get","payload":{},"id":"` + strings.Repeat("x", 129) + `"}`, "at most 128 bytes"},
	{"id is a number", `{"type":"history.get","payload":{},"id":1}`, "must be a string"},
	{"id is a list", `{"type":"history.get","payload":{},"id":["x"]}`, "must be a string"},

	{"after is negative", client2("session.resume", `{"token":"t","after":-1}`), `"after" must be a whole number`},
	{"after is huge", client2("session.resume", `{"token":"t","after":18446744073709551616}`), `"after" must be a whole number`},
	{"after is very long", client2("session.resume", `{"token":"t","after":`+strings.Repeat("9", 1<<20)+`}`), `"after" must be a whole number`},
	{"after is no whole number", client2("session.resume", `{"token":"t","after":1.5}`), `"after" must be a whole number`},
	{"after is written with an exponent", client2("session.resume", `{"token":"t","after":1e3}`), `"after" must be a whole number`},
	{"after is missing", client2("session.resume", `{"token":"t"}`), `"after" must be a whole number`},
	{"token is missing", client2("session.resume", `{"after":1}`), `"token" must be a string`},
	{"token is null", client2("session.resume", `{"token":null,"after":1}`), `"token" must be a string`},
	{"played is negative", client2("playback.ack", `{"responseId":"r","playedMs":-1}`), `"playedMs" must be a whole number`},
	{"played is huge", client2("playback.ack", `{"responseId":"r","playedMs":9223372036854775808}`), `"playedMs" must be a whole number`},
	{"played is a fraction", client2("playback.ack", `{"responseId":"r","playedMs":0.1}`), `"playedMs" must be a whole number`},
	{"played at a cancel is negative", client2("response.cancel", `{"playedMs":-1}`), `"playedMs" must be a whole number`},
	{"rate is negative", client2("session.start", `{"audio":{"input":{"encoding":"pcm16","rate":-1,"framing":"json"}}}`), `"audio.input.rate" must be a whole number`},
	{"threshold is a word", client2("session.start", `{"vad":{"threshold":"0.5"}}`), `"vad.threshold" must be a number from 0 on`},
	{"threshold is negative", client2("session.start", `{"vad":{"threshold":-0.5}}`), `"vad.threshold" must be a number from 0 on`},
	{"threshold is huge", client2("session.start", `{"vad":{"threshold":1e999}}`), `"vad.threshold" must be a number from 0 on`},
	{"silence is a fraction", client2("session.start", `{"vad":{"silenceMs":0.5}}`), `"vad.silenceMs" must be a whole number`},
	{"encoding is missing", client2("session.start", `{"audio":{"output":{"rate":24000,"framing":"json"}}}`), `"audio.output.encoding" must be a string`},
	{"format is a word", client2("session.start", `{"audio":{"input":"pcm16"}}`), `"audio.input" must be an object`},
	{"audio is a list", client2("session.start", `{"audio":[]}`), `"audio" must be an object`},
	{"metadata holds a number", client2("session.start", `{"metadata":{"a":"b","c":1}}`), `"metadata" must be an object of strings`},
	{"metadata holds a null", client2("session.start", `{"metadata":{"a":null}}`), `"metadata" must be an object of strings`},
	{"interrupt is a word", client2("session.start", `{"interrupt":"true"}`), `"interrupt" must be true or false`},
	{"a type is a null", client2("signal.subscribe", `{"types":["a",null]}`), `"types" must be an array of strings`},
	{"a type is a number", client2("signal.subscribe", `{"types":["a",1]}`), `"types" must be a string`},
	{"a million wrong types", client2("signal.subscribe", `{"types":[`+strings.Repeat("0,", 1<<19)+`0]}`), `"types" must be a string`},
	{"a signal's payload is a list", client2("signal.emit", `{"type":"user.x","payload":[]}`), `"payload" must be an object`},
	{"a signal without a type", client2("signal.emit", `{"payload":{}}`), `"type" must be a string`},
	{"no yes and no no", client2("approval.answer", `{"approvalId":"p"}`), `"allow" must be true or false`},
	{"an event of the server", client2("session.ended", `{"reason":"closed"}`), `"session.ended" is sent by the server`},
	{"binary header as text", client2("input_audio.append", `{"chunk":[0,1]}`), `string "chunk"`},
}

func TestDecodeEnvelopeRefuses(t *testing.T) {
	check := func(t *testing.T, frame string, code protocol.Code, says string) {
		t.Helper()
		got, err := protocol.DecodeEnvelope([]byte(frame), protocol.Client)
		if got.Message != nil || err == nil {
			t.Fatalf("got %.300v and the error %v", got, err)
		}
		checkDecodeError(t, err)
		var e *protocol.DecodeError
		if errors.As(err, &e) && e.Code() != code {
			t.Errorf("code %s, want %s (%v)", e.Code(), code, err)
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	for _, c := range badInput { // all of version 1, too
		t.Run(c.name, func(t *testing.T) { check(t, c.frame, c.code, c.says) })
	}
	for _, c := range badInput2 {
		t.Run(c.name, func(t *testing.T) { check(t, c.frame, protocol.CodeInvalidMessage, c.says) })
	}
}

// With an id, what is wrong stays the same, and the id comes with it.
func TestDecodeEnvelopeRefusesWithID(t *testing.T) {
	for _, c := range badInput {
		if c.code != protocol.CodeInvalidMessage || !strings.HasPrefix(c.frame, `{"`) || !json.Valid([]byte(c.frame)) {
			continue // no object, or none that can be read
		}
		_, want := protocol.DecodeEnvelope([]byte(c.frame), protocol.Client)
		got, err := protocol.DecodeEnvelope([]byte(`{"id":"m7",`+c.frame[1:]), protocol.Client)
		deep := strings.Contains(c.says, "levels") // is not read to its end
		if err == nil || err.Error() != want.Error() || got.ID != "m7" && !deep || got.Message != nil {
			t.Errorf("%s: got %v and the error %v, want %v", c.name, got, err, want)
		}
	}
}

// goodShapes says which of the shapes a field of a type takes, besides null where the field is optional.
func goodShapes(typ reflect.Type) []string {
	switch {
	case typ.Kind() == reflect.String:
		return []string{`""`, `"x"`, `"1"`}
	case typ.Kind() == reflect.Bool:
		return []string{"true", "false"}
	case typ == reflect.TypeFor[json.RawMessage]():
		return []string{"{}", `{"x":"y"}`, `{"x":1}`, `{"x":null}`, `{"x":{}}`}
	case typ.Kind() == reflect.Map:
		return []string{"{}", `{"x":"y"}`}
	case typ.Kind() == reflect.Struct:
		return []string{"{}", `{"x":"y"}`, `{"x":1}`, `{"x":null}`, `{"x":{}}`}
	case typ == reflect.TypeFor[[]string]():
		return []string{"[]", `["x"]`}
	case typ.Kind() == reflect.Slice:
		return []string{"[]", "[{}]"}
	}
	return []string{"0"}
}

// Every field of every event meets every shape of JSON, and takes just its own.
func TestDecodeEnvelopeShapes(t *testing.T) {
	for _, e := range protocol.Events() {
		wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: filled(e)})
		for _, f := range flat(fields(e, 2)) {
			if f.is != "" {
				continue // it says again what the envelope says
			}
			good := goodShapes(f.typ)
			if f.optional || e.From == protocol.Server {
				good = append(good, "null", "") // "" is a field that is not there
			}
			for _, shape := range append([]string{""}, shapes...) {
				if f.name == "text" && e.From == protocol.Client && shape == `""` {
					continue // no turn
				}
				_, err := protocol.DecodeEnvelope(replaceField(t, wire, f.name, shape), e.From)
				if takes := slices.Contains(good, shape); takes != (err == nil) {
					t.Errorf("%s: %s as %.30q: %v", e.Type, f.name, shape, err)
				}
				if err == nil {
					continue
				}
				checkDecodeError(t, err)
				if text := err.Error(); !strings.Contains(text, e.Type) || !strings.Contains(text, f.name) {
					t.Errorf("%s: %s as %.30q: %v", e.Type, f.name, shape, err)
				}
			}
		}
	}
}

func TestDecodeEnvelopeTakes(t *testing.T) {
	long := strings.Repeat("é", 32<<10)
	for name, c := range map[string]struct {
		frame string
		want  protocol.Message
	}{
		"no settings":           {client2("session.start", `{}`), protocol.SessionStart{}},
		"settings of null":      {client2("session.start", `{"turns":null,"audio":null,"interrupt":null,"metadata":null}`), protocol.SessionStart{}},
		"no output":             {client2("session.start", `{"audio":{"output":null}}`), protocol.SessionStart{Audio: &protocol.AudioFormats{}}},
		"interrupt is off":      {client2("session.start", `{"interrupt":false}`), protocol.SessionStart{Interrupt: new(false)}},
		"an unknown setting":    {client2("session.start", `{"Turns":7,"tempo":"fast"}`), protocol.SessionStart{}},
		"an unknown format":     {client2("session.start", `{"audio":{"Input":3,"noise":{}}}`), protocol.SessionStart{Audio: &protocol.AudioFormats{}}},
		"text of 64 KiB":        {client2("input_text.submit", `{"text":"`+long+`"}`), protocol.InputTextSubmit{Text: long}},
		"text is left alone":    {client2("input_text.submit", `{"text":"  a\n "}`), protocol.InputTextSubmit{Text: "  a\n "}},
		"an empty token":        {client2("session.resume", `{"token":"","after":0}`), protocol.SessionResume{}},
		"the last seq there is": {client2("session.resume", `{"token":"t","after":18446744073709551615}`), protocol.SessionResume{Token: "t", After: 1<<64 - 1}},
		"the last ms there is":  {client2("playback.ack", `{"responseId":"r","playedMs":9223372036854775807}`), protocol.PlaybackAck{ResponseID: "r", PlayedMs: 1<<63 - 1}},
		"a bare cancel":         {client2("response.cancel", `{}`), protocol.ResponseCancel{}},
		"a signal as it stands": {client2("signal.emit", `{"type":"user.x","payload":{ "a" : [1,2] }}`), protocol.SignalEmit{SignalType: "user.x", Payload: json.RawMessage(`{ "a" : [1,2] }`)}},
		"white space in a list": {client2("signal.subscribe", `{"types":[ "a" , "b" ],"sources":[ ]}`), protocol.SignalSubscribe{Types: []string{"a", "b"}, Sources: []string{}}},
		"an opaque chunk":       {client2("input_audio.append", `{"chunk":"[placeholder]"}`), protocol.InputAudioAppend{Chunk: "[placeholder]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.DecodeEnvelope([]byte(c.frame), protocol.Client)
			if err != nil || !reflect.DeepEqual(got, protocol.Envelope{ID: "m1", Message: c.want}) {
				t.Errorf("got %.300v and the error %v, want %.300v", got, err, c.want)
			}
		})
	}
}

// A gateway of another day may leave out what its client knows, and say what its client does not.
func TestDecodeEnvelopeFromServer(t *testing.T) {
	for frame, want := range map[string]protocol.Message{
		`{"type":"session.ready","payload":{"sessionId":"s"}}`:                       protocol.SessionReady{SessionID: "s"},
		`{"type":"session.ready","payload":{"sessionId":"s","lastSeq":3}}`:           protocol.SessionReady{SessionID: "s", Terms: &protocol.Terms{LastSeq: 3}},
		`{"type":"session.ended","payload":{"reason":"tide","at":3}}`:                protocol.SessionEnded{Reason: "tide"},
		`{"type":"turn.metrics","payload":{"turnId":"t","sttMs":0}}`:                 protocol.TurnMetrics{TurnID: "t", SttMs: new(int64(0))},
		`{"type":"history","payload":{"items":[{"role":"user","Role":1},{"at":2}]}}`: protocol.History{Items: []protocol.HistoryItem{{Role: "user"}, {At: 2}}},
	} {
		got, err := protocol.DecodeEnvelope([]byte(frame), protocol.Server)
		if err != nil || !reflect.DeepEqual(got.Message, want) {
			t.Errorf("%s: got %#v and the error %v", frame, got.Message, err)
		}
	}
}

// What version 2 adds means nothing to version 1, whatever its shape.
func TestDecodeKnowsNoVersion2(t *testing.T) {
	for _, e := range protocol.Events() {
		wire := protocol.AppendEnvelope(nil, protocol.Envelope{Message: filled(e)})
		m, err := protocol.Decode(wire, e.From)
		if e.Since == 2 {
			if m != nil || err == nil || !strings.Contains(err.Error(), "Unknown event type") {
				t.Errorf("%s: got %#v and the error %v", e.Type, m, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(protocol.Encode(m), protocol.Encode(filled(e))) {
			t.Errorf("%s: %v", wire, err)
		}
		if again := protocol.AppendEnvelope(nil, protocol.Envelope{Message: m}); !bytes.Equal(again, protocol.Encode(m)) {
			t.Errorf("version 1 has read fields of version 2: %s", again)
		}
		old := map[string]bool{}
		for _, f := range fields(e, 1) {
			old[f.name] = true
		}
		for _, f := range flat(fields(e, 2)) {
			if old[f.name] {
				continue
			}
			for _, value := range shapes {
				frame := replaceField(t, wire, f.name, value)
				if _, err := protocol.Decode(frame, e.From); err != nil {
					t.Errorf("%s: %v", frame, err)
				}
			}
		}
	}
	for _, beside := range []string{`"id":7`, `"seq":"x"`, `"ts":{}`, `"id":"` + strings.Repeat("x", 1000) + `"`} {
		if _, err := protocol.Decode([]byte(`{"type":"input_audio.commit","payload":{},`+beside+`}`), protocol.Client); err != nil {
			t.Errorf("%.20s: %v", beside, err)
		}
	}
}

// shapes is one of each kind of JSON value, and some that a field may not like.
var shapes = []string{
	"null", "true", "false", "0", "-0", "-1", "1.5", "1.0", "1e3", "18446744073709551616", strings.Repeat("9", 400), `""`, `"x"`, `"1"`, "[]", `["x"]`, "[1]", "[null]", "[[]]", `[{}]`,
	"{}", `{"x":"y"}`, `{"x":1}`, `{"x":null}`, `{"x":{}}`,
}

// replaceField sets a member of the payload.
func replaceField(t *testing.T, wire []byte, name, value string) []byte {
	t.Helper()
	var m map[string]json.RawMessage
	var payload map[string]json.RawMessage
	if json.Unmarshal(wire, &m) != nil || json.Unmarshal(m["payload"], &payload) != nil {
		t.Fatalf("%s", wire)
	}
	payload[name] = json.RawMessage(value)
	if value == "" {
		delete(payload, name)
	}
	var err error
	if m["payload"], err = json.Marshal(payload); err != nil {
		t.Fatal(err)
	}
	frame, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// The id is there for the answer, whatever else is wrong with the message.
func TestDecodeEnvelopeReturnsTheID(t *testing.T) {
	for name, c := range map[string]struct {
		frame, id string
		bad       bool
	}{
		"a good message":         {`{"type":"history.get","payload":{},"id":"a"}`, "a", false},
		"id first":               {`{"id":"a","type":"history.get","payload":{}}`, "a", false},
		"escapes":                {`{"type":"history.get","payload":{},"id":"\"\u00e9\ud83d\ude00"}`, `"é😀`, false},
		"the last one counts":    {`{"id":1,"type":"history.get","payload":{},"id":"a","id":"b"}`, "b", false},
		"empty":                  {`{"type":"history.get","payload":{},"id":""}`, "", false},
		"null is none":           {`{"type":"history.get","payload":{},"id":null}`, "", false},
		"as long as may be":      {`{"type":"history.get","payload":{},"id":"` + strings.Repeat("x", 128) + `"}`, strings.Repeat("x", 128), false},
		"128 escaped bytes":      {`{"type":"history.get","payload":{},"id":"` + strings.Repeat(`\u0041`, 128) + `"}`, strings.Repeat("A", 128), false},
		"too long":               {`{"type":"history.get","payload":{},"id":"` + strings.Repeat("x", 129) + `"}`, "", true},
		"too long in bytes":      {`{"type":"history.get","payload":{},"id":"` + strings.Repeat("é", 65) + `"}`, "", true},
		"a million letters":      {`{"type":"history.get","payload":{},"id":"` + strings.Repeat("x", 1<<20) + `"}`, "", true},
		"a number":               {`{"type":"history.get","payload":{},"id":7}`, "", true},
		"an object":              {`{"type":"history.get","payload":{},"id":{"id":"a"}}`, "", true},
		"unknown event":          {`{"type":"nothing","payload":{},"id":"a"}`, "a", true},
		"an event of the server": {`{"type":"history","payload":{"items":[]},"id":"a"}`, "a", true},
		"no type":                {`{"payload":{},"id":"a"}`, "a", true},
		"no payload":             {`{"type":"history.get","id":"a"}`, "a", true},
		"payload no object":      {`{"type":"history.get","payload":[],"id":"a"}`, "a", true},
		"wrong payload":          {`{"type":"input_text.submit","payload":{},"id":"a"}`, "a", true},
		"no JSON has no id":      {`{"type":"history.get","payload":{},"id":"a"`, "", true},
		"nor garbage behind it":  {`{"type":"history.get","payload":{},"id":"a"}x`, "", true},
		"id in the payload":      {`{"type":"history.get","payload":{"id":"a"}}`, "", false},
		"id in other letters":    {`{"type":"history.get","payload":{},"ID":"a"}`, "", false},
		"a client has no seq":    {`{"type":"history.get","payload":{},"id":"a","seq":"x","ts":[]}`, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.DecodeEnvelope([]byte(c.frame), protocol.Client)
			if got.ID != c.id || (err != nil) != c.bad || (got.Message == nil) != c.bad || got.Seq != 0 || got.TS != 0 {
				t.Errorf("got %.200v and the error %v", got, err)
			}
			if err != nil {
				checkDecodeError(t, err)
			}
		})
	}
}

func TestDecodeEnvelopeReadsWhatTheServerCounts(t *testing.T) {
	frame := func(beside string) []byte {
		return []byte(`{"type":"session.state","payload":{"value":"idle"}` + beside + `}`)
	}
	for beside, want := range map[string]protocol.Envelope{
		"":                                   {},
		`,"seq":1,"ts":2`:                    {Seq: 1, TS: 2},
		`,"seq":18446744073709551615`:        {Seq: 1<<64 - 1},
		`,"seq":null,"ts":null`:              {},
		`,"seq":1,"ts":1,"id":{}`:            {Seq: 1, TS: 1},
		`,"ts":-9223372036854775808,"seq":9`: {Seq: 9, TS: -1 << 63},
	} {
		got, err := protocol.DecodeEnvelope(frame(beside), protocol.Server)
		want.Message = protocol.SessionState{Value: protocol.Idle}
		if err != nil || got != want {
			t.Errorf("%s: got %v and the error %v", beside, got, err)
		}
	}
	for _, beside := range []string{`"seq":-1`, `"seq":1.5`, `"seq":"1"`, `"seq":18446744073709551616`, `"ts":"now"`, `"ts":9223372036854775808`, `"ts":1e999`, `"seq":` + strings.Repeat("9", 1<<20)} {
		got, err := protocol.DecodeEnvelope(frame(","+beside), protocol.Server)
		if err == nil || got.Message != nil {
			t.Errorf("%.50s: got %v", beside, got)
			continue
		}
		checkDecodeError(t, err)
	}
}

func TestDecodeEnvelopeKeepsNothingOfTheFrame(t *testing.T) {
	for i, m := range messages2 {
		frame := protocol.AppendEnvelope(nil, m)
		got, err := protocol.DecodeEnvelope(frame, protocol.Events()[i].From)
		if err != nil {
			t.Fatal(err)
		}
		clear(frame)
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%T changed with its frame: %#v", m.Message, got)
		}
	}
}
