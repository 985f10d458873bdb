package source

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"time"

	"vela/protocol/signal"
	"vela/turn/openclaw"
	"vela/turn/stream"
)

// Stamp makes envelopes. NewID makes an id, Now is the clock.
type Stamp struct {
	NewID func() string
	Now   func() time.Time
}

// seal makes a signal of a payload. One that is not valid, whatever a vendor sent to cause it, becomes an error signal.
func (s Stamp) seal(source, correlation string, channel *signal.Channel, p signal.Payload) signal.Raw {
	source = named(source)
	r, err := signal.Envelope{
		ID: s.NewID(), Timestamp: s.Now().UnixMilli(), Source: source, CorrelationID: correlation, Payload: p, Channel: channel,
	}.Raw()
	if err == nil {
		err = signal.Check(r)
	}
	if err == nil {
		return r
	}
	return s.accept(source, r.Append(nil))
}

// named is a source's name, which a signal has to have, and which some servers leave empty.
func named(source string) string {
	const most = 200
	switch source = strings.ToValidUTF8(source, "\ufffd"); {
	case source == "":
		return "unknown"
	case len(source) > most:
		return strings.ToValidUTF8(source[:most], "") + "…"
	}
	return source
}

func (s Stamp) accept(source string, text []byte) signal.Raw {
	r, _ := signal.Intake{Source: source, NewID: s.NewID}.Accept(text, s.Now().UnixMilli()) // the signal says it, too
	return r
}

// Plain reads messages that are signals already. Source is for those that name none.
type Plain struct {
	Stamp
	Source string
}

// Parse makes a signal of one message, as [signal.Intake] does; false for one that says of itself that it is none, by a
// member meta, as demonstration servers send them.
func (p Plain) Parse(message []byte) (signal.Raw, bool) {
	r := p.accept(p.Source, message)
	if r.Source == signal.SourceRaw && isMeta(message) {
		return signal.Raw{}, false
	}
	return r, true
}

func isMeta(message []byte) bool {
	if len(message) > signal.MaxSize {
		return false
	}
	var m struct {
		Type any `json:"type"`
		Meta any `json:"meta"`
	}
	if json.Unmarshal(message, &m) != nil || m.Type != nil {
		return false
	}
	switch v := m.Meta.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	}
	return true
}

// Messages cuts an HTTP answer into messages: an event stream if its media type says so or it looks like one, and lines
// of JSON otherwise, which are events with nothing but data. A message is valid until the next one is asked for.
func Messages(body io.Reader, mediaType string) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		head := make([]byte, 512)
		events := mediaType == "text/event-stream"
		if !knownKind(mediaType) {
			n, err := io.ReadAtLeast(body, head, 1)
			if n == 0 {
				if err != nil && err != io.EOF {
					yield(stream.Event{}, err)
				}
				return
			}
			body = io.MultiReader(bytes.NewReader(head[:n]), body)
			events = looksLikeEvents(head[:n])
		}
		if !events {
			for line, err := range stream.Lines(body) {
				if !yield(stream.Event{Data: line}, err) {
					return
				}
			}
			return
		}
		for e, err := range stream.Events(body) {
			if err == nil && bytes.Equal(e.Data, done) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// knownKind says whether a media type says what the messages are.
func knownKind(mediaType string) bool {
	switch mediaType {
	case "text/event-stream", "application/x-ndjson", "application/json":
		return true
	}
	return false
}

var done = []byte("[DONE]")

// looksLikeEvents says whether a text begins with a line of an event stream.
func looksLikeEvents(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \r\n")
	for _, field := range []string{":", "data", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(head, []byte(field)) {
			return true
		}
	}
	return false
}

// OpenClaw reads the frames of one connection to OpenClaw. It belongs to one goroutine.
type OpenClaw struct {
	Stamp
	observer openclaw.Observer
}

// openClawSource is the source of its signals.
const openClawSource = "adapter:openclaw"

// Parse makes signals of one frame. The run is their correlation id.
func (o *OpenClaw) Parse(frame []byte) []signal.Raw {
	var all []signal.Raw
	for _, s := range o.observer.Observe(frame) {
		all = append(all, o.seal(openClawSource, s.RunID, &s.Channel, s.Payload))
	}
	return all
}
