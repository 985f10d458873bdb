package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzDecode sends anything. Nothing may panic, an error is one that can be sent to the client, and the scanner and
// encoding/json agree on what is JSON and on what stands in it.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "messages", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no golden messages: ", err)
	}
	for _, file := range files {
		frame, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	for _, frame := range []string{
		"", " ", "{}", "[]", "nul", `"\u12"`, "-0.0e+1", "01", "{\"\x00\":1}",
		`{"type":"session.start","type":null,"payload":{},"payload":[{"a":{"b":1}}]}`,
		`{"\u0074ype":"input_audio.append","payload":{"chun\u006b":"\ud83d\ude00\/","chunk":"0123456789"}}`,
		`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[`,
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, side := range []Side{Client, Server} {
			decodeAnything(t, frame, side)
		}
		sameAsJSON(t, frame)
	})
}

// FuzzEnvelope is the same for version 2: its payloads hold what encoding/json finds in them, and what was read
// can be written and read again.
func FuzzEnvelope(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "messages", "v2", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no golden messages: ", err)
	}
	for _, file := range files {
		frame, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	for _, frame := range []string{
		`{"type":"session.start","payload":{"audio":{"Input":1,"input":{"encoding":"\u0070","rate":0,"framing":"","rate":3}},"metadata":{"a":"b","a":"\ud800"}},"id":"\u0000"}`,
		`{"type":"session.resume","payload":{"token":"","after":00},"id":1}`,
		`{"type":"signal.subscribe","payload":{"types":[ "a" ,"b"] ,"sources":[null]}}`,
		`{"type":"signal.emit","payload":{"type":"","payload":{"a":[{}]}}}`,
		`{"type":"history","payload":{"items":[{"at":1,"Role":2,"role":"user"},{}]},"seq":1,"ts":-1}`,
		`{"type":"session.ready","payload":{"protocol":null,"features":[]},"seq":null}`,
		`{"type":"turn.metrics","payload":{"sttMs":-0,"usage":{}}}`,
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, side := range []Side{Client, Server} {
			envelopeAnything(t, frame, side)
		}
		sameAsJSON(t, frame)
	})
}

func envelopeAnything(t *testing.T, frame []byte, from Side) {
	e, err := DecodeEnvelope(frame, from)
	if len(e.ID) > maxID || from == Server && e.ID != "" || from == Client && (e.Seq != 0 || e.TS != 0) {
		t.Errorf("%+v", e)
	}
	if err != nil {
		if e.Message != nil {
			t.Errorf("%#v and the error %v", e.Message, err)
		}
		checkError(t, err)
		return
	}
	row := byType[e.Message.Type()]
	if row == nil || row.From != from {
		t.Fatalf("%T is not sent by the %s", e.Message, from)
	}
	if _, err := Decode(frame, from); row.Since == 2 && err == nil {
		t.Errorf("%s in version 1: %v", row.Type, err)
	}
	if !utf8.Valid(frame) {
		return // left to the WebSocket, which lets no such message through
	}
	payload := membersOf(frame)["payload"]
	want := reflect.New(reflect.TypeOf(e.Message))
	if err := json.Unmarshal(exactly(t, row.shape, payload), want.Interface()); err != nil {
		t.Fatalf("encoding/json says %v: %q", err, frame)
	}
	if !reflect.DeepEqual(e.Message, want.Elem().Interface()) {
		t.Errorf("got %#v, want %#v: %q", e.Message, want.Elem(), frame)
	}
	wire := AppendEnvelope(nil, e)
	again, err := DecodeEnvelope(wire, from)
	if err != nil || !bytes.Equal(AppendEnvelope(nil, again), wire) {
		t.Errorf("written %q, then read with the error %v: %q", wire, err, frame)
	}
}

// exactly drops what encoding/json would take for a field though its name is in other letters, and every null.
func exactly(t *testing.T, s shape, object json.RawMessage) json.RawMessage {
	all, kept := membersOf(object), map[string]json.RawMessage{}
	for _, p := range s {
		if p.name == "" {
			for name, raw := range membersOf(exactly(t, p.inner, object)) {
				kept[name] = raw
			}
			continue
		}
		raw := all[p.name]
		if raw == nil {
			continue
		}
		if p.inner != nil && raw[0] == '{' {
			raw = exactly(t, p.inner, raw)
		}
		if p.inner != nil && raw[0] == '[' {
			var items []json.RawMessage
			if err := json.Unmarshal(raw, &items); err != nil {
				t.Fatal(err)
			}
			for i := range items {
				items[i] = exactly(t, p.inner, items[i])
			}
			raw, _ = json.Marshal(items)
		}
		if string(raw) != "null" || slices.ContainsFunc(s, func(p part) bool { return p.name == "protocol" }) {
			kept[p.name] = raw
		}
	}
	out, err := marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// marshal leaves raw JSON as it is, which json.Marshal would compact.
func marshal(members map[string]json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for name, raw := range members {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(raw)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func decodeAnything(t *testing.T, frame []byte, from Side) {
	m, err := Decode(frame, from)
	if err == nil {
		if row := byType[m.Type()]; row == nil || row.From != from {
			t.Errorf("%T is not sent by the %s", m, from)
		}
		return
	}
	if m != nil {
		t.Errorf("%#v and the error %v", m, err)
	}
	checkError(t, err)
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *DecodeError
	if !errors.As(err, &e) || e.Code() != CodeInvalidJSON && e.Code() != CodeInvalidMessage {
		t.Fatalf("%T %v", err, err)
	}
	if text := err.Error(); len(text) > 1000 || !utf8.ValidString(text) {
		t.Errorf("%d bytes of error: %.1000q", len(text), text)
	}
}

// sameAsJSON holds the scanner to encoding/json. That one matches the names of struct fields in any case, so the
// comparison goes through maps, whose keys it takes as they are; and of a repeated key it too keeps the last.
func sameAsJSON(t *testing.T, frame []byte) {
	env, err := scanEnvelope(frame)
	var e *DecodeError
	if errors.As(err, &e) && e == errTooDeep {
		if bytes.Count(frame, []byte("{"))+bytes.Count(frame, []byte("[")) <= maxDepth {
			t.Errorf("too deep: %q", frame)
		}
		return
	}
	if refused := e != nil && e.Code() == CodeInvalidJSON; json.Valid(frame) == refused {
		t.Fatalf("encoding/json says %t, the scanner says %v: %q", !refused, err, frame)
	}
	var typ string
	want := membersOf(frame)
	if !bytes.Equal(env.id, want["id"]) || !bytes.Equal(env.seq, want["seq"]) || !bytes.Equal(env.ts, want["ts"]) {
		t.Errorf("id %q seq %q ts %q: %q", env.id, env.seq, env.ts, frame)
	}
	isString, isObject := json.Unmarshal(want["type"], &typ) == nil && want["type"][0] == '"', membersOf(want["payload"]) != nil
	if (isString && isObject) != (err == nil) {
		t.Fatalf("the scanner says %v: %q", err, frame)
	}
	if err != nil {
		return
	}
	if string(bytes.ToValidUTF8(env.typ, []byte("?"))) != string(env.typ) {
		env.typ = []byte(typ) // left to the WebSocket, which lets no such message through
	}
	if string(env.typ) != typ || !bytes.Equal(env.payload, want["payload"]) {
		t.Errorf("type %q payload %q, want %q %q: %q", env.typ, env.payload, typ, want["payload"], frame)
	}
	if got, want := memberOf(env.payload, "chunk"), membersOf(env.payload)["chunk"]; !bytes.Equal(got, want) {
		t.Errorf("chunk %q, want %q: %q", got, want, frame)
	}
}

// membersOf reads an object with encoding/json; nil if it is none.
func membersOf(object []byte) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	return members
}

// plain looks at eight bytes at a time, so every place in a word is tried with every byte and with every byte after it.
func TestPlain(t *testing.T) {
	for _, length := range []int{1, 7, 8, 9, 16, 19} {
		for at := range length {
			for c := range 256 {
				for _, filler := range []byte{'a', ' ', '!', '#', '[', ']', 0x7f, 0x80, 0xa0, 0xa2, 0xdc, 0xff} {
					b := bytes.Repeat([]byte{filler}, length)
					b[at] = byte(c)
					want := length
					if c < ' ' || c == '"' || c == '\\' {
						want = at
					}
					if got := plain(b); got != want {
						t.Fatalf("plain(%q) is %d, want %d", b, got, want)
					}
				}
			}
		}
	}
}
