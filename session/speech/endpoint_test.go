package speech

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// endpoints feeds frames, one a letter: s is speech, u what may be, - what is none. It returns what came, as "frame event".
func endpoints(e *Endpointer, frames string) (got []string) {
	for i, f := range frames {
		switch e.Add(map[rune]float32{'s': 0.5, 'S': 1, 'u': 0.49, 'l': 0.35, '-': 0.34, '_': 0}[f]) {
		case Begins:
			got = append(got, fmt.Sprintf("%d begins %d", i+1, e.Since()/FrameSamples))
		case Ends:
			got = append(got, fmt.Sprintf("%d ends %d", i+1, Count(e.Quiet(), Rate)/FrameSamples))
		}
	}
	return got
}

func TestEndpointer(t *testing.T) {
	frames := func(n int) time.Duration { return Duration(n*FrameSamples, Rate) }
	for _, c := range []struct {
		name, frames string
		want         []string // by frames of 32 ms: 4 of speech begin it, 5 of silence end it
	}{
		{"silence", strings.Repeat("_", 100), nil},
		{"speech", "--ssss--------", []string{"6 begins 4", "11 ends 5"}},
		{"not quite enough", "sss-----sss-----", nil},
		{"at the threshold, and no lower", "uuuuuuuuuuuu", nil},
		{"a dip within the suspicion", "ss-ss-----", []string{"5 begins 5", "10 ends 5"}},
		{"a dip that is too long", "ss---ss-----", nil},
		{"what is unclear begins nothing", "ssuuusu", nil},
		{"and does not end the suspicion", "ssuuss", []string{"6 begins 6"}},
		{"unless it lasts", "suuuuuuuuuusss", nil},
		{"clicks", "s--s--s--s--s--s--s--s--s--s--s--s--s--s--", nil},
		{"a pause that is too short", "ssss----ssss----s-----", []string{"4 begins 4", "22 ends 5"}},
		{"what is unclear goes on where it was: in speech", "sssslllllllllluuuuuu-----", []string{"4 begins 4", "25 ends 5"}},
		{"and in a pause", "ssss--lll-----", []string{"4 begins 4", "9 ends 5"}},
		{"one after the other", "ssss-----ssss-----", []string{"4 begins 4", "9 ends 5", "13 begins 4", "18 ends 5"}},
		{"without an end", strings.Repeat("S", 1000), []string{"4 begins 4"}},
	} {
		e := NewEndpointer(0.5, frames(4), frames(5))
		if got := endpoints(e, c.frames); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s is %q, want %q", c.name, c.frames, got, c.want)
		}
	}
}

// Times count in whole frames, never less than what was asked for.
func TestEndpointerCountsTime(t *testing.T) {
	for _, c := range []struct {
		speech, silence time.Duration
		begins, ends    int
	}{
		{200 * time.Millisecond, 600 * time.Millisecond, 7, 19},
		{32 * time.Millisecond, 32 * time.Millisecond, 1, 1},
		{33 * time.Millisecond, 33 * time.Millisecond, 2, 2},
		{0, 0, 1, 1},
	} {
		e := NewEndpointer(0.5, c.speech, c.silence)
		got := endpoints(e, strings.Repeat("S", 20)+strings.Repeat("_", 40))
		want := []string{fmt.Sprintf("%d begins %d", c.begins, c.begins), fmt.Sprintf("%d ends %d", 20+c.ends, c.ends)}
		if !slices.Equal(got, want) {
			t.Errorf("%v and %v: %q, want %q", c.speech, c.silence, got, want)
		}
	}
}

func TestEndpointerKnowsItsSpeech(t *testing.T) {
	e := NewEndpointer(0.5, 100*time.Millisecond, 500*time.Millisecond)
	endpoints(e, "__SSSS__SSuu__")
	if e.Voiced() != Duration(6*FrameSamples, Rate) || e.Quiet() != Duration(2*FrameSamples, Rate) || e.Since() != 12*FrameSamples || !e.Speaking() {
		t.Errorf("voiced %v, quiet %v, since %d, speaking %t", e.Voiced(), e.Quiet(), e.Since(), e.Speaking())
	}
	if e.Reset(); e.Voiced() != 0 || e.Since() != 0 || e.Speaking() {
		t.Error("it remembers")
	}
	if got := endpoints(e, "SSSS"); len(got) != 1 {
		t.Errorf("after that speech is %q", got)
	}
}

func TestWordless(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " \n": true, "uh": true, "Um, uh...": true, "HM?": true, "uh-huh": true, "- !": true,
		"no": false, "uh no": false, "Hum": false, "yes.": false, "7": false, "それ": false, "mm-hmm ok": false,
	} {
		if got := Wordless(text); got != want {
			t.Errorf("%q is wordless: %t", text, got)
		}
	}
	for text, want := range map[string]bool{
		"": true, "uh": true, "The": true, "oh, uh the": true, "no": false, "the harbour": false, "stop": false,
	} {
		if got := Faint(text); got != want {
			t.Errorf("%q is faint: %t", text, got)
		}
	}
}
