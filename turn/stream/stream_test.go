package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// read is what a stream holds, each event as text that can be compared.
func read(r io.Reader) []string {
	var all []string
	for e, err := range Events(r) {
		if err != nil {
			return append(all, "error: "+err.Error())
		}
		all = append(all, fmt.Sprintf("%s|%s|%s|%d", e.Name, e.Data, e.ID, e.Retry.Milliseconds()))
	}
	return all
}

var streams = []struct {
	name, text string
	want       []string
}{
	{"nothing", "", nil},
	{"one event", "data: hello\n\n", []string{"|hello||0"}},
	{"the space is optional, and only one", "data:a\n\ndata:  b\n\n", []string{"|a||0", "| b||0"}},
	{"lines are joined", "data: a\ndata: b\ndata:\ndata: c\n\n", []string{"|a\nb\n\nc||0"}},
	{"an empty data line is data", "data\n\ndata:\n\n", []string{"|||0", "|||0"}},
	{"two empty data lines are a line feed", "data\ndata\n\n", []string{"|\n||0"}},
	{"a name is for one event", "event: add\ndata: 1\n\ndata: 2\n\n", []string{"add|1||0", "|2||0"}},
	{"the last name counts", "event: a\nevent: b\ndata: 1\n\n", []string{"b|1||0"}},
	{"no data, no event, and no name for the next", "event: a\n\ndata: 1\n\n", []string{"|1||0"}},
	{"an id stays", "id: 7\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n", []string{"|1|7|0", "|2|7|0", "|3||0"}},
	{"an id with a NUL does not count", "id: 7\ndata: 1\n\nid: 8\x009\ndata: 2\n\n", []string{"|1|7|0", "|2|7|0"}},
	{"an id without data counts", "id: 7\n\ndata: 1\n\n", []string{"|1|7|0"}},
	{"retry", "retry: 250\ndata: 1\n\nretry: 1e3\nretry:-1\nretry: 9999999999\ndata: 2\n\n", []string{"|1||250", "|2||250"}},
	{"comments", ": connected\n\n:\ndata: 1\n: between\ndata: 2\n\n", []string{"|1\n2||0"}},
	{"unknown fields", "foo: bar\nData: no\n data: no\ndata: 1\n\n", []string{"|1||0"}},
	{"a colon in the value", "data: a: b\n\n", []string{"|a: b||0"}},
	{"CRLF", "event: e\r\ndata: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{"e|a\nb||0", "|c||0"}},
	{"CR", "event: e\rdata: a\rdata: b\r\rdata: c\r\r", []string{"e|a\nb||0", "|c||0"}},
	{"mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\r", []string{"|a||0", "|b||0", "|c||0", "|d||0"}},
	{"a byte order mark, once", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a||0"}},
	{"what is cut off is dropped", "data: a\n\ndata: b\n", []string{"|a||0"}},
	{"cut off in a line", "data: a\n\ndata: b", []string{"|a||0"}},
	{"not ASCII", "data: grüß 👋\n\n", []string{"|grüß 👋||0"}},
	{"not UTF-8 either", "data: \xff\xfe\n\n", []string{"|\xff\xfe||0"}},
}

func TestEventsUnderEverySplit(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			if got := read(strings.NewReader(c.text)); !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range len(c.text) + 1 {
				if got := read(io.MultiReader(strings.NewReader(c.text[:i]), strings.NewReader(c.text[i:]))); !slices.Equal(got, c.want) {
					t.Errorf("cut at %d: got %q, want %q", i, got, c.want)
				}
			}
			for name, r := range map[string]io.Reader{
				"one byte at a time":     iotest.OneByteReader(strings.NewReader(c.text)),
				"data and error at once": iotest.DataErrReader(strings.NewReader(c.text)),
			} {
				if got := read(r); !slices.Equal(got, c.want) {
					t.Errorf("%s: got %q, want %q", name, got, c.want)
				}
			}
		})
	}
}

// A lone carriage return ends an event at once: whoever waits for the next byte would hold the event back.
func TestAnEventIsHandedOverWhenItsLastByteIsThere(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		stalled := errors.New("nothing more to read")
		r := io.MultiReader(strings.NewReader("data: now"+end), iotest.ErrReader(stalled))
		if got := read(r); len(got) != 2 || got[0] != "|now||0" {
			t.Errorf("%q: got %q", end, got)
		}
	}
}

func TestAnErrorOfTheReaderIsTheLastThing(t *testing.T) {
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	want := []string{"|a||0", "error: unexpected EOF"}
	if got := read(r); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := read(idle{}); len(got) != 1 || !strings.Contains(got[0], io.ErrNoProgress.Error()) {
		t.Errorf("a reader that never reads: got %q", got)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestLinesAndEventsAreBounded(t *testing.T) {
	whole := "data:" + strings.Repeat("x", maxLine-5)
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"the longest line":          {whole + "\n\n", nil},
		"a byte more":               {whole + "x\n\n", ErrLongLine},
		"a comment is a line":       {":" + strings.Repeat("x", maxLine) + "\n\n", ErrLongLine},
		"the longest event":         {strings.Repeat(whole+"\n", 4) + "\n", nil},
		"more than the longest one": {strings.Repeat(whole+"\n", 4) + "data:" + strings.Repeat("x", 20) + "\n\n", ErrLongEvent},
	} {
		var got error
		for _, err := range Events(strings.NewReader(c.text)) {
			got = err
		}
		if !errors.Is(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// endless is a server that never ends a line. It counts what was taken from it.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.sent += len(p)
	return len(p), nil
}

func TestAServerThatNeverEndsALine(t *testing.T) {
	server := &endless{}
	if got := read(server); len(got) != 1 || got[0] != "error: "+ErrLongLine.Error() {
		t.Errorf("got %q", got)
	}
	if server.sent > 2*maxLine {
		t.Errorf("%d bytes were read", server.sent)
	}
	server = &endless{}
	for line, err := range Lines(server) {
		if !errors.Is(err, ErrLongLine) {
			t.Errorf("a line of %d bytes, %v", len(line), err)
		}
	}
	if server.sent > 2*maxLine {
		t.Errorf("%d bytes were read", server.sent)
	}
}

func TestLeavingTheLoopReadsNoMore(t *testing.T) {
	r := iotest.OneByteReader(strings.NewReader("data: a\n\ndata: b\n\n"))
	for range Events(r) {
		break
	}
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "data: b\n\n" {
		t.Errorf("%q is left, %v", rest, err)
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"{}\n":                          {"{}"},
		"{}\r\n[1]\n\n \n\"a\rb\" \n{}": {"{}", "[1]", "\"a\rb\"", "{}"},
	} {
		for i := range len(text) + 1 {
			var got []string
			for line, err := range Lines(io.MultiReader(strings.NewReader(text[:i]), strings.NewReader(text[i:]))) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(line))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q cut at %d: got %q, want %q", text, i, got, want)
			}
		}
	}
	var failed error
	for _, err := range Lines(io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(io.ErrUnexpectedEOF))) {
		failed = err
	}
	if !errors.Is(failed, io.ErrUnexpectedEOF) {
		t.Errorf("a broken reader: %v", failed)
	}
}

// naive reads an event stream the long way, from the whole of it: what Events has to agree with.
func naive(text string) []string {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var all, data []string
	var name, id string
	retry := 0
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data != nil {
				all = append(all, fmt.Sprintf("%s|%s|%s|%d", name, strings.Join(data, "\n"), id, retry))
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if ms, ok := digits([]byte(value)); ok {
				retry = ms
			}
		}
	}
	return all
}

func FuzzEvents(f *testing.F) {
	for _, c := range streams {
		f.Add([]byte(c.text), uint64(len(c.text)))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		if len(text) > 1<<16 {
			return
		}
		want := naive(string(text))
		if got := read(bytes.NewReader(text)); !slices.Equal(got, want) {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
		if got := read(&pieces{text: text, rng: rand.New(rand.NewPCG(seed, 1))}); !slices.Equal(got, want) {
			t.Fatalf("%q in pieces: got %q, want %q", text, got, want)
		}
	})
}

// pieces reads a text in pieces of random length.
type pieces struct {
	text []byte
	rng  *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(len(p.text), 1+p.rng.IntN(9))])
	p.text = p.text[n:]
	return n, nil
}

func TestRetryIsInMilliseconds(t *testing.T) {
	for e, err := range Events(strings.NewReader("retry: 1500\ndata: x\n\n")) {
		if err != nil || e.Retry != 1500*time.Millisecond {
			t.Errorf("%v, %v", e.Retry, err)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	one := []byte(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" Hello"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	left := b.N
	r := reader(func(p []byte) (int, error) { // one event a read, as they come from the network
		if left == 0 {
			return 0, io.EOF
		}
		left--
		return copy(p, one), nil
	})
	n := 0
	for _, err := range Events(r) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != b.N {
		b.Fatalf("%d events, want %d", n, b.N)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
