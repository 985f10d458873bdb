package speechserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"strings"

	"vela/session/speech"
)

// Hints help a recogniser. All may be left out.
type Hints struct {
	Language string // such as en; empty: the server finds out
	Prompt   string // words and names that are likely to be said
}

// OpenAITranscriber recognises with POST /audio/transcriptions, as OpenAI's API reference describes it.
type OpenAITranscriber struct{ t transcriber }

// NewOpenAITranscriber returns a recogniser, or says what is wrong with the configuration. It connects to nothing.
func NewOpenAITranscriber(cfg Config, model string, hints Hints) (*OpenAITranscriber, error) {
	if model == "" {
		return nil, errors.New("speechserver: a model has to be named")
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &OpenAITranscriber{transcriber{c, "/audio/transcriptions", hints.fields("model", model)}}, nil
}

// Close lets go of connections that are not in use.
func (o *OpenAITranscriber) Close() { o.t.client.close() }

// Transcribe recognises one utterance: mono samples at [speech.Rate] in pieces of any length, read until audio ends, at most 10 minutes of them. Then they are
// sent, and what was said comes as the one transcript, a final one. Without any samples nothing is sent, and the transcript is empty.
//
// It yields from the goroutine that ranges over it; an error comes instead of the transcript: the cause of ctx, or an [*Error]. Leaving the loop ends
// the request, as ctx does.
func (o *OpenAITranscriber) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return o.t.transcribe(ctx, audio)
}

// WhisperTranscriber recognises with POST /inference of whisper.cpp's own server, which has its model already.
type WhisperTranscriber struct{ t transcriber }

// NewWhisperTranscriber returns a recogniser, or says what is wrong with the configuration. It connects to nothing.
func NewWhisperTranscriber(cfg Config, hints Hints) (*WhisperTranscriber, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &WhisperTranscriber{transcriber{c, "/inference", hints.fields()}}, nil
}

// Close lets go of connections that are not in use.
func (w *WhisperTranscriber) Close() { w.t.client.close() }

// Transcribe is as that of [OpenAITranscriber].
func (w *WhisperTranscriber) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return w.t.transcribe(ctx, audio)
}

// fields are those of a form, name and value, in turn, without the empty ones.
func (h Hints) fields(more ...string) []string {
	fields := append(more, "response_format", "json")
	if h.Language != "" {
		fields = append(fields, "language", h.Language)
	}
	if h.Prompt != "" {
		fields = append(fields, "prompt", h.Prompt)
	}
	return fields
}

// transcriber sends an utterance as a form and reads what was said from an object.
type transcriber struct {
	client *client
	path   string
	fields []string // of the form, name and value in turn; the audio follows
}

func (t transcriber) transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		text, err := t.recognise(ctx, audio)
		if err != nil {
			yield(speech.Transcript{}, err)
			return
		}
		yield(speech.Transcript{Text: text, Final: true}, nil)
	}
}

func (t transcriber) recognise(ctx context.Context, audio iter.Seq[[]int16]) (text string, err error) {
	samples, err := collect(audio)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil || len(samples) == 0:
		return "", err
	}
	body, contentType, err := t.form(samples)
	if err != nil {
		return "", failed("The speech cannot be sent.", err)
	}
	err = t.client.post(ctx, t.path, contentType, body, func(_ string, answer io.Reader) error {
		text, err = t.read(answer)
		return err
	})
	return text, err
}

// collect reads an utterance to its end.
func collect(audio iter.Seq[[]int16]) ([]int16, error) {
	var samples []int16
	for piece := range audio {
		if samples = append(samples, piece...); len(samples) > speech.Count(longestSound, speech.Rate) {
			return nil, failed("More was said than can be recognised at once.", speech.ErrTooLong)
		}
	}
	return samples, nil
}

// form is the body of a request.
func (t transcriber) form(samples []int16) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(t.fields); i += 2 {
		if err := w.WriteField(t.fields[i], t.fields[i+1]); err != nil {
			return nil, "", err
		}
	}
	file, err := w.CreateFormFile("file", "speech.wav")
	if err != nil {
		return nil, "", err
	}
	if err := speech.WriteWAV(file, speech.Rate, samples); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), w.FormDataContentType(), nil
}

const misheard = "The recogniser stopped without a result. Say it again."

// blank is what whisper.cpp writes where nothing was said.
const blank = "[BLANK_AUDIO]"

// read finds what was said, with single spaces. whisper.cpp answers with an error in the same object, and status 200.
func (t transcriber) read(answer io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(answer, mostJSON))
	if err != nil {
		return "", failed(misheard, err)
	}
	var said struct {
		Text  *string         `json:"text"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return "", failed(misheard, fmt.Errorf("speechserver: the answer: %w", err))
	}
	if said.Text == nil {
		reason := said.Error[:min(len(said.Error), mostRefusal)]
		return "", failed(misheard, fmt.Errorf("speechserver: the answer has no text: %s", t.client.hide(string(reason))))
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(*said.Text, blank, " ")), " "), nil
}
