package client

import (
	"context"
	"encoding/base64"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// wire is the other end of a turn: it notes when what was sent, and the test sends the events.
type wire struct {
	began  time.Time
	sent   []sent
	events chan protocol.Message // closed: the connection is lost
}

type sent struct {
	at time.Duration
	m  protocol.Message
}

var errLost = errors.New("lost")

func newWire() *wire {
	return &wire{began: time.Now(), events: make(chan protocol.Message)}
}

func (w *wire) Send(_ context.Context, m protocol.Message) error {
	w.sent = append(w.sent, sent{time.Since(w.began), m})
	return nil
}

func (w *wire) SendAudio(ctx context.Context, samples []int16) error {
	return w.Send(ctx, protocol.InputAudioAppend{Chunk: base64.StdEncoding.EncodeToString(speech.Bytes(samples))})
}

func (w *wire) Receive(ctx context.Context) (protocol.Message, error) {
	select {
	case m, ok := <-w.events:
		if !ok {
			return nil, errLost
		}
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func silence(d time.Duration) []int16 { return make([]int16, speech.Count(d, speech.Rate)) }

func state(s protocol.State) protocol.Message { return protocol.SessionState{Value: s} }

// run says the samples and, meanwhile, plays the gateway.
func run(t *testing.T, samples []int16, fast bool, play func(w *wire)) (w *wire, seen []protocol.Message, r Reply, err error) {
	w = newWire()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err = say(t.Context(), w, samples, SayOptions{Fast: fast, On: func(m protocol.Message) { seen = append(seen, m) }})
	}()
	play(w)
	<-done
	return w, seen, r, err
}

func TestSayAtTheSpeedOfSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		samples := silence(100 * time.Millisecond)
		for i := range samples {
			samples[i] = int16(i)
		}
		events := []protocol.Message{
			state(protocol.Listening), protocol.TranscriptPartial{Text: "go"}, protocol.TranscriptFinal{Text: "go left"}, state(protocol.Thinking),
			state(protocol.Speaking), protocol.ResponseTextDelta{Text: "You said:"}, protocol.ResponseTextDelta{Text: " go left"},
			protocol.ResponseCompleted{}, state(protocol.Idle),
		}
		w, seen, r, err := run(t, samples, false, func(w *wire) {
			w.events <- events[0]
			w.events <- events[1] // before the second chunk: nothing waits for anything
			time.Sleep(time.Second)
			for _, m := range events[2:] {
				w.events <- m
			}
		})
		if want := (Reply{"go left", "You said: go left", true}); r != want || err != nil {
			t.Errorf("got %+v and the error %v, want %+v", r, err, want)
		}
		if !reflect.DeepEqual(seen, events) {
			t.Errorf("seen %v", seen)
		}
		checkSent(t, w.sent, samples, []time.Duration{40, 80, 100, 100})
	})
}

// checkSent holds the messages to the samples, and their times to milliseconds.
func checkSent(t *testing.T, got []sent, samples []int16, at []time.Duration) {
	t.Helper()
	var pcm []byte
	for i, s := range got {
		if i < len(at) && s.at != at[i]*time.Millisecond {
			t.Errorf("message %d was sent after %v, want %v ms", i, s.at, int(at[i]))
		}
		if a, ok := s.m.(protocol.InputAudioAppend); ok {
			b, err := base64.StdEncoding.DecodeString(a.Chunk)
			if err != nil {
				t.Error(err)
			}
			pcm = append(pcm, b...)
		}
	}
	if len(got) != len(at) || got[len(got)-1].m != (protocol.InputAudioCommit{}) {
		t.Errorf("%d messages, want %d with the commit at the end", len(got), len(at))
	}
	if !reflect.DeepEqual(speech.Samples(pcm), samples) {
		t.Errorf("the audio differs: %d bytes for %d samples", len(pcm), len(samples))
	}
}

// Hands-free there is silence behind what is said, without a gap, until the turn is over; and no commit.
func TestSayHandsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, done := newWire(), make(chan struct{})
		var err error
		go func() {
			defer close(done)
			_, err = say(t.Context(), w, []int16{1, 2, 3}, SayOptions{HandsFree: true, Fast: true})
		}()
		time.Sleep(time.Second)
		w.events <- state(protocol.Listening)
		time.Sleep(time.Second)
		w.events <- state(protocol.Idle)
		<-done
		if err != nil {
			t.Error(err)
		}
		var all []int16
		for _, s := range w.sent {
			if _, ok := s.m.(protocol.InputAudioCommit); ok {
				t.Errorf("committed after %v", s.at)
			} else if pcm, err := base64.StdEncoding.DecodeString(s.m.(protocol.InputAudioAppend).Chunk); err == nil {
				all = append(all, speech.Samples(pcm)...)
			}
		}
		if d := speech.Duration(len(all), speech.Rate); d < 1900*time.Millisecond || d > 2*time.Second || all[0] != 1 || all[2] != 3 || all[3] != 0 {
			t.Errorf("%v were sent, beginning with %v", d, all[:4])
		}
	})
}

func TestSayFastKeepsWithinWhatTheGatewayTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		length := 3 * time.Minute
		w, _, _, err := run(t, silence(length), true, func(w *wire) {
			w.events <- state(protocol.Listening)
			time.Sleep(2 * time.Minute)
			w.events <- state(protocol.Idle)
		})
		if err != nil {
			t.Fatal(err)
		}
		var audio time.Duration
		for _, s := range w.sent {
			if _, ok := s.m.(protocol.InputAudioAppend); ok {
				audio += ChunkLength
			}
			if audio > time.Minute+2*s.at {
				t.Fatalf("%v of audio after %v", audio, s.at)
			}
			if audio < 59*time.Second && s.at > 0 {
				t.Fatalf("waited %v with only %v of audio sent", s.at, audio)
			}
		}
		if last := w.sent[len(w.sent)-1].at; last > time.Minute+time.Second {
			t.Errorf("%v took %v", length, last)
		}
	})
}

func TestSayEnds(t *testing.T) {
	failure := protocol.Error{Code: protocol.CodeAgentFailed, Message: "It fell over."}
	for name, c := range map[string]struct {
		events []protocol.Message
		want   Reply
		err    error
	}{
		"nothing recognised": {[]protocol.Message{protocol.TranscriptFinal{}, state(protocol.Idle)}, Reply{}, nil},
		"the agent fails": {[]protocol.Message{state(protocol.Listening), protocol.TranscriptFinal{Text: "hi"}, state(protocol.Thinking), failure,
			protocol.Error{Code: "later"}, state(protocol.Idle)}, Reply{Transcript: "hi"}, &EventError{failure}},
		"cancelled": {[]protocol.Message{state(protocol.Listening), protocol.TranscriptFinal{Text: "hi"}, state(protocol.Speaking),
			protocol.ResponseTextDelta{Text: "half"}, state(protocol.Idle)}, Reply{Transcript: "hi", Text: "half"}, nil},
		"an idle of before": {[]protocol.Message{protocol.SessionReady{}, state(protocol.Idle), state(protocol.Listening), state(protocol.Idle)}, Reply{}, nil},
		"a refusal":         {[]protocol.Message{failure, state(protocol.Idle)}, Reply{}, &EventError{failure}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, _, r, err := run(t, nil, false, func(w *wire) {
					for _, m := range c.events {
						w.events <- m
					}
				})
				if r != c.want || !reflect.DeepEqual(err, c.err) {
					t.Errorf("got %+v and the error %v, want %+v and %v", r, err, c.want, c.err)
				}
			})
		})
	}
}

func TestSayStopsSendingWhenTheTurnIsOver(t *testing.T) {
	for name, end := range map[string]func(w *wire){
		"refused": func(w *wire) {
			w.events <- protocol.Error{Code: protocol.CodeTurnInFlight}
			w.events <- state(protocol.Idle)
		},
		"lost": func(w *wire) { close(w.events) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _, _, err := run(t, silence(time.Minute), false, func(w *wire) {
					time.Sleep(time.Second + time.Millisecond)
					end(w)
				})
				if err == nil || len(w.sent) != 25 || time.Since(w.began) > 2*time.Second {
					t.Errorf("%d messages in %v, and the error %v", len(w.sent), time.Since(w.began), err)
				}
			})
		})
	}
}

func TestSayEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := say(ctx, newWire(), silence(time.Minute), SayOptions{})
		if !errors.Is(err, why) {
			t.Errorf("the error is %v", err)
		}
	})
}

// broken cannot send, which its reader notices too, as with the library.
type broken struct{ *wire }

func (b broken) Send(context.Context, protocol.Message) error {
	close(b.events)
	return errors.New("cannot send")
}

func TestSayOnABrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := say(t.Context(), broken{newWire()}, nil, SayOptions{}); !errors.Is(err, errLost) {
			t.Errorf("the error is %v", err)
		}
	})
}
