package protocol_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/protocol"
)

// start is a message that a client may send, with room for a value that is checked and then ignored.
func start(value string) string {
	return `{"type":"session.start","payload":{},"x":` + value + `}`
}

// badInput is every way in which a frame from a client is no event, with the code of the answer and words that it must have.
var badInput = []struct {
	name, frame string
	code        protocol.Code
	says        string
}{
	{"empty frame", "", protocol.CodeInvalidJSON, "not JSON"},
	{"white space only", " \t\r\n", protocol.CodeInvalidJSON, "not JSON"},
	{"not JSON", "hello", protocol.CodeInvalidJSON, "Send one JSON object"},
	{"cut short", `{"type":"session.start","payload":{}`, protocol.CodeInvalidJSON, "not JSON"},
	{"cut inside a string", `{"type":"session.st`, protocol.CodeInvalidJSON, "not JSON"},
	{"trailing garbage", start("1") + "x", protocol.CodeInvalidJSON, "not JSON"},
	{"two messages", start("1") + start("1"), protocol.CodeInvalidJSON, "one JSON object per text message"},
	{"trailing NUL", start("1") + "\x00", protocol.CodeInvalidJSON, "not JSON"},
	{"byte order mark", "\ufeff" + start("1"), protocol.CodeInvalidJSON, "not JSON"},
	{"form feed is no white space", "\f" + start("1"), protocol.CodeInvalidJSON, "not JSON"},
	{"single quotes", `{'type':'session.start','payload':{}}`, protocol.CodeInvalidJSON, "not JSON"},
	{"bare key", `{type:"session.start","payload":{}}`, protocol.CodeInvalidJSON, "not JSON"},
	{"comment", `{"type":"session.start",/**/"payload":{}}`, protocol.CodeInvalidJSON, "not JSON"},
	{"no colon", `{"type" "session.start"}`, protocol.CodeInvalidJSON, "not JSON"},
	{"no value", `{"type":}`, protocol.CodeInvalidJSON, "not JSON"},
	{"no comma", `{"type":"session.start" "payload":{}}`, protocol.CodeInvalidJSON, "not JSON"},
	{"comma before the end", `{"type":"session.start","payload":{},}`, protocol.CodeInvalidJSON, "not JSON"},
	{"comma at the start", `{,"type":"session.start"}`, protocol.CodeInvalidJSON, "not JSON"},
	{"wrong closing", `{"type":"session.start","payload":{]}`, protocol.CodeInvalidJSON, "not JSON"},
	{"fault after both fields", start(`[1,]`), protocol.CodeInvalidJSON, "not JSON"},
	{"fault in an ignored object", start(`{"a":1,}`), protocol.CodeInvalidJSON, "not JSON"},
	{"raw newline in a string", start("\"a\nb\""), protocol.CodeInvalidJSON, "not JSON"},
	{"raw newline late in a string", start("\"0123456789abcdef\n\""), protocol.CodeInvalidJSON, "not JSON"},
	{"unknown escape", start(`"\x41"`), protocol.CodeInvalidJSON, "not JSON"},
	{"short escape", start(`"\u12"`), protocol.CodeInvalidJSON, "not JSON"},
	{"first digit no hex", start(`"\ug234"`), protocol.CodeInvalidJSON, "not JSON"},
	{"second digit no hex", start(`"\u1:34"`), protocol.CodeInvalidJSON, "not JSON"},
	{"third digit no hex", start("\"\\u12`4\""), protocol.CodeInvalidJSON, "not JSON"},
	{"last digit no hex", start(`"\u123@"`), protocol.CodeInvalidJSON, "not JSON"},
	{"backslash at the end", `{"type":"\`, protocol.CodeInvalidJSON, "not JSON"},
	{"misspelt literal", start(`nul`), protocol.CodeInvalidJSON, "not JSON"},
	{"long literal", start(`trueish`), protocol.CodeInvalidJSON, "not JSON"},
	{"capital literal", start(`True`), protocol.CodeInvalidJSON, "not JSON"},
	{"NaN", start(`NaN`), protocol.CodeInvalidJSON, "not JSON"},

	{"array", `[]`, protocol.CodeInvalidMessage, "not a JSON object"},
	{"string", `"session.start"`, protocol.CodeInvalidMessage, "not a JSON object"},
	{"number", ` 12 `, protocol.CodeInvalidMessage, "not a JSON object"},
	{"null", `null`, protocol.CodeInvalidMessage, "not a JSON object"},
	{"true", `true`, protocol.CodeInvalidMessage, "not a JSON object"},
	{"empty object", `{}`, protocol.CodeInvalidMessage, `string "type"`},
	{"no type", `{"payload":{}}`, protocol.CodeInvalidMessage, `string "type"`},
	{"type is a number", `{"type":1,"payload":{}}`, protocol.CodeInvalidMessage, `string "type"`},
	{"type is null", `{"type":null,"payload":{}}`, protocol.CodeInvalidMessage, `string "type"`},
	{"type in capitals is another field", `{"Type":"session.start","payload":{}}`, protocol.CodeInvalidMessage, `string "type"`},
	{"type is spelt with another letter", `{"\u0174ype":"session.start","payload":{}}`, protocol.CodeInvalidMessage, `string "type"`},
	{"type was a string at first", `{"type":"session.start","type":2,"payload":{}}`, protocol.CodeInvalidMessage, `string "type"`},
	{"no payload", `{"type":"session.start"}`, protocol.CodeInvalidMessage, `object "payload"`},
	{"payload is null", `{"type":"session.start","payload":null}`, protocol.CodeInvalidMessage, `object "payload"`},
	{"payload is an array", `{"type":"session.start","payload":[]}`, protocol.CodeInvalidMessage, `object "payload"`},
	{"payload is a string", `{"type":"session.start","payload":"{}"}`, protocol.CodeInvalidMessage, `object "payload"`},
	{"payload was an object at first", `{"type":"session.start","payload":{},"payload":0}`, protocol.CodeInvalidMessage, `object "payload"`},
	{"unknown type", `{"type":"session.begin","payload":{}}`, protocol.CodeInvalidMessage, `"session.begin"`},
	{"empty type", `{"type":"","payload":{}}`, protocol.CodeInvalidMessage, `""`},
	{"type with a blank", `{"type":"session.start ","payload":{}}`, protocol.CodeInvalidMessage, `"session.start "`},
	{"type in other letters", `{"type":"Session.Start","payload":{}}`, protocol.CodeInvalidMessage, `"Session.Start"`},
	{"server's type", `{"type":"session.ready","payload":{"sessionId":"x"}}`, protocol.CodeInvalidMessage, `"session.ready" is sent by the server`},
	{"server's error", `{"type":"error","payload":{"code":"internal","message":""}}`, protocol.CodeInvalidMessage, `"error" is sent by the server`},

	{"append without chunk", `{"type":"input_audio.append","payload":{}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk is a number", `{"type":"input_audio.append","payload":{"chunk":1}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk is null", `{"type":"input_audio.append","payload":{"chunk":null}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk is a list", `{"type":"input_audio.append","payload":{"chunk":["x"]}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk in capitals is another field", `{"type":"input_audio.append","payload":{"Chunk":"x"}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk was a string at first", `{"type":"input_audio.append","payload":{"chunk":"x","chunk":{}}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk lies deeper", `{"type":"input_audio.append","payload":{"a":{"chunk":"x"}}}`, protocol.CodeInvalidMessage, `string "chunk"`},
	{"chunk lies in the envelope", `{"type":"input_audio.append","chunk":"x","payload":{}}`, protocol.CodeInvalidMessage, `string "chunk"`},

	{"nests too deep", start(nested(256)), protocol.CodeInvalidMessage, "256 levels"},
	{"nests too deep with objects", start(strings.Repeat(`{"a":`, 256) + "1" + strings.Repeat("}", 256)), protocol.CodeInvalidMessage, "256 levels"},
	{"nests too deep in the payload", `{"type":"session.start","payload":{"a":` + nested(255) + `}}`, protocol.CodeInvalidMessage, "256 levels"},
	{"array nests too deep", nested(257), protocol.CodeInvalidMessage, "256 levels"},
	{"nests without an end", strings.Repeat("[", 1<<20), protocol.CodeInvalidMessage, "256 levels"},
}

// nested is n arrays, each within the other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestDecodeRefuses(t *testing.T) {
	for _, c := range badInput {
		t.Run(c.name, func(t *testing.T) {
			m, err := protocol.Decode([]byte(c.frame), protocol.Client)
			if m != nil || err == nil {
				t.Fatalf("got %#v and the error %v", m, err)
			}
			checkDecodeError(t, err)
			var e *protocol.DecodeError
			if errors.As(err, &e) && e.Code() != c.code {
				t.Errorf("code %s, want %s (%v)", e.Code(), c.code, err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
}

// checkDecodeError holds for every error of Decode: it goes to the client as it is, in an error event.
func checkDecodeError(t *testing.T, err error) {
	t.Helper()
	var e *protocol.DecodeError
	if !errors.As(err, &e) {
		t.Fatalf("%T is not *DecodeError", err)
	}
	if e.Code() != protocol.CodeInvalidJSON && e.Code() != protocol.CodeInvalidMessage {
		t.Errorf("code %q", e.Code())
	}
	text := err.Error()
	if !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	if len(text) > 1000 {
		t.Errorf("%d bytes of error: %.100s…", len(text), text)
	}
	if !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n\r\x00") {
		t.Errorf("no plain sentence: %q", text)
	}
}

// Whatever is sent, what comes back stays short and is text.
func TestDecodeErrorsAreBounded(t *testing.T) {
	for name, typ := range map[string]string{
		"a million letters":     strings.Repeat("x", 1<<20),
		"a million wide runes":  strings.Repeat("\U0010fffe", 1<<18),
		"a million bad bytes":   strings.Repeat("\xff", 1<<20),
		"a rune cut at the end": strings.Repeat("x", 63) + "\xe2\x80",
		"an escaped newline":    `a\nb`,
		"escaped controls":      strings.Repeat(`\u0000`, 1000),
		"a lone surrogate":      `\ud800`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, side := range []protocol.Side{protocol.Client, protocol.Server} {
				_, err := protocol.Decode([]byte(`{"type":"`+typ+`","payload":{}}`), side)
				checkDecodeError(t, err)
			}
		})
	}
}

func TestDecodeTakes(t *testing.T) {
	for name, c := range map[string]struct {
		frame string
		want  protocol.Message
	}{
		"256 levels in an ignored field": {start(nested(255)), protocol.SessionStart{}},
		"256 levels in the payload":      {`{"type":"session.start","payload":{"a":` + nested(254) + `}}`, protocol.SessionStart{}},
		"the last chunk counts":          {`{"type":"input_audio.append","payload":{"chunk":1,"chunk":"a","chunk":"b"}}`, protocol.InputAudioAppend{Chunk: "b"}},
		"an escaped chunk key":           {`{"type":"input_audio.append","payload":{"\u0063hun\u006b":"a"}}`, protocol.InputAudioAppend{Chunk: "a"}},
		"an escaped key counts as last":  {`{"type":"input_audio.append","payload":{"chunk":"a","chun\u006b":"b"}}`, protocol.InputAudioAppend{Chunk: "b"}},
		"escapes in the chunk":           {`{"type":"input_audio.append","payload":{"chunk":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800"}}`, protocol.InputAudioAppend{Chunk: "\"\\/\b\f\n\r\té😀\ufffd"}},
		"an escaped backslash at an end": {`{"x\\":"\\","type":"session.start","payload":{}}`, protocol.SessionStart{}},
		"an empty chunk":                 {`{"type":"input_audio.append","payload":{"chunk":""}}`, protocol.InputAudioAppend{}},
		"keys that begin alike":          {`{"type":"session.start","payload":{},"types":1,"typ":2,"typ\u0065s":3,"payloads":[]}`, protocol.SessionStart{}},
		"an empty key":                   {`{"":0,"type":"session.start","payload":{}}`, protocol.SessionStart{}},
		"payload of a later version":     {`{"type":"response.cancel","payload":{"responseId":"r","playedMs":3}}`, protocol.ResponseCancel{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.Decode([]byte(c.frame), protocol.Client)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v and the error %v, want %#v", got, err, c.want)
			}
		})
	}
}

// The whole grammar of numbers, by hand and held to encoding/json.
func TestDecodeNumbers(t *testing.T) {
	for _, n := range []string{
		"0", "-0", "7", "-12", "0.5", "10.25", "1e3", "1E3", "1e+3", "1e-3", "0e0", "-0.0E-0", strings.Repeat("9", 400), "1e99999",
		"", "-", "+1", "01", "-01", "00", ".5", "1.", "1.e3", "1e", "1e+", "1E-", "e3", "0x1", "1_000", "1.2.3", "--1", "1-", "1e3.5", "Infinity", "-a",
	} {
		_, err := protocol.Decode([]byte(start(n)), protocol.Client)
		if good := json.Valid([]byte(n)); good != (err == nil) {
			t.Errorf("%q: valid JSON is %t, the error is %v", n, good, err)
		}
	}
}

// A client that reads what a gateway sends gets the same care.
func TestDecodeFromServerRefuses(t *testing.T) {
	for name, c := range map[string]struct{ frame, says string }{
		"a client's type":      {`{"type":"session.start","payload":{}}`, `"session.start" is sent by the client`},
		"text is a number":     {`{"type":"transcript.final","payload":{"text":1}}`, `"text"`},
		"text is a list":       {`{"type":"transcript.final","payload":{"text":[]}}`, `"text"`},
		"retryable is a word":  {`{"type":"error","payload":{"code":"internal","message":"","retryable":"yes"}}`, `"retryable"`},
		"a very long number":   {`{"type":"transcript.final","payload":{"text":` + strings.Repeat("1", 1<<20) + `}}`, `"text"`},
		"state is an object":   {`{"type":"session.state","payload":{"value":{}}}`, `"value"`},
		"not JSON at all":      {`<html>`, "not JSON"},
		"an unknown event":     {`{"type":"nothing","payload":{}}`, `"nothing"`},
		"an array as envelope": {`[]`, "not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := protocol.Decode([]byte(c.frame), protocol.Server)
			if m != nil || err == nil {
				t.Fatalf("got %#v and the error %v", m, err)
			}
			checkDecodeError(t, err)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
}

// A peer reads every message into the same buffer.
func TestDecodeKeepsNothingOfTheFrame(t *testing.T) {
	for i, m := range messages {
		frame := protocol.Encode(m)
		got, err := protocol.Decode(frame, protocol.Events()[i].From)
		if err != nil {
			t.Fatal(err)
		}
		clear(frame)
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%T changed with its frame: %#v", m, got)
		}
	}
}

// However many keys a message has, and however they are written, they cost nothing but the look at them.
func TestDecodeDoesNotAllocateForKeys(t *testing.T) {
	frame := []byte(`{` + strings.Repeat(`"\u0074ypf":0,"\n":{"":[]},"payloae":"",`, 100) + `"type":"session.start","payload":{}}`)
	n := testing.AllocsPerRun(100, func() {
		if _, err := protocol.Decode(frame, protocol.Client); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
