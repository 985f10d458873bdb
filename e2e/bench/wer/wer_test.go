package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestWordErrors(t *testing.T) {
	for _, test := range []struct {
		said, heard string
		want        int
	}{
		{"what time is it", "What time is it?", 0},
		{"what time is it", "", 4},
		{"", "what", 1},
		{"", "", 0},
		{"what time is it", "what time was it", 1},
		{"what time is it", "what is it", 1},
		{"what time is it", "so what time is it", 1},
		{"what time is it", "is it what time", 4},
		{"the dog's here", "The dog’s – here!", 0},
		{"a b c d", "b c d e", 2},
		{"a b c", "x y z w", 4},
	} {
		if got := distance(words(test.said), words(test.heard)); got != test.want {
			t.Errorf("%q as %q: %d errors, want %d", test.said, test.heard, got, test.want)
		}
	}
}

// Noise is as loud as it says, beside speech of any loudness, and the same every time.
func TestNoise(t *testing.T) {
	speech := make([]int16, rate)
	for i := range speech {
		speech[i] = int16(3000 * math.Sin(float64(i)/10))
	}
	others := [][]int16{speech[:4000], speech[100:9000]}
	for name, noise := range map[string][]float64{"white": white(len(speech), 7), "babble": babble(len(speech), others)} {
		for _, db := range []float64{20, 10, 0} {
			mixed := mix(speech, noise, db)
			added := make([]float64, len(mixed))
			for i := range mixed {
				added[i] = float64(mixed[i]) - float64(speech[i])
			}
			if got := 10 * math.Log10(power(floats(speech))/power(added)); math.Abs(got-db) > 0.1 {
				t.Errorf("%s at %v dB has %.2f dB", name, db, got)
			}
		}
	}
	if !slices.Equal(white(100, 3), white(100, 3)) || slices.Equal(white(100, 3), white(100, 4)) {
		t.Error("noise depends on something else than its seed")
	}
}

func TestWAV(t *testing.T) {
	samples := []int16{0, 1, -1, math.MaxInt16, math.MinInt16}
	got, err := samplesOf(wav(samples))
	if err != nil || !slices.Equal(got, samples) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range [][]byte{nil, make([]byte, header), wav(nil)[:43]} {
		if got, err := samplesOf(bad); err == nil {
			t.Errorf("%d bytes are %v", len(bad), got)
		}
	}
}

func TestTheSentences(t *testing.T) {
	seen := map[string]bool{}
	for s := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if seen[s] || strings.Join(words(s), " ") != s {
			t.Errorf("%q is there twice, or not as a recogniser would write it", s)
		}
		seen[s] = true
	}
	if len(seen) < 40 {
		t.Errorf("there are %d sentences", len(seen))
	}
}

func TestTheTable(t *testing.T) {
	a, b := &tally{ear: "one"}, &tally{ear: "two"}
	for _, e := range []*tally{a, b} {
		e.count(result{Text: "what time", SpeechMs: 1000, TookMs: 250}, clip{0, "what time is it"})
	}
	b.count(result{Error: "gone", SpeechMs: 1000, TookMs: 250}, clip{0, "what time is it"})
	var out strings.Builder
	if err := table(&out, []*tally{a, b}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| spoken by flite | words | one | two |\n", "| slt | 4 | 50.0 % | 50.0 % |\n", "| rms | 0 | – | – |\n", "| 0.25 s | 0.25 s |\n", "two failed on 1 of 2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
