package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Encode returns the message in its envelope, ready for one WebSocket text message.
func Encode(m Message) []byte { return AppendTo(nil, m) }

// AppendTo appends the message, encoded for version 1, to dst and returns the longer slice, like the append functions
// of strconv: with a dst of its own, a peer encodes without allocating. What version 1 does not have is left out: the
// fields of version 2, and its events altogether, for which dst is returned as it is.
//
// The few events that make up nearly all traffic are written by hand; a test holds them to what encoding/json writes.
func AppendTo(dst []byte, m Message) []byte {
	switch v := m.(type) {
	case SessionReady, SessionState, TranscriptPartial, TranscriptFinal, ResponseTextDelta, InputAudioAppend:
	case ResponseCompleted:
		m = ResponseCompleted{}
	case Error:
		m = Error{Code: v.Code, Message: v.Message, Retryable: v.Retryable}
	case SessionStart:
		m = SessionStart{}
	case ResponseCancel:
		m = ResponseCancel{}
	default:
		if row := byType[m.Type()]; row == nil || row.Since > 1 {
			return dst
		}
	}
	dst = appendType(dst, m)
	switch m := m.(type) {
	case SessionReady:
		dst = appendField(dst, `{"sessionId":`, m.SessionID)
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

func appendType(dst []byte, m Message) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, m.Type()...)
	return append(dst, `","payload":`...)
}

// AppendEnvelope is [AppendTo] for version 2: every event and every field of it. Seq, TS and ID are left out where they
// are zero.
func AppendEnvelope(dst []byte, e Envelope) []byte {
	dst = appendType(dst, e.Message)
	switch m := e.Message.(type) {
	case SessionState:
		dst = appendField(dst, `{"value":`, string(m.Value))
	case ResponseTextDelta:
		dst = append(dst, `{"text":`...)
		dst = appendString(dst, m.Text)
		dst = appendOptional(dst, `,"responseId":`, m.ResponseID)
		dst = append(dst, '}')
	case TranscriptPartial:
		dst = append(dst, `{"text":`...)
		dst = appendString(dst, m.Text)
		dst = appendOptional(dst, `,"itemId":`, m.ItemID)
		dst = append(dst, '}')
	case InputAudioAppend:
		dst = appendField(dst, `{"chunk":`, m.Chunk)
	default:
		dst = appendJSON(dst, whole(m))
	}
	if e.Seq != 0 {
		dst = append(dst, `,"seq":`...)
		dst = strconv.AppendUint(dst, e.Seq, 10)
		dst = append(dst, `,"ts":`...)
		dst = strconv.AppendInt(dst, e.TS, 10)
	}
	dst = appendOptional(dst, `,"id":`, e.ID)
	return append(dst, '}')
}

// whole puts an empty object or array where the contract wants one and a nil would be written as null, and where an
// agent or a tool left something that is no JSON object, which nobody could read.
func whole(m Message) Message {
	switch m := m.(type) {
	case SessionReady:
		if m.Terms != nil && m.Features == nil {
			terms := *m.Terms
			terms.Features = []string{}
			m.Terms = &terms
		}
		return m
	case History:
		if m.Items == nil {
			m.Items = []HistoryItem{}
		}
		return m
	case ToolCall:
		m.Input = objectOr(m.Input, json.RawMessage("{}"))
		return m
	case ToolResult:
		m.Output = objectOr(m.Output, nil)
		return m
	case Signal:
		m.Payload = objectOr(m.Payload, json.RawMessage("{}"))
		m.Metadata = objectOr(m.Metadata, nil)
		return m
	case SignalEmit:
		m.Payload = objectOr(m.Payload, json.RawMessage("{}"))
		return m
	}
	return m
}

// objectOr returns what may stand in a message as an object, else the other.
func objectOr(raw, other json.RawMessage) json.RawMessage {
	s := scanner{buf: raw}
	if s.peek() != '{' || !utf8.Valid(raw) {
		return other
	}
	if s.value(2); s.bad || !s.end() { // the envelope and its payload stand around it
		return other
	}
	return raw
}

func appendOptional(dst []byte, open, value string) []byte {
	if value == "" {
		return dst
	}
	return appendString(append(dst, open...), value)
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
		// The payloads are structs of strings, numbers, booleans and JSON that whole has checked: only a programming
		// error gets here.
		panic(fmt.Sprintf("protocol: encode %T: %v", v, err))
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
