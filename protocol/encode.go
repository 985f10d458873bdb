package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Encode returns the message in its envelope, ready for one WebSocket text message.
func Encode(m Message) []byte { return AppendTo(nil, m) }

// AppendTo appends the encoded message to dst and returns the longer slice, like the append functions of strconv: with
// a dst of its own, a peer encodes without allocating. The few events that make up nearly all traffic are written by
// hand; a test holds them to what encoding/json writes.
func AppendTo(dst []byte, m Message) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, m.Type()...)
	dst = append(dst, `","payload":`...)
	switch m := m.(type) {
	case SessionState:
		dst = appendField(dst, `{"value":`, string(m.Value))
	case TranscriptPartial:
		dst = appendField(dst, `{"text":`, m.Text)
	case TranscriptFinal:
		dst = appendField(dst, `{"text":`, m.Text)
	case ResponseTextDelta:
		dst = appendField(dst, `{"text":`, m.Text)
	case InputAudioAppend:
		dst = appendField(dst, `{"chunk":`, m.Chunk)
	default:
		dst = appendJSON(dst, m)
	}
	return append(dst, '}')
}

func appendField(dst []byte, open, value string) []byte {
	dst = append(dst, open...)
	dst = appendString(dst, value)
	return append(dst, '}')
}

// appendString quotes as encoding/json does without HTML escaping. What needs no escape, which is nearly everything, is
// copied.
func appendString(dst []byte, s string) []byte {
	wide := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c == '"' || c == '\\' {
			return appendJSON(dst, s)
		}
		wide = wide || c >= utf8.RuneSelf
	}
	if wide && (!utf8.ValidString(s) || strings.Contains(s, "\u2028") || strings.Contains(s, "\u2029")) {
		return appendJSON(dst, s)
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendJSON leaves <, > and & as they are: no event is put into HTML as text, and the words stay readable.
func appendJSON(dst []byte, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// The payloads are structs of strings, numbers and booleans: only a programming error gets here.
		panic(fmt.Sprintf("protocol: encode %T: %v", v, err))
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
