package speechserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"strings"

	"vela/session/speech"
)

// OpenAIVoice says how an OpenAI-compatible server is to speak. Model and Voice are what the server calls them.
type OpenAIVoice struct {
	Model string  // such as gpt-4o-mini-tts, or what a server of one's own has
	Voice string  // such as alloy
	Rate  int     // of the PCM that the server sends, in Hz; 0: 24,000, which is OpenAI's
	Speed float64 // 1 is the voice's own; 0 leaves it to the server
}

const openAIRate = 24000

// OpenAISynthesizer speaks with POST /audio/speech, as OpenAI's API reference describes it, and passes the sound on as it arrives: PCM is asked for, and a
// server that sends a WAV file all the same is understood, too.
type OpenAISynthesizer struct {
	client *client
	voice  OpenAIVoice
}

// NewOpenAISynthesizer returns a synthesizer, or says what is wrong with the configuration. It connects to nothing.
func NewOpenAISynthesizer(cfg Config, voice OpenAIVoice) (*OpenAISynthesizer, error) {
	if voice.Rate == 0 {
		voice.Rate = openAIRate
	}
	switch {
	case voice.Model == "" || voice.Voice == "":
		return nil, errors.New("speechserver: a model and a voice have to be named")
	case voice.Rate < speech.MinRate || voice.Rate > speech.MaxRate:
		return nil, fmt.Errorf("speechserver: a rate of %d Hz: they go from %d to %d", voice.Rate, speech.MinRate, speech.MaxRate)
	case voice.Speed < 0 || voice.Speed > 4:
		return nil, fmt.Errorf("speechserver: a speed of %g: it goes from 0.25 to 4", voice.Speed)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &OpenAISynthesizer{c, voice}, nil
}

// Close lets go of connections that are not in use.
func (s *OpenAISynthesizer) Close() { s.client.close() }

// Synthesize speaks one sentence, as it arrives. It yields from the goroutine that ranges over it; an error comes last: the cause of ctx, or an [*Error].
// Leaving the loop ends the request, as ctx does.
func (s *OpenAISynthesizer) Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error] {
	ask := struct {
		Model  string  `json:"model"`
		Input  string  `json:"input"`
		Voice  string  `json:"voice"`
		Format string  `json:"response_format"`
		Speed  float64 `json:"speed,omitempty"`
	}{s.voice.Model, s.client.cut(text), s.voice.Voice, "pcm", s.voice.Speed}
	return s.client.synthesize(ctx, "/audio/speech", ask, func(kind string, r *bufio.Reader) iter.Seq2[speech.Chunk, error] {
		if begins(r, "RI") && begins(r, "RIFF") { // two steps, since the first sample need not wait for the second
			return speech.StreamWAV(r, longestSound)
		}
		if !mayBePCM(kind) {
			return nil
		}
		return speech.StreamPCM(r, s.voice.Rate, longestSound)
	})
}

// PiperVoice says how a Piper server is to speak. Its zero value leaves all to the server.
type PiperVoice struct {
	Voice       string  // such as en_US-lessac-medium
	Speaker     *int    // of a voice that has several
	LengthScale float64 // above 1 is slower
}

// PiperSynthesizer speaks with POST /synthesize of Piper's own HTTP server, which answers with a WAV file and
// calls it HTML.
type PiperSynthesizer struct {
	client *client
	voice  PiperVoice
}

// NewPiperSynthesizer returns a synthesizer, or says what is wrong with the configuration. It connects to nothing.
func NewPiperSynthesizer(cfg Config, voice PiperVoice) (*PiperSynthesizer, error) {
	if voice.LengthScale < 0 || voice.LengthScale > 10 {
		return nil, fmt.Errorf("speechserver: a length scale of %g: it goes from 0.1 to 10", voice.LengthScale)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &PiperSynthesizer{c, voice}, nil
}

// Close lets go of connections that are not in use.
func (s *PiperSynthesizer) Close() { s.client.close() }

// Synthesize is as that of [OpenAISynthesizer].
func (s *PiperSynthesizer) Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error] {
	ask := struct {
		Text        string  `json:"text"`
		Voice       string  `json:"voice,omitempty"`
		Speaker     *int    `json:"speaker_id,omitempty"`
		LengthScale float64 `json:"length_scale,omitempty"`
	}{s.client.cut(text), s.voice.Voice, s.voice.Speaker, s.voice.LengthScale}
	return s.client.synthesize(ctx, "/synthesize", ask, func(_ string, r *bufio.Reader) iter.Seq2[speech.Chunk, error] {
		return speech.StreamWAV(r, longestSound)
	})
}

const (
	brokenOff = "The voice broke off."
	notSound  = "The speech server does not answer with sound."
)

var (
	errNotSound = errors.New("speechserver: the answer is no sound")
	errNoSound  = errors.New("speechserver: the answer is empty")
)

// decoder makes sound of an answer, given its media type; nil where it is none.
type decoder func(kind string, r *bufio.Reader) iter.Seq2[speech.Chunk, error]

// synthesize asks for sound and passes it on.
func (c *client) synthesize(ctx context.Context, path string, ask any, decode decoder) iter.Seq2[speech.Chunk, error] {
	return func(yield func(speech.Chunk, error) bool) {
		body, err := json.Marshal(ask)
		if err != nil {
			yield(speech.Chunk{}, failed("The text cannot be spoken.", err))
			return
		}
		left, heard := false, false
		err = c.post(ctx, path, "application/json", body, func(kind string, answer io.Reader) error {
			chunks := decode(kind, bufio.NewReader(answer))
			if chunks == nil {
				return failed(notSound, fmt.Errorf("%w: %s", errNotSound, c.hide(kind)))
			}
			for chunk, err := range chunks {
				if err != nil {
					return failed(brokenOff, err)
				}
				heard = true
				if left = !yield(chunk, nil); left {
					return nil
				}
			}
			if !heard {
				return failed(notSound, errNoSound)
			}
			return nil
		})
		if err != nil && !left {
			yield(speech.Chunk{}, err)
		}
	}
}

// begins waits for the beginning of an answer. An error comes again when it is read.
func begins(r *bufio.Reader, with string) bool {
	head, _ := r.Peek(len(with))
	return string(head) == with
}

// mayBePCM says whether an answer of that media type may be PCM. Servers are free with its name, so only what is certainly something else is refused.
func mayBePCM(kind string) bool {
	kind, _, _ = mime.ParseMediaType(kind)
	switch kind {
	case "audio/mpeg", "audio/mp3", "audio/ogg", "audio/opus", "audio/aac", "audio/flac", "application/json":
		return false
	}
	return !strings.HasPrefix(kind, "text/")
}
