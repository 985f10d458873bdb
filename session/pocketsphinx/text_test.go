package pocketsphinx

import "testing"

func TestPlain(t *testing.T) {
	for hypothesis, want := range map[string]string{
		"":                                     "",
		"open the door":                        "open the door",
		"<s> read(2) the news </s>":            "read the news",
		"<sil> [NOISE] go ++SPN++ [SPEECH] on": "go on",
		"  two   spaces ":                      "two spaces",
		"<s> </s>":                             "",
		"the(12) (3) cat":                      "the cat",
	} {
		if got := plain(hypothesis); got != want {
			t.Errorf("plain(%q) = %q, want %q", hypothesis, got, want)
		}
	}
}
