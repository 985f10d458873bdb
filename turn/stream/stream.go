// Package stream is what the readers of other programs' streams share: server-sent events, lines of JSON, and the one
// HTTP request whose answer is such a stream, with its time limits, its repeats and its errors.
//
// Start at [Events], which reads bytes, and [Client.Open], which fetches them. What the events mean is the affair of
// the vendors' packages beside this one.
package stream

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"time"
)

// Bounds of what a stream may make us keep.
const (
	maxLine  = 1 << 20
	maxEvent = 4 << 20
)

// Errors of a stream that is no stream, but a server that never ends a line or an event.
var (
	ErrLongLine  = errors.New("stream: a line has more than 1 MiB")
	ErrLongEvent = errors.New("stream: an event has more than 4 MiB")
)

// Event is one server-sent event.
type Event struct {
	Name  string        // of its last event field; empty stands for "message"
	Data  []byte        // its data fields, joined by line feeds; valid until the next event is asked for
	ID    string        // of the last id field of the stream so far
	Retry time.Duration // of the last retry field of the stream so far; 0 when there was none
}

// Events reads an event stream as the WHATWG's HTML standard defines it in section 9.2. An error of the reader, and a
// line or event that is too long, is the last thing yielded. An event that the end of the stream cuts off is dropped,
// as the standard wants it.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := liner{src: r, cr: true}
		var e event
		for first := true; ; first = false {
			line, err := lines.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(Event{}, err)
				}
				return
			}
			if first {
				line = bytes.TrimPrefix(line, bom)
			}
			if len(line) > 0 {
				if !e.field(line) {
					yield(Event{}, ErrLongEvent)
					return
				}
				continue
			}
			if e.lines > 0 && !yield(e.Event, nil) {
				return
			}
			e.reset()
		}
	}
}

var bom = []byte("\xef\xbb\xbf")

// event is an Event in the making.
type event struct {
	Event
	lines int    // of data
	named string // the last Name there was
}

func (e *event) reset() {
	e.Name, e.Data, e.lines = "", e.Data[:0], 0
}

// field takes a line that is not empty. It says no once the event is too long.
func (e *event) field(line []byte) bool {
	name, value, _ := bytes.Cut(line, colon)
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if len(e.Data)+len(value) >= maxEvent {
			return false
		}
		if e.lines++; e.lines > 1 {
			e.Data = append(e.Data, '\n')
		}
		e.Data = append(e.Data, value...)
	case "event":
		if string(value) != e.named { // one name follows itself in most streams
			e.named = string(value)
		}
		e.Name = e.named
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != e.ID {
			e.ID = string(value)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			e.Retry = time.Duration(ms) * time.Millisecond
		}
	}
	return true
}

var colon = []byte(":")

// digits reads a number of ASCII digits alone, of at most nine: eleven days, in milliseconds.
func digits(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// Lines reads lines that each hold one JSON text (NDJSON), without their line ends and without empty ones. The last one
// needs no end. An error of the reader, and [ErrLongLine], is the last thing yielded. A line is valid until the next one
// is asked for.
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := liner{src: r}
		for {
			line, err := lines.next()
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line, nil) {
				return
			}
			if err != nil {
				return
			}
		}
	}
}
