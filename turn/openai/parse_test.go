package openai

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

// told writes down what a stream means, a line a signal. Ids that were made up are numbered.
func told(r io.Reader) string { return write(Parse("agent", stream.Events(r))) }

func write(payloads iter.Seq2[signal.Payload, error]) string {
	var b strings.Builder
	made := map[string]string{}
	for p, err := range payloads {
		switch p := p.(type) {
		case nil:
			fmt.Fprintf(&b, "error: %s | %v\n", err, errors.Unwrap(err))
		case signal.ToolCall:
			if len(p.CallID) == len("call_")+32 {
				if made[p.CallID] == "" {
					made[p.CallID] = fmt.Sprintf("made-%d", len(made)+1)
				}
				p.CallID = made[p.CallID]
			}
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

// wholeAt is where the event ends that makes a recorded answer whole.
func wholeAt(text string) int {
	reason := strings.Index(text, `"finish_reason":"`)
	if done := strings.Index(text, "data: [DONE]"); reason < 0 || done >= 0 && done < reason {
		reason = done
	}
	if end := strings.Index(text[reason:], "\r\n\r\n"); end >= 0 {
		return reason + end + 3 // the carriage return of the empty line ends it
	}
	return reason + strings.Index(text[reason:], "\n\n") + 2
}

func TestATruncatedStreamIsNeverAnAnswer(t *testing.T) {
	for name, text := range recordings(t) {
		whole := told(bytes.NewReader(text))
		if strings.Contains(whole, "error: ") {
			continue
		}
		words := func(s string) string {
			i := strings.Index(s, "token_usage")
			if i < 0 {
				return s
			}
			return s[:i]
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			end := wholeAt(string(text))
			for i := range text {
				got := told(bytes.NewReader(text[:i]))
				lines := strings.Split(strings.TrimSpace(got), "\n")
				failed := strings.HasPrefix(lines[len(lines)-1], "error: The model's answer broke off.")
				switch {
				case i < end && !failed:
					t.Fatalf("cut off at %d of %d: got\n%s", i, end, got)
				case i < end && strings.Contains(got, "tool_call"):
					t.Fatalf("cut off at %d of %d, and there are calls:\n%s", i, end, got)
				case i >= end && words(got) != words(whole):
					t.Fatalf("cut off at %d, behind %d: got\n%s", i, end, got)
				}
			}
		})
	}
}

// What goes wrong upstream once there is a finish_reason costs the usage and nothing else; before, it costs the answer.
func TestAStreamThatBreaksOff(t *testing.T) {
	cut := stream.Failed("cut", io.ErrUnexpectedEOF)
	finish := `{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`
	going := `{"choices":[{"index":0,"delta":{"content":"x"}}]}`
	for name, c := range map[string]struct {
		data string
		err  error
		want error
	}{
		"before the reason":                  {going, cut, cut},
		"after the reason":                   {finish, cut, nil},
		"after the reason, but by ourselves": {finish, errHungUp, errHungUp},
	} {
		events := func(yield func(stream.Event, error) bool) {
			if yield(stream.Event{Data: []byte(c.data)}, nil) {
				yield(stream.Event{}, c.err)
			}
		}
		var got error
		for _, err := range Parse("agent", events) {
			got = err
		}
		if got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

var errHungUp = errors.New("hung up")

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
	text := `data: {"model":"llama","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}` + "\n\n"
	for p, err := range Parse("", stream.Events(strings.NewReader(text))) {
		switch p := p.(type) {
		case signal.TextDelta:
			if p.AgentID != "llama" {
				t.Errorf("%+v", p)
			}
		case signal.TokenUsage:
			if p.AgentID != "llama" || p.Model != "llama" {
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

func TestCallsAreBounded(t *testing.T) {
	many, long := &strings.Builder{}, &strings.Builder{}
	for i := range maxCalls + 1 {
		fmt.Fprintf(many, `data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f"}}]}}]}`+"\n\n", i, i)
	}
	for range 5 {
		fmt.Fprintf(long, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":%q}}]}}]}`+"\n\n", strings.Repeat("x", 1000<<10))
	}
	for want, text := range map[string]string{"too many tools": many.String(), "too long": long.String()} {
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
		"a key of the same name elsewhere": piece(`{"content":"zz","choices":[{"delta":{"content":"probe"}}]}`) + piece(`{"content":"yy","choices":[{"delta":{"content":"probe"}}]}`),
		"the same key twice":               piece(`{"choices":[{"delta":{"content":"a","content":"probe"}}]}`) + piece(`{"choices":[{"delta":{"content":"b","content":"probe"}}]}`),
		"another spelling behind it":       piece(`{"choices":[{"delta":{"content":"a","Content":"probe"}}]}`) + piece(`{"choices":[{"delta":{"content":"b","Content":"probe"}}]}`),
		"the other choice first":           piece(`{"choices":[{"index":1,"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`) + piece(`{"choices":[{"index":1,"delta":{"content":"c"}},{"delta":{"content":"b"}}]}`),
		"an escape":                        piece(`{"choices":[{"delta":{"content":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":"\u0041\"}}]}"}}]}`),
		"a quote ends it":                  piece(`{"choices":[{"delta":{"content":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}`),
		"not UTF-8":                        piece(`{"choices":[{"delta":{"content":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":"`+"\xff"+`"}}]}`),
		"a control character":              piece(`{"choices":[{"delta":{"content":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":"`+"\x01"+`"}}]}`),
		"an event that is an error":        piece(`{"choices":[{"delta":{"content":"a"}}]}`) + "event: error\n" + piece(`{"choices":[{"delta":{"content":"b"}}]}`),
		"a call in every piece":            piece(`{"choices":[{"delta":{"content":"a","tool_calls":[{"id":"c","function":{"name":"f","arguments":"["}}]}}]}`) + piece(`{"choices":[{"delta":{"content":"b","tool_calls":[{"id":"c","function":{"name":"f","arguments":"["}}]}}]}`),
		"usage in every piece":             piece(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}`) + piece(`{"usage":{"prompt_tokens":2}}`) + piece(`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":1}}`),
		"a model in between":               piece(`{"model":"a","choices":[{"delta":{"content":"a"}}]}`) + piece(`{"model":"b"}`) + piece(`{"model":"a","choices":[{"delta":{"content":"b"}}]}`) + piece(`{"usage":{"prompt_tokens":2}}`),
		"a reason in every piece":          piece(`{"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}`) + piece(`{"choices":[{"delta":{"content":"b"},"finish_reason":"length"}]}`),
		"empty, then full":                 piece(`{"choices":[{"delta":{"content":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":""}}]}`) + piece(`{"choices":[{"delta":{"content":"b"}}]}`),
		"spaces where nobody expects them": piece(`{ "choices" : [ { "delta" : { "content" : "a" } } ] }`) + piece(`{ "choices" : [ { "delta" : { "content" : "b" } } ] }`),
		"too many braces":                  piece(`{"choices":[{"delta":{"content":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":"b"}}]}}`),
		"thought and text by turns":        piece(`{"choices":[{"delta":{"content":"","reasoning":"a"}}]}`) + piece(`{"choices":[{"delta":{"content":"b","reasoning":""}}]}`) + piece(`{"choices":[{"delta":{"content":"","reasoning":"c"}}]}`),
		"another model":                    piece(`{"model":"a","choices":[{"delta":{"content":"a"}}]}`) + piece(`{"model":"b","choices":[{"delta":{"content":"a"}}]}`) + piece(`{"usage":{"prompt_tokens":1}}`),
	} {
		text += "data: [DONE]\n\n"
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
		"alike":        `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" Hello"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"xYz81"}`,
		"with escapes": `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" \n"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"xYz81"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			event := stream.Event{Data: []byte(piece)}
			events := func(yield func(stream.Event, error) bool) {
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
