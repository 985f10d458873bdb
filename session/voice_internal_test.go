package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vela/session/speech"
)

// A client that has played all it was sent is never behind, at any rate: it counts in whole milliseconds, rounded down.
func TestWholeMillisecondsReachTheEnd(t *testing.T) {
	for rate := lowestRate; rate <= highestOut; rate += 13 {
		for sent := 1; sent < 12*rate/100; sent += 7 {
			v := voice{rate: rate, sent: sent}
			v.ack(speech.Duration(sent, rate).Truncate(time.Millisecond))
			if v.played != sent {
				t.Fatalf("%d Hz: %d of %d samples are played", rate, v.played, sent)
			}
			v = voice{rate: rate, sent: sent}
			before := speech.Duration(sent, rate).Truncate(time.Millisecond) - 2*time.Millisecond
			if v.ack(before); before >= 0 && v.played >= sent {
				t.Fatalf("%d Hz: who has played %v has played all %d samples", rate, before, sent)
			}
		}
	}
}

// A figure is longer in words than in digits: while it is not known how long its sentence is, its words count.
func TestFiguresAreLongerInWords(t *testing.T) {
	v := voice{rate: 8000}
	v.spoken = []speech.Sentence{{End: 4, Text: "1999", Spoken: "nineteen ninety-nine"}}
	v.begin()
	if at, want := v.words[0].at, v.samples(20*slowSpeech); at != want {
		t.Errorf("the figure is heard after %d samples, want %d", at, want)
	}
}

// What is kept of an answer that was cut is where its words are, none of its sound.
func TestACutAnswerKeepsNoSound(t *testing.T) {
	v := voice{rate: 8000, words: []word{{4, 10}}, sent: 20, played: 15, acked: true, pcm: make([]int16, 100), say: make(chan speech.Sentence), pieces: make(chan piece, 4)}
	s := Session{now: time.Now()}
	s.keepCut(&answer{voice: &v})
	kept := s.cut.voice
	if kept.pcm != nil || kept.pieces != nil || kept.say != nil || kept.heard() != 4 || kept.sent != 20 || kept.played != 15 || kept.rate != 8000 || !kept.acked {
		t.Errorf("%+v is kept", kept)
	}
}

// Silence for the decoder follows the last sentence that there is, not one that another follows: it would lie within the
// next one's sound.
func TestNoSilenceBetweenSentences(t *testing.T) {
	for spoken, want := range map[int]int{2: 0, 1: speech.Count(speech.CodecDelay, 24000)} {
		v := voice{rate: 24000, packets: encodes{}, spoken: slices.Repeat([]speech.Sentence{{Text: "Ahoy.", Spoken: "Ahoy."}}, spoken), say: make(chan speech.Sentence)}
		if v.end(); len(v.pcm) != want {
			t.Errorf("after one of %d sentences: %d samples, want %d", spoken, len(v.pcm), want)
		}
	}
}

// encodes is an encoder that nobody uses.
type encodes struct{}

func (encodes) Encode([]int16) ([]byte, error) { return nil, nil }

// However much a voice makes of a phrase, no more is kept of it than a phrase may take.
func TestAPhraseIsBounded(t *testing.T) {
	s := New(Config{Version: 2})
	s.replayed, s.now = func(Event) {}, time.Now()
	v := &voice{rate: 8000}
	v.filler = filler{sound: &voice{rate: 8000}, stop: func() {}, last: s.now}
	s.answer = &answer{voice: v}
	for range 100 {
		s.filled(filled{chunk: speech.Chunk{Samples: make([]int16, 8000), Rate: 8000}})
	}
	if kept := v.duration(len(v.pcm)); kept != v.duration(v.filler.left) || kept > fillerTime {
		t.Errorf("%v are kept", kept)
	}
}

// A phrase is whole packets, however it ends: no packet is half of it and half of the answer.
func TestAPhraseInPackets(t *testing.T) {
	for name, end := range map[string]func(*Session){
		"spoken whole": func(s *Session) { s.filled(filled{ended: true}) },
		"cut off":      func(s *Session) { s.answer.voice.hush() },
	} {
		s := New(Config{Version: 2})
		s.replayed, s.now = func(Event) {}, time.Now()
		v := &voice{rate: 8000, packets: encodes{}, played: 8000 * 60}
		v.filler = filler{sound: &voice{rate: 8000}, stop: func() {}, last: s.now}
		s.answer = &answer{voice: v}
		s.filled(filled{chunk: speech.Chunk{Samples: make([]int16, 500), Rate: 8000}})
		if v.sent != 320 {
			t.Errorf("%s: %d samples were sent while it was made, want one packet", name, v.sent)
		}
		end(s)
		if over := (v.sent + len(v.pcm)) % 320; over != 0 || len(v.pcm) != v.filler.left {
			t.Errorf("%s: %d samples are over; %d wait, %d of them of the phrase", name, over, len(v.pcm), v.filler.left)
		}
	}
}

// Of an answer that is written far ahead of its voice only the next sentences are cut: a session is not busy with the rest.
func TestFewSentencesAreCutAhead(t *testing.T) {
	const sentence = "It is noon. "
	v := voice{rate: 8000, say: make(chan speech.Sentence)}
	v.add(strings.Repeat(sentence, 2_000), true)
	for n := range 2_000 {
		if n < 100 && len(v.waiting) > fewSentences+cutAtOnce/len(sentence) {
			t.Fatalf("%d sentences wait", len(v.waiting))
		}
		if len(v.waiting) == 0 || v.closed {
			t.Fatalf("after %d sentences there are no more", n)
		}
		v.taken()
		v.end()
	}
	if len(v.waiting) != 0 || len(v.uncut) != 0 || !v.closed {
		t.Errorf("%d sentences and %d bytes are left; closed: %t", len(v.waiting), len(v.uncut), v.closed)
	}
}
