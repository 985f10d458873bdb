package anthropic

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn/stream"
)

var update = flag.Bool("update", false, "write the golden files anew; read them before they are kept")

// Each recorded stream is testdata/*.sse, written by hand after the published formats; what it means is the .golden
// beside it.
func recordings(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(f, ".sse")] = text
	}
	return all
}

// told writes down what a stream means, a line a signal.
func told(r io.Reader) string { return write(Parse("agent", stream.Events(r))) }

func write(payloads iter.Seq2[signal.Payload, error]) string {
	var b strings.Builder
	for p, err := range payloads {
		switch p := p.(type) {
		case nil:
			fmt.Fprintf(&b, "error: %s | %v\n", err, errors.Unwrap(err))
		case signal.ToolCall:
			fmt.Fprintf(&b, "%s: %s %s %s %s\n", p.SignalType(), p.AgentID, p.CallID, p.ToolName, p.Input)
		case signal.Other:
			fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Body)
		default:
			fmt.Fprintf(&b, "%s: %+q\n", p.SignalType(), fmt.Sprintf("%+v", p))
		}
	}
	return b.String()
}

func TestRecordedStreams(t *testing.T) {
	for name, text := range recordings(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := told(bytes.NewReader(text))
			if *update {
				if err := os.WriteFile(name+".golden", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
			for i := range len(text) + 1 {
				if got := told(io.MultiReader(bytes.NewReader(text[:i]), bytes.NewReader(text[i:]))); got != string(want) {
					t.Fatalf("cut in two at %d: got\n%s", i, got)
				}
			}
			if got := told(iotest.OneByteReader(bytes.NewReader(text))); got != string(want) {
				t.Errorf("one byte at a time: got\n%s", got)
			}
			for seed := range uint64(50) {
				if got := told(&pieces{text: text, rng: rand.New(rand.NewPCG(seed, 2))}); got != string(want) {
					t.Errorf("pieces of seed %d: got\n%s", seed, got)
				}
			}
		})
	}
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
	n := copy(b, p.text[:min(len(p.text), 1+p.rng.IntN(200))])
	p.text = p.text[n:]
	return n, nil
}

func TestATruncatedStreamIsNeverAnAnswer(t *testing.T) {
	for name, text := range recordings(t) {
		if strings.Contains(told(bytes.NewReader(text)), "error: ") {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			for i := range text { // the whole one ends with its last event
				got := told(bytes.NewReader(text[:i]))
				lines := strings.Split(strings.TrimSpace(got), "\n")
				if !strings.HasPrefix(lines[len(lines)-1], "error: The model's answer broke off.") || strings.Contains(got, "tool_call") {
					t.Fatalf("cut off at %d: got\n%s", i, got)
				}
			}
		})
	}
}

func TestErrorsOfTheEventsArePassedOn(t *testing.T) {
	gone := errors.New("hung up")
	var got error
	for _, err := range Parse("agent", func(yield func(stream.Event, error) bool) { yield(stream.Event{}, gone) }) {
		got = err
	}
	if got != gone {
		t.Errorf("got %v", got)
	}
}

func TestErrorsKnowTheirCode(t *testing.T) {
	for name, text := range recordings(t) {
		for _, err := range Parse("agent", stream.Events(bytes.NewReader(text))) {
			var known interface{ Code() protocol.Code }
			if err != nil && (!errors.As(err, &known) || known.Code() != protocol.CodeAgentFailed) {
				t.Errorf("%s: %v (%T)", name, err, err)
			}
		}
	}
}

func TestAnObserverHearsFromTheModel(t *testing.T) {
	for p, err := range Parse("", stream.Events(bytes.NewReader(recordings(t)["testdata/text"]))) {
		switch p := p.(type) {
		case signal.TextDelta:
			if p.AgentID != "claude-sonnet-4-5" {
				t.Errorf("%+v", p)
			}
		case signal.TokenUsage:
			if p.AgentID != "claude-sonnet-4-5" || p.Model != "claude-sonnet-4-5" {
				t.Errorf("%+v", p)
			}
		default:
			t.Errorf("%v, %v", p, err)
		}
	}
}

func TestLeavingTheLoop(t *testing.T) {
	for name, text := range recordings(t) {
		all := slices.Collect(firsts(Parse("agent", stream.Events(bytes.NewReader(text)))))
		for n := range all {
			left := 0
			for range Parse("agent", stream.Events(bytes.NewReader(text))) { // panics if it is called again
				if left++; left > n {
					break
				}
			}
		}
		if len(all) == 0 {
			t.Errorf("%s: nothing", name)
		}
	}
}

func firsts[A, B any](seq iter.Seq2[A, B]) iter.Seq[A] {
	return func(yield func(A) bool) {
		for a := range seq {
			if !yield(a) {
				return
			}
		}
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	many, long := &strings.Builder{}, &strings.Builder{}
	for i := range maxBlocks + 1 {
		fmt.Fprintf(many, `data: {"type":"content_block_start","index":%d,"content_block":{"type":"text"}}`+"\n\n", i)
	}
	long.WriteString(`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f"}}` + "\n\n")
	for range 5 {
		fmt.Fprintf(long, `data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`+"\n\n", strings.Repeat("x", 1000<<10))
	}
	for want, text := range map[string]string{"1,024 blocks": many.String(), "too long": long.String()} {
		if got := told(strings.NewReader(text)); !strings.Contains(got, want) {
			t.Errorf("got %.200s, want %s", got, want)
		}
	}
}

// plainly is the same reader without its short cut: what that has to agree with.
func plainly(r io.Reader) string {
	return write(func(yield func(signal.Payload, error) bool) {
		a := answer{agentID: "agent", fast: fast{vain: lessons}}
		a.read(stream.Events(r), yield)
	})
}

func TestTheShortCutChangesNothing(t *testing.T) {
	for name, text := range recordings(t) {
		if fast, slow := told(bytes.NewReader(text)), plainly(bytes.NewReader(text)); fast != slow {
			t.Errorf("%s: got\n%s\nwithout short cut\n%s", name, fast, slow)
		}
	}
}

// Pieces that look alike, and are not.
func TestTheShortCutIsNotFooled(t *testing.T) {
	piece := func(s string) string { return "data: " + s + "\n\n" }
	for name, text := range map[string]string{
		"a key of the same name elsewhere": piece(`{"type":"content_block_delta","text":"zz","delta":{"type":"text_delta","text":"probe"}}`) + piece(`{"type":"content_block_delta","text":"yy","delta":{"type":"text_delta","text":"probe"}}`),
		"the same key twice":               piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a","text":"probe"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"b","text":"probe"}}`),
		"another block":                    piece(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"a"}}`),
		"an escape":                        piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"\u0041\"}}"}}`),
		"a broken escape":                  piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"\x"}}`),
		"half an escape":                   piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"\"}}`),
		"spaces at the end":                piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}   } `),
		"too many braces":                  piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}}}`),
		"too few braces":                   piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}`),
		"more than braces":                 piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"b","type":"signature_delta"}}`),
		"empty":                            piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}`),
		"not UTF-8":                        piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"`+"\xff"+`"}}`),
		"a thought in between":             piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"b"}}`) + piece(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"c"}}`),
	} {
		text = piece(`{"type":"content_block_start","content_block":{"type":"text"}}`) + text + piece(`{"type":"message_stop"}`)
		if fast, slow := told(strings.NewReader(text)), plainly(strings.NewReader(text)); fast != slow {
			t.Errorf("%s: got\n%s\nwithout short cut\n%s", name, fast, slow)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range recordings(f) {
		f.Add(text, uint64(len(text)))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		if len(text) > 1<<16 {
			return
		}
		whole := told(bytes.NewReader(text))
		if slow := plainly(bytes.NewReader(text)); whole != slow {
			t.Fatalf("%q: got\n%s\nwithout short cut\n%s", text, whole, slow)
		}
		if cut := told(&pieces{text: text, rng: rand.New(rand.NewPCG(seed, 2))}); cut != whole {
			t.Fatalf("%q: got\n%s\nin pieces\n%s", text, whole, cut)
		}
	})
}

func BenchmarkDelta(b *testing.B) {
	for name, piece := range map[string]string{
		"alike":        `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" Hello"}      }`,
		"with escapes": `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" \n"}      }`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			event := stream.Event{Data: []byte(piece)}
			events := func(yield func(stream.Event, error) bool) {
				if !yield(stream.Event{Data: []byte(`{"type":"content_block_start","content_block":{"type":"text"}}`)}, nil) {
					return
				}
				for range b.N {
					if !yield(event, nil) {
						return
					}
				}
			}
			for range Parse("agent", events) {
			}
		})
	}
}
