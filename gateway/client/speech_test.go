package client_test

import (
	"bytes"
	"strings"
	"testing"

	"vela/gateway/client"
	"vela/session/speech"
)

func TestReadSpeech(t *testing.T) {
	for name, c := range map[string]struct {
		rate, samples, want int
		says                string
	}{
		"at the rate already": {16000, 1600, 1600, ""},
		"resampled":           {48000, 4800, 1600, ""},
		"too long":            {8000, 8000*600 + 8000, 0, "10m1s of audio is more than a turn takes: cut it to 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			if err := speech.WriteWAV(&file, c.rate, make([]int16, c.samples)); err != nil {
				t.Fatal(err)
			}
			got, err := client.ReadSpeech(&file)
			if len(got) != c.want || (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
				t.Errorf("%d samples and the error %v, want %d and %q", len(got), err, c.want, c.says)
			}
		})
	}
	if _, err := client.ReadSpeech(strings.NewReader("hello")); err == nil {
		t.Error("text is read as sound")
	}
}
