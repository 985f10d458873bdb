package speech

import (
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write testdata/sentences.txt again, for a person to read")

// The corpus has a block for each answer: its text after "> ", quoted where it has more than one line, and below it a line for each sentence: what it
// speaks, an arrow, how it is said. White space at the edges of what it speaks is not shown; nor are sentences with nothing to say.
const corpus = "testdata/sentences.txt"

// render is a block of the corpus.
func render(input string) string {
	var b strings.Builder
	if strings.ContainsAny(input, "\n\t") || strings.TrimSpace(input) != input {
		fmt.Fprintf(&b, "> %q\n", input)
	} else {
		fmt.Fprintf(&b, "> %s\n", input)
	}
	for _, s := range sentences(input) {
		if s.Spoken != "" {
			fmt.Fprintf(&b, "%s → %s\n", strings.Join(strings.Fields(s.Text), " "), s.Spoken)
		}
	}
	return b.String()
}

func sentences(deltas ...string) []Sentence {
	var s Sentences
	var all []Sentence
	for _, d := range deltas {
		all = append(all, s.Add(d)...)
	}
	return append(all, s.Flush()...)
}

// inputs reads the answers of the corpus.
func inputs(t testing.TB) (all []string, blocks []string) {
	t.Helper()
	file, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(strings.TrimSpace(string(file)), "\n\n") {
		line, _, _ := strings.Cut(block, "\n")
		text, is := strings.CutPrefix(line, "> ")
		if !is {
			t.Fatalf("%q is no answer", line)
		}
		if strings.HasPrefix(text, `"`) && strings.HasSuffix(text, `"`) && strings.Contains(text, `\`) {
			if _, err := fmt.Sscanf(text, "%q", &text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		all, blocks = append(all, text), append(blocks, block+"\n")
	}
	return all, blocks
}

func TestSentencesOfTheCorpus(t *testing.T) {
	texts, blocks := inputs(t)
	if len(texts) < 250 {
		t.Errorf("%d answers", len(texts))
	}
	var file []string
	for i, text := range texts {
		got := render(text)
		file = append(file, got)
		if got != blocks[i] && !*update {
			t.Errorf("got\n%s\nwant\n%s", got, blocks[i])
		}
	}
	if *update {
		if err := os.WriteFile(corpus, []byte(strings.Join(file, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// check holds what is true of every answer, and returns what is wrong.
func check(text string, all []Sentence) error {
	at, code := 0, 0
	for _, s := range all {
		switch {
		case s.Start != at || s.End <= s.Start || s.End > len(text) || text[s.Start:s.End] != s.Text:
			return fmt.Errorf("%+v does not follow %d of %q", s, at, text)
		case utf8.ValidString(text) && !utf8.ValidString(s.Text):
			return fmt.Errorf("a character is cut in two: %q", s.Text)
		case len(s.Text) > LongestSentence:
			return fmt.Errorf("%d bytes: %q", len(s.Text), s.Text)
		case strings.ContainsFunc(s.Spoken, unicode.IsControl):
			return fmt.Errorf("a control character is spoken: %q", s.Spoken)
		case strings.TrimSpace(s.Spoken) != s.Spoken || strings.Contains(s.Spoken, "  "):
			return fmt.Errorf("white space is spoken: %q", s.Spoken)
		case s.Spoken != "" && !hasWord([]byte(s.Spoken)):
			return fmt.Errorf("no word is spoken: %q", s.Spoken)
		}
		for _, mark := range []string{"*", "`", "#", "|", "[", "]", "~", "_", "://", "<", ">", "\"", "\\", "{", "}", "\uFFFD"} {
			if strings.Contains(s.Spoken, mark) {
				return fmt.Errorf("%q is spoken: %q, of %q", mark, s.Spoken, s.Text)
			}
		}
		at = s.End
		if s.Spoken == CodeOnScreen && s.Text != CodeOnScreen {
			code++
		}
	}
	if at != len(text) {
		return fmt.Errorf("%d of %d bytes of %q are in sentences", at, len(text), text)
	}
	return nil
}

// pieces cuts a text anywhere, also within a character.
func pieces(random *rand.Rand, text string) []string {
	var all []string
	for text != "" {
		n := 1 + random.IntN(min(len(text), 1+random.IntN(40)))
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

func TestSentencesAreTheSameHoweverTheAnswerArrives(t *testing.T) {
	texts, _ := inputs(t)
	whole := strings.Join(texts, "\n\n") + strings.Join(texts, " ")
	edges := []string{ // of what is looked at where a sentence is too long
		"Yes. " + strings.Repeat("a ", 147) + "ab5, 6", "a" + strings.Repeat("é", 300), "```\na" + strings.Repeat("é", 300), "https://x/" + strings.Repeat("é", 500),
	}
	for i := range 6 {
		edges = append(edges, "Yes. "+strings.Repeat("a ", 147)+strings.Repeat("b", i)+"5, 6 are a date")
	}
	for _, text := range edges {
		want := sentences(text)
		if err := check(text, want); err != nil {
			t.Error(err)
		}
		if got := sentences(slices.Collect(bytewise(text))...); !slices.Equal(got, want) {
			t.Errorf("%q\n byte by byte %+v\n whole %+v", text, got, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, text := range append(texts, whole) {
		want := sentences(text)
		if err := check(text, want); err != nil {
			t.Error(err)
		}
		for range 1 + 5*(len(texts)-i)/len(texts) {
			cut := pieces(random, text)
			if got := sentences(cut...); !slices.Equal(got, want) {
				t.Fatalf("%q\n in pieces %+v\n     whole %+v", cut, got, want)
			}
		}
	}
}

func bytewise(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(text) {
			if !yield(text[i : i+1]) {
				return
			}
		}
	}
}

func FuzzSentences(f *testing.F) {
	texts, _ := inputs(f)
	for i, text := range texts {
		f.Add(text, uint64(i))
	}
	f.Add(strings.Repeat("a", 500)+"é", uint64(3))
	f.Add("```\n"+strings.Repeat("é", 400)+"\n```\nDone.", uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		want := sentences(text)
		if err := check(text, want); err != nil {
			t.Error(err)
		}
		cut := pieces(rand.New(rand.NewPCG(seed, 1)), text)
		if got := sentences(cut...); !slices.Equal(got, want) {
			t.Errorf("%q\n in pieces %+v\n     whole %+v", cut, got, want)
		}
	})
}

func TestSentencesComeAsSoonAsTheyAreCertain(t *testing.T) {
	for _, c := range []struct {
		deltas []string
		want   []int // how many sentences each of them completes
	}{
		{[]string{"Hello", " there.", " ", "How"}, []int{0, 0, 1, 0}},
		{[]string{"Really?", "\n", "Yes", "! "}, []int{0, 1, 0, 1}},
		{[]string{"In the U.S.", " The", " army"}, []int{0, 0, 1}},
		{[]string{"It is 3", ".", "1", "4. ", "x"}, []int{0, 0, 0, 1, 0}},
		{[]string{"He said \"No.\"", " ", "T"}, []int{0, 0, 1}},
		{[]string{"- one\n", "-", " two\n\n"}, []int{0, 0, 2}},
		{[]string{"# Title\n", "Text"}, []int{1, 0}},
		{[]string{"This first sentence has more than forty bytes,", " ", "and goes on"}, []int{0, 1, 0}},
		{[]string{"Yes. ", "This second sentence has more than forty bytes,", " and goes on"}, []int{1, 0, 0}},
		{[]string{"```\n", "code\n", "```\n", "Done. "}, []int{1, 1, 1, 1}},
	} {
		var s Sentences
		var got []int
		for _, d := range c.deltas {
			got = append(got, len(s.Add(d)))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.deltas, got, c.want)
		}
	}
}

// An answer that pauses anywhere is spoken so far, and is the same answer byte for byte.
func TestSentencesPause(t *testing.T) {
	var s Sentences
	got := append(s.Add("Let me see."), s.Pause()...)
	if len(got) != 1 || got[0].Spoken != "Let me see." || len(s.Pause()) != 0 {
		t.Errorf("a pause brings %+v", got)
	}
	if more := append(s.Add(" Here"), s.Flush()...); len(more) != 1 || more[0].Start != len("Let me see.") || more[0].Text != " Here" {
		t.Errorf("after it comes %+v", more)
	}
	texts, _ := inputs(t)
	random := rand.New(rand.NewPCG(3, 4))
	for _, text := range texts {
		var all []Sentence
		for _, piece := range pieces(random, text) {
			all = append(all, s.Add(piece)...)
			if random.IntN(3) == 0 {
				all = append(all, s.Pause()...)
			}
		}
		at := 0
		for _, one := range append(all, s.Flush()...) {
			if one.Start != at || one.Text != text[one.Start:one.End] {
				t.Fatalf("%q: %+v follows %d", text, one, at)
			}
			at = one.End
		}
		if at != len(text) {
			t.Errorf("%q: %d of %d bytes", text, at, len(text))
		}
	}
}

func TestSentencesBeginAnew(t *testing.T) {
	var s Sentences
	for range 2 {
		all := append(s.Add("Hi.\n```\nx\n"), s.Flush()...)
		if err := check("Hi.\n```\nx\n", all); err != nil || len(all) != 3 || all[1].Spoken != CodeOnScreen {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

// TestSentencesKeepLittle holds memory to what is not certain yet, whatever comes.
func TestSentencesKeepLittle(t *testing.T) {
	for name, text := range map[string]string{
		"one word": strings.Repeat("x", 5000), "words": strings.Repeat("word ", 1000), "white space": strings.Repeat(" \n", 2500),
		"marks": strings.Repeat("`", 5000), "brackets": strings.Repeat("(", 5000), "dots": strings.Repeat(". ", 2500), "code": "```\n" + strings.Repeat("x", 5000),
		"fences": strings.Repeat("```\n", 1000), "an address": "https://" + strings.Repeat("x/", 2500), "no text": strings.Repeat("\xF0\x9F", 2500),
	} {
		var s Sentences
		for i := range len(text) {
			s.Add(text[i : i+1])
			if len(s.rest) > 2*LongestSentence {
				t.Fatalf("%s: %d bytes are kept", name, len(s.rest))
			}
		}
	}
}

func TestSpoken(t *testing.T) {
	if got := Spoken(English, "# Hi\n\nIt costs $5. See `x.y`.\n\n```\ncode\n```\n"); got != "Hi It costs five dollars. See x dot y. "+CodeOnScreen {
		t.Error(got)
	}
}

func BenchmarkSentences(b *testing.B) {
	texts, _ := inputs(b)
	text := strings.Join(texts, "\n\n")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		sentences(text)
	}
}

func BenchmarkSentencesByTheByte(b *testing.B) {
	texts, _ := inputs(b)
	text := strings.Join(texts, "\n\n")
	deltas := strings.Split(text, "")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		sentences(deltas...)
	}
}
