package speechserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"vela/protocol"
	"vela/session/speech"
)

// spoken is an utterance in pieces.
func spoken(samples []int16) iter.Seq[[]int16] { return slices.Chunk(samples, 320) }

// recognise reads the one transcript.
func recognise(ctx context.Context, seq iter.Seq2[speech.Transcript, error]) (text string, err error) {
	n := 0
	for transcript, err := range seq {
		if err != nil {
			return "", err
		}
		if n++; n > 1 || !transcript.Final {
			return "", fmt.Errorf("%d. transcript: %+v", n, transcript)
		}
		text = transcript.Text
	}
	if n == 0 {
		return "", errors.New("no transcript")
	}
	return text, nil
}

func transcriberOf(t *testing.T, cfg Config) *OpenAITranscriber {
	t.Helper()
	o, err := NewOpenAITranscriber(cfg, "whisper-1", Hints{Language: "en", Prompt: "Vela"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// form reads the fields of a request and its sound.
func form(t *testing.T, r *http.Request) (fields string, sound speech.WAV) {
	file, header, err := r.FormFile("file")
	if err != nil {
		t.Error(err)
		return "", sound
	}
	if sound, err = speech.ReadWAV(file, 1<<20); err != nil || header.Filename != "speech.wav" {
		t.Errorf("%s: %v", header.Filename, err)
	}
	return fmt.Sprint(r.URL.Path, r.Header.Get("Authorization"), r.MultipartForm.Value), sound
}

func TestOpenAITranscription(t *testing.T) {
	want := ramp(1000)
	o := transcriberOf(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		fields, sound := form(t, r)
		if fields != "/v1/audio/transcriptionsBearer "+key+"map[language:[en] model:[whisper-1] prompt:[Vela] response_format:[json]]" {
			t.Error(fields)
		}
		if sound.Rate != speech.Rate || !slices.Equal(sound.Samples, want) {
			t.Errorf("%d samples at %d Hz", len(sound.Samples), sound.Rate)
		}
		io.WriteString(w, `{"text": " Hello,\n there. ", "usage": {}}`)
	}))
	if text, err := recognise(t.Context(), o.Transcribe(t.Context(), spoken(want))); err != nil || text != "Hello, there." {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhisper(t *testing.T) {
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fields, sound := form(t, r)
		if fields != "/v1/inferenceBearer "+key+"map[response_format:[json]]" {
			t.Error(fields)
		}
		switch len(sound.Samples) {
		case 1:
			io.WriteString(w, `{"text": " [BLANK_AUDIO]\n"}`)
		case 2:
			io.WriteString(w, `{"error": "failed to read `+key+`"}`)
		default:
			io.WriteString(w, `{"text": " Yes.\n"}`)
		}
	})
	s, err := NewWhisperTranscriber(cfg, Hints{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text, err := recognise(t.Context(), s.Transcribe(t.Context(), spoken(ramp(3)))); err != nil || text != "Yes." {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := recognise(t.Context(), s.Transcribe(t.Context(), spoken(ramp(1)))); err != nil || text != "" {
		t.Errorf("silence: %q, %v", text, err)
	}
	_, err = recognise(t.Context(), s.Transcribe(t.Context(), spoken(ramp(2))))
	var e *Error
	if !errors.As(err, &e) || e.Code() != protocol.CodeSpeechFailed || strings.Contains(says(err), key) || !strings.Contains(says(err), "failed to read [hidden]") {
		t.Error(says(err))
	}
}

func TestAnswersThatAreNoTranscripts(t *testing.T) {
	for _, body := range []string{"", "hello", `{}`, `{"text": 1}`, `[]`, `{"text": "` + strings.Repeat("x", mostJSON) + `"}`} {
		o := transcriberOf(t, serve(t, status(200, body)))
		_, err := recognise(t.Context(), o.Transcribe(t.Context(), spoken(ramp(3))))
		var e *Error
		if !errors.As(err, &e) || e.Code() != protocol.CodeSpeechFailed || err.Error() != misheard {
			t.Errorf("%.20q: %v", body, err)
		}
	}
	o := transcriberOf(t, serve(t, status(403, key)))
	_, err := recognise(t.Context(), o.Transcribe(t.Context(), spoken(ramp(3))))
	var e *Error
	if !errors.As(err, &e) || e.Code() != protocol.CodeSpeechUnavailable || e.Status() != 403 || strings.Contains(says(err), key) {
		t.Error(says(err))
	}
}

func TestWhatIsNotSent(t *testing.T) {
	o := transcriberOf(t, serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request") }))
	if text, err := recognise(t.Context(), o.Transcribe(t.Context(), spoken(nil))); err != nil || text != "" {
		t.Errorf("nothing said: %q, %v", text, err)
	}
	endless := func(yield func([]int16) bool) {
		for minute := make([]int16, 60*speech.Rate); yield(minute); {
		}
	}
	if _, err := recognise(t.Context(), o.Transcribe(t.Context(), endless)); !errors.Is(err, speech.ErrTooLong) {
		t.Errorf("more than 10 minutes: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cut := func(yield func([]int16) bool) {
		yield(ramp(3))
		cancel(errEnough)
	}
	if _, err := recognise(ctx, o.Transcribe(ctx, cut)); !errors.Is(err, errEnough) {
		t.Errorf("cancelled while it was said: %v", err)
	}
	if _, err := recognise(ctx, o.Transcribe(ctx, spoken(nil))); !errors.Is(err, errEnough) {
		t.Errorf("cancelled before anything was said: %v", err)
	}
}

func TestCancelEndsTheRequest(t *testing.T) {
	asked, ended := make(chan bool), make(chan bool)
	o := transcriberOf(t, serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asked <- true
		<-r.Context().Done()
		ended <- true
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errEnough)
	}()
	if _, err := recognise(ctx, o.Transcribe(ctx, spoken(ramp(3)))); !errors.Is(err, errEnough) {
		t.Error(err)
	}
	<-ended
}
