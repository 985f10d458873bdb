package client

import (
	"fmt"
	"io"
	"time"

	"vela/session/speech"
)

// longest is how much audio one file may hold: what a gateway takes in one turn.
const longest = 10 * time.Minute

// ReadSpeech reads a WAV file of any rate and number of channels into what [Client.Say] takes: mono at [speech.Rate].
// More than 10 minutes is an error, as is what [speech.ReadWAV] and [speech.Resample] refuse.
func ReadSpeech(r io.Reader) ([]int16, error) {
	wav, err := speech.ReadWAV(r, speech.Count(longest+time.Second, speech.MaxRate))
	if err != nil {
		return nil, err
	}
	if wav.Duration() > longest {
		return nil, fmt.Errorf("%v of audio is more than a turn takes: cut it to %v", wav.Duration().Round(time.Second), longest)
	}
	return speech.Resample(wav.Samples, wav.Rate, speech.Rate)
}
