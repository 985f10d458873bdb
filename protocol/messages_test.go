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
)

// messages has one example of every event. Their bytes are in testdata/messages, which the browser's tests read too,
// and they are the examples in the documents.
var messages = []protocol.Message{
	protocol.SessionStart{},
	protocol.MockedTurnTrigger{},
	protocol.InputAudioAppend{Chunk: "AAABAAIAAwAEAAUABgAHAA=="},
	protocol.InputAudioCommit{},
	protocol.ResponseCancel{},
	protocol.SessionReady{SessionID: "6f1b2d0e-5c0a-4a7e-9d57-3f6f0c1f2a44"},
	protocol.SessionState{Value: protocol.Listening},
	protocol.TranscriptPartial{Text: "[mocked partial] Placeholder push-to-talk transcript in progress (2 chunks)."},
	protocol.TranscriptFinal{Text: "[mocked user] What is the current mocked vertical slice?"},
	protocol.ResponseTextDelta{Text: "[mocked assistant] "},
	protocol.ResponseCompleted{},
	protocol.Error{
		Code:      protocol.CodeMockedTurnInFlight,
		Message:   "A turn is still running. Send again when the session is idle.",
		Retryable: true,
	},
}

// sender says who sends which event.
var sender = func() map[string]protocol.Side {
	sides := map[string]protocol.Side{}
	for _, e := range protocol.Events() {
		sides[e.Type] = e.From
	}
	return sides
}()

func goldenMessage(typ string) string { return filepath.Join("testdata", "messages", typ+".json") }

func TestGoldenMessages(t *testing.T) {
	if len(messages) != len(upTo(1)) {
		t.Fatalf("%d examples for %d events", len(messages), len(upTo(1)))
	}
	for i, e := range upTo(1) {
		m := messages[i]
		if m.Type() != e.Type {
			t.Fatalf("example %d is of %s, the event there is %s", i, m.Type(), e.Type)
		}
		t.Run(e.Type, func(t *testing.T) {
			wire := protocol.Encode(m)
			golden(t, goldenMessage(e.Type), wire)
			if want := viaJSON(t, m); !bytes.Equal(wire, want) {
				t.Errorf("Encode gives %s\nencoding/json  %s", wire, want)
			}
			for name, frame := range variants(t, wire) {
				got, err := protocol.Decode(frame, e.From)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if !reflect.DeepEqual(got, m) {
					t.Errorf("%s: got %#v, want %#v", name, got, m)
				}
			}
		})
	}
}

func TestGoldenMessagesHaveNoStranger(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "messages"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		typ, _ := strings.CutSuffix(f.Name(), ".json")
		if _, ok := sender[typ]; !ok && !f.IsDir() {
			t.Errorf("testdata/messages/%s belongs to no event", f.Name())
		}
	}
}

// variants are other ways to write the same message.
func variants(t *testing.T, wire []byte) map[string][]byte {
	var m struct{ Type, Payload json.RawMessage }
	if err := json.Unmarshal(wire, &m); err != nil {
		t.Fatal(err)
	}
	typ, payload := string(m.Type), string(m.Payload)
	var indented bytes.Buffer
	if err := json.Indent(&indented, wire, "\r", "\t"); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"as it was encoded":   wire,
		"indented":            indented.Bytes(),
		"white space around":  []byte(" \n" + string(wire) + "\t\r\n"),
		"payload first":       []byte(`{"payload":` + payload + `,"type":` + typ + `}`),
		"unknown fields":      []byte(`{"seq":1.5e-3,"type":` + typ + `,"x":[{"type":"no","payload":null}],"payload":` + payload + `}`),
		"unknown payload":     []byte(`{"type":` + typ + `,"payload":` + strings.Replace(payload, "{", `{"x":[true,false,null]`+comma(payload), 1) + `}`),
		"repeated, last wins": []byte(`{"type":7,"payload":[],"type":` + typ + `,"payload":` + payload + `}`),
		"escaped keys":        []byte(`{"\u0074ype":` + typ + `,"p\u0061yl\u006Fad":` + payload + `}`),
		"escaped type":        []byte(`{"type":"` + escapeAll(strings.Trim(typ, `"`)) + `","payload":` + payload + `}`),
	}
}

// comma goes between a new first member and those that a payload has.
func comma(payload string) string {
	if payload == "{}" {
		return ""
	}
	return ","
}

// escapeAll writes every letter as \u00xx.
func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString(`\u00` + string("0123456789abcdef"[s[i]>>4]) + string("0123456789ABCDEF"[s[i]&15]))
	}
	return b.String()
}

// viaJSON encodes a message as encoding/json does, without HTML escaping. It is what AppendTo is held to.
func viaJSON(t testing.TB, m protocol.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Type    string           `json:"type"`
		Payload protocol.Message `json:"payload"`
	}{m.Type(), m})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

var nasty = []string{
	"",
	"plain words",
	`a "quote" and a \ backslash`,
	"tab\tnewline\nreturn\rbell\abackspace\bfeed\fnul\x00unit\x1fdelete\x7f",
	"<script>&amp;</script>",
	"line\u2028paragraph\u2029end", "line\u2028", "paragraph\u2029",
	"\u2027 and \u202a are their harmless neighbours … “quoted” – dashed",
	"Grüße, 你好, שלום",
	"emoji 🛥️👩‍🚀",
	"bad UTF-8 \xff\xfe, cut \xe2\x80, surrogate \xed\xa0\x80, overlong \xc0\xaf",
	"exactly8", "exactly8\"", "1234567\n", "12345678é", strings.Repeat("x", 1000) + "\"",
	"\ufeffbyte order mark and \ufffd",
}

// withText puts a string into every event that carries one.
func withText(s string) []protocol.Message {
	return []protocol.Message{
		protocol.InputAudioAppend{Chunk: s},
		protocol.SessionReady{SessionID: s},
		protocol.SessionState{Value: protocol.State(s)},
		protocol.TranscriptPartial{Text: s},
		protocol.TranscriptFinal{Text: s},
		protocol.ResponseTextDelta{Text: s},
		protocol.Error{Code: protocol.CodeInternal, Message: s},
	}
}

func TestAppendToIsEncodingJSON(t *testing.T) {
	for _, s := range nasty {
		for _, m := range withText(s) {
			got, want := protocol.AppendTo([]byte("before"), m), "before"+string(viaJSON(t, m))
			if string(got) != want {
				t.Errorf("%T %.200q:\ngot  %.300s\nwant %.300s", m, s, got, want)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, s := range nasty {
		roundTrip(t, s)
	}
}

// roundTrip sends a string through every event that carries one. What is not UTF-8 arrives as U+FFFD, byte by byte.
func roundTrip(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	for _, m := range withText(s) {
		got, err := protocol.Decode(protocol.Encode(m), sender[m.Type()])
		if err != nil {
			t.Errorf("%T %.200q: %v", m, s, err)
		} else if !reflect.DeepEqual(got, m) {
			t.Errorf("got %.300q, want %.300q", got, m)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, m := range withText(s) {
			if got, want := protocol.Encode(m), viaJSON(t, m); !bytes.Equal(got, want) {
				t.Errorf("%T %.200q:\ngot  %.300s\nwant %.300s", m, s, got, want)
			}
		}
		roundTrip(t, s)
	})
}

func TestRetryableIsLeftOutWhenFalse(t *testing.T) {
	got := string(protocol.Encode(protocol.Error{Code: protocol.CodeInvalidJSON, Message: "no"}))
	if want := `{"type":"error","payload":{"code":"invalid_json","message":"no"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A peer with a buffer of its own encodes what makes up nearly all traffic without allocating.
func TestAppendToDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, m := range []protocol.Message{
		protocol.SessionState{Value: protocol.Thinking},
		protocol.TranscriptPartial{Text: "some words"},
		protocol.TranscriptFinal{Text: "Grüße …"},
		protocol.ResponseTextDelta{Text: "你好 🛥️"},
		protocol.InputAudioAppend{Chunk: strings.Repeat("A", 856)},
	} {
		if n := testing.AllocsPerRun(100, func() { protocol.AppendTo(buf, m) }); n != 0 {
			t.Errorf("%T: %v allocations", m, n)
		}
	}
}
