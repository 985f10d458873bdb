package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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
