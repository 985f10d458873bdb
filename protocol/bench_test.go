package protocol_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"

	"vela/protocol"
)

// Run them with: go test ./protocol -run '^$' -bench . -benchmem. Each stands beside encoding/json doing the same.

// chunk is 20 ms of audio: 640 bytes, 856 in base64.
var chunk = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x12\x34\xfe\xff"), 160))

// envelope is what one reads into with encoding/json alone: the payload is picked out once the type is known.
type envelope struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

func BenchmarkDecodeAppend(b *testing.B) {
	frame := protocol.Encode(protocol.InputAudioAppend{Chunk: chunk})
	b.Run("protocol", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := protocol.Decode(frame, protocol.Client); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("version 2", func(b *testing.B) {
		frame := protocol.AppendEnvelope(nil, protocol.Envelope{Message: protocol.InputAudioAppend{Chunk: chunk}})
		b.SetBytes(int64(len(frame)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := protocol.DecodeEnvelope(frame, protocol.Client); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("version 2 with id", func(b *testing.B) {
		frame := protocol.AppendEnvelope(nil, protocol.Envelope{ID: "m1234", Message: protocol.InputAudioAppend{Chunk: chunk}})
		b.SetBytes(int64(len(frame)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := protocol.DecodeEnvelope(frame, protocol.Client); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		b.ReportAllocs()
		for b.Loop() {
			var e envelope
			var m protocol.InputAudioAppend
			if err := json.Unmarshal(frame, &e); err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(e.Payload, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendTo(b *testing.B) {
	for _, c := range []struct {
		name    string
		message protocol.Message
	}{
		{"plain", protocol.ResponseTextDelta{Text: "This is a deterministic mocked response. "}},
		{"umlauts", protocol.ResponseTextDelta{Text: "Der Kapitän grüßt höflich zurück – “ahoi”. "}},
		{"escapes", protocol.ResponseTextDelta{Text: "He said \"ahoy\".\n\n- one\n- two\n"}},
	} {
		b.Run(c.name+"/protocol", func(b *testing.B) {
			buf := make([]byte, 0, 1024)
			b.ReportAllocs()
			for b.Loop() {
				buf = protocol.AppendTo(buf[:0], c.message)
			}
		})
		b.Run(c.name+"/version 2", func(b *testing.B) {
			buf := make([]byte, 0, 1024)
			e := protocol.Envelope{Seq: 12345, TS: 1767225600000, Message: c.message}
			b.ReportAllocs()
			for b.Loop() {
				buf = protocol.AppendEnvelope(buf[:0], e)
			}
		})
		b.Run(c.name+"/encoding-json", func(b *testing.B) {
			var buf bytes.Buffer
			e := json.NewEncoder(&buf)
			e.SetEscapeHTML(false)
			b.ReportAllocs()
			for b.Loop() {
				buf.Reset()
				err := e.Encode(struct {
					Type    string           `json:"type"`
					Payload protocol.Message `json:"payload"`
				}{c.message.Type(), c.message})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The events that a client sends while it plays and talks, and what a Go client reads: decoded by their shape.
func BenchmarkDecodeEnvelope(b *testing.B) {
	for i, e := range protocol.Events() {
		switch e.Type {
		case "session.start", "session.resume", "playback.ack", "input_text.submit", "response.text.delta", "session.ready":
			frame := protocol.AppendEnvelope(nil, messages2[i])
			b.Run(e.Type, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := protocol.DecodeEnvelope(frame, e.From); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// What an adversary may send in one message must not cost much more than its length.
func BenchmarkDecodeHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"escaped keys": `"\u0074ypf":0,`,
		"short keys":   `"\n":0,`,
		"braces":       `"":[{},{}],`,
		"escapes":      `"":"\n\n\n\n\n",`,
		"numbers":      `"":1e1,`,
		"real keys":    `"turns":"",`,
	} {
		filler := []byte(nil)
		for len(filler) < 1<<20 {
			filler = append(filler, unit...)
		}
		for version, frame := range map[string]string{
			"version 1": `{` + string(filler) + `"type":"session.start","payload":{}}`,
			"version 2": `{"type":"session.start","payload":{` + string(filler) + `"agent":""}}`,
		} {
			frame := []byte(frame)
			b.Run(name+"/"+version, func(b *testing.B) {
				b.SetBytes(int64(len(frame)))
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if version == "version 1" {
						_, err = protocol.Decode(frame, protocol.Client)
					} else {
						_, err = protocol.DecodeEnvelope(frame, protocol.Client)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
