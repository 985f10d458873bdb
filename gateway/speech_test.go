package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"vela/gateway/closedport"
	"vela/session"
	"vela/session/speech"
)

// ear is a recogniser that says what it was given, or fails after so many pieces; -1 never.
type ear struct {
	fails int
	final bool // and then only after it has said its last word
	heard *[]int16
}

var errEar = errors.New("dial 10.0.0.1: refused")

func (e ear) Transcribe(_ context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		n := 0
		for piece := range audio {
			if n == e.fails && !e.final {
				yield(speech.Transcript{}, errEar)
				return
			}
			*e.heard = append(*e.heard, piece...)
			n++
			clear(piece) // it is not theirs to keep
		}
		if n == e.fails && !e.final {
			yield(speech.Transcript{}, errEar)
			return
		}
		if yield(speech.Transcript{Text: "heard", Final: true}, nil) && e.final {
			yield(speech.Transcript{}, errEar)
		}
	}
}

// The next recogniser hears the whole utterance, whenever the one before it has failed, and the last one's error is told.
func TestTheNextRecogniserHearsAll(t *testing.T) {
	pieces := [][]int16{{1, 2}, {3}, {4, 5, 6}}
	for fails := range len(pieces) + 2 {
		for _, all := range []bool{false, true} {
			var first, second []int16
			next := ear{fails: -1, heard: &second}
			if all {
				next.fails = 1
			}
			l := listeners{list: []session.Transcriber{ear{fails: fails, heard: &first}, next}, log: slog.New(slog.DiscardHandler)}
			at := 0
			audio := func(yield func([]int16) bool) { // like that of a session: it goes on where it was left
				for at < len(pieces) {
					at++
					if !yield(slices.Clone(pieces[at-1])) {
						return
					}
				}
			}
			var got []speech.Transcript
			var failed error
			for tr, err := range l.Transcribe(t.Context(), audio) {
				if err != nil {
					failed = err
					continue
				}
				got = append(got, tr)
			}
			works := fails > len(pieces)
			if want := !works && all; (failed != nil) != want {
				t.Errorf("failing after %d, all of them: %t: the error is %v", fails, all, failed)
			}
			if !(all && !works) && (len(got) != 1 || got[0].Text != "heard") {
				t.Errorf("failing after %d: %v", fails, got)
			}
			if whole := []int16{1, 2, 3, 4, 5, 6}; !works && !all && !slices.Equal(second, whole) || works && len(second) > 0 {
				t.Errorf("failing after %d: the next one heard %v", fails, second)
			}
		}
	}
}

// What has been said cannot be taken back: an error after the final transcript is not for the next recogniser.
func TestNobodyHearsAfterTheLastWord(t *testing.T) {
	var first, second []int16
	l := listeners{list: []session.Transcriber{ear{fails: -1, final: true, heard: &first}, ear{fails: -1, heard: &second}}, log: slog.New(slog.DiscardHandler)}
	n := 0
	for range l.Transcribe(t.Context(), slices.Values([][]int16{{1}})) {
		n++
	}
	if n != 2 || len(second) > 0 {
		t.Errorf("%d results, the next one heard %v", n, second)
	}
}

func TestEarsAndVoicesOfTheFile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/audio/transcriptions":
			_, _ = w.Write([]byte(`{"text":"ahoy"}`))
		case "/v1/audio/speech":
			_, _ = w.Write(make([]byte, 480))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	f, err := parseFile([]byte(`
ears:
  - {kind: openai, url: "` + server.URL + `/v1", model: whisper-1, key_env: SK_TEST_NOT_SET}
  - {kind: openai, url: "` + server.URL + `/v1", model: whisper-1, language: en}
voices:
  - {kind: command, command: [/nowhere/speaks]}
  - {kind: openai, url: "` + server.URL + `/v1", model: tts-1, voice: alloy}
  - {kind: piper, name: deep, url: "` + server.URL + `"}
  - {kind: flite}
`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Agents: f})
	if err != nil {
		t.Fatal(err)
	}
	r := g.Report(t.Context())
	public, _ := json.Marshal(r)
	for _, secret := range []string{"SK_TEST", "127.0.0.1", "nowhere"} {
		if strings.Contains(string(public), secret) {
			t.Errorf("%q is in %s", secret, public)
		}
	}
	var names []string
	for _, v := range r.Voices {
		names = append(names, v.Name)
	}
	if want := []string{"command", "openai", "deep", "flite"}; !slices.Equal(names, want) {
		t.Errorf("the voices are named %q, want %q", names, want)
	}
	var there []bool
	for _, e := range append(slices.Clone(r.Ears), r.Voices...) {
		there = append(there, e.Available)
	}
	if want := []bool{false, true, false, true, true, true}; !slices.Equal(there, want) {
		t.Errorf("there are %v, want %v: %s", there, want, public)
	}
	text := ""
	for tr, err := range g.ears.transcriber().Transcribe(t.Context(), slices.Values([][]int16{make([]int16, 1600)})) {
		if err != nil {
			t.Fatal(err)
		}
		text = tr.Text
	}
	if text != "ahoy" {
		t.Errorf("it heard %q", text)
	}
	samples := 0
	for c, err := range g.voices.list[0].Synthesizer.Synthesize(t.Context(), "ahoy") {
		if err != nil {
			t.Fatal(err)
		}
		samples += len(c.Samples)
	}
	if samples != 240 {
		t.Errorf("%d samples were spoken", samples)
	}
}

// A server that is named and is not there, or does not take the key, is said to be so before anybody speaks; and is asked once
// in five seconds.
func TestSpeechServersAreAsked(t *testing.T) {
	t.Setenv("SPEECH_KEY", "sk-wrong")
	gone := "http://" + closedport.New(t)
	var asked atomic.Int64
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer sk-right" {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		}
	}))
	defer refuses.Close()
	f, err := parseFile([]byte(`
ears:
  - {kind: whisper, url: "` + gone + `"}
  - {kind: openai, url: "` + refuses.URL + `/v1", model: whisper-1, key_env: SPEECH_KEY}
voices:
  - {kind: piper, url: "` + gone + `"}
  - {kind: openai, url: "` + refuses.URL + `/v1", model: tts-1, voice: alloy, key_env: SPEECH_KEY}
`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Agents: f})
	if err != nil {
		t.Fatal(err)
	}
	r := g.Report(t.Context())
	for i, e := range append(slices.Clone(r.Ears), r.Voices...) {
		if want := []string{"cannot be reached", "does not accept the gateway's key"}[i%2]; e.Available || !strings.Contains(e.Why, want) || e.Cause == nil || strings.Contains(fmt.Sprint(e.Cause, e.Why), "sk-wrong") {
			t.Errorf("%s is said to be %+v, want %q", e.Name, e, want)
		}
	}
	g.Report(t.Context())
	if n := asked.Load(); n != 2 {
		t.Errorf("two servers that were asked twice within five seconds got %d requests", n)
	}
}

func TestEarsAndVoicesThatCannotBe(t *testing.T) {
	for text, words := range map[string]string{
		"ears: [{kind: magic}]":                                            "ear 1: its kind must be one of pocketsphinx, sherpa, openai, whisper",
		"ears: [{kind: sherpa}]":                                           "model is missing: the folder",
		"ears: [{kind: sherpa, model: x, url: y}]":                         "line 1: url: an ear of the kind sherpa has no such key, but label, model and language",
		"ears: [{kind: whisper}]":                                          "url is missing",
		"ears: [{kind: openai, url: x}]":                                   "model is missing",
		"ears: [{kind: pocketsphinx, model: x}]":                           "line 1: model: an ear of the kind pocketsphinx has no such key, but label",
		"ears: [{kind: whisper, url: x, key_env: sk-1}]":                   "names of environment variables",
		"voices: [{kind: magic}]":                                          "voice 1: its kind must be one of flite, command, openai, piper",
		"voices: [{kind: command}]":                                        "command is missing",
		"voices: [{kind: flite, command: [x]}]":                            "line 1: command: a voice of the kind flite has no such key, but label, name and voice",
		"voices: [{kind: flite, rate: 0}]":                                 "line 1: rate: a voice of the kind flite has no such key",
		"voices:\n- kind: command\n  command: [x]\n  speed: 2":             "line 4: speed: a voice of the kind command has no such key, but label, name, command and seekable",
		"voices:\n- {kind: piper, url: x,\n  model: y}":                    "line 3: model: a voice of the kind piper has no such key",
		"ears: [{kind: whisper, url: x, model: y}]":                        "line 1: model: an ear of the kind whisper has no such key",
		"ears:\n- kind: pocketsphinx\n  prompt: y":                         "line 3: prompt: an ear",
		"voices: [{kind: piper}]":                                          "need a url",
		"voices: [{kind: openai, url: x}]":                                 "model and voice are needed",
		"voices: [{kind: piper, url: x, speed: -1}]":                       "speed is negative",
		"voices: [{kind: flite, name: a b}]":                               "voice 1: ",
		"voices: [{kind: flite, name: a}, {kind: piper, url: x, name: a}]": "voice 2: the name a is taken",
		"voices: [{kind: flite, volume: 3}]":                               `unknown field "volume"`,
	} {
		if _, err := parseFile([]byte(text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: the error is %v, want %q", text, err, words)
		}
	}
}
