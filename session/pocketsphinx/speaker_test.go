package pocketsphinx

import (
	"testing"
	"time"
)

func TestSpeakersAreKnownAgainAndStrangersAreNot(t *testing.T) {
	r, loaded := fakes(t, Config{Decoders: 1})
	known := func(transcribe transcribe) voice {
		t.Helper()
		if _, final, err := read(t, transcribe(t.Context(), frames(loud(time.Second)))); final != words(10) || err != nil {
			t.Errorf("%q, %v", final, err)
		}
		return (*loaded)[0].known
	}
	ann, ben := r.Speaker(), r.Speaker()
	if v := known(ann.Transcribe); v != (voice{}) {
		t.Errorf("at first Ann is known by %v", v)
	}
	once := known(ann.Transcribe)
	if once == (voice{}) {
		t.Error("Ann is not known again")
	}
	if v := known(ben.Transcribe); v != (voice{}) {
		t.Errorf("Ben is taken for somebody by %v", v)
	}
	if v := known(r.Transcribe); v != (voice{}) {
		t.Errorf("a stranger is taken for somebody by %v", v)
	}
	if v := known(ann.Transcribe); v.frames <= once.frames {
		t.Errorf("Ann's second utterance taught nothing: %v after %v", v, once)
	}
}

func TestAnInterruptedUtteranceTeachesNothing(t *testing.T) {
	r, _ := fakes(t, Config{Decoders: 1})
	ann := r.Speaker()
	for range ann.Transcribe(t.Context(), frames(loud(time.Second))) {
		break
	}
	if v := ann.known(); v != (voice{}) {
		t.Errorf("learned %v", v)
	}
}
