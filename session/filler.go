package session

import (
	"cmp"
	"context"
	"time"

	"vela/session/speech"
)

// Where an answer is spoken and nothing is to be heard of it for a while, a short phrase says that it is being worked
// on. A phrase is sound of the answer with a place of its own in it, so that whatever counts positions goes on counting;
// but it speaks none of the answer's text, so nobody's account of what was heard knows it. It gives way to the answer's
// first sentence: what has not been sent of it by then is not sent, and the client holds no more than it always does.

const (
	fillAfter   = 4 * time.Second       // of silence before a phrase, unless an agent has its own
	fillAgain   = 15 * time.Second      // from the first phrase to the second; to each further one twice as long,
	fillAtMost  = time.Minute           // up to this
	fillerTime  = 5 * time.Second       // after its beginning no more of a phrase is sent, nor is more of it kept than this
	fillerFades = 10 * time.Millisecond // of a phrase that is cut off
)

// filler is the phrases of one answer.
type filler struct {
	phrases []string
	after   time.Duration
	begin   func(text string) // lets a child make the sound of one

	quiet  time.Time // since when nothing has been written, and what was sent had been played
	played int       // how much that was
	said   int       // phrases so far
	last   time.Time // when the last one began

	sound *voice             // what makes the present one, with a resampler and a channel of its own; nil while none is made
	stop  context.CancelFunc // of it
	left  int                // samples of it that wait to be sent: all that is in the voice's pcm; once it is cut, at its front
	cut   bool               // it gave way: what is left is its end
}

// filled is a piece of a phrase.
type filled piece

// startFiller makes an agent's phrases those of its answer, if that is spoken.
func (s *Session) startFiller(ctx context.Context, a *answer, who NamedEngine) {
	v := a.voice
	if v == nil {
		return
	}
	f := &v.filler
	f.phrases, f.after, f.quiet = who.Filler, cmp.Or(who.FillerAfter, fillAfter), s.now
	f.begin = func(text string) {
		ctx, stop := context.WithCancel(ctx)
		sound, voices := &voice{rate: v.rate, pieces: make(chan piece, 4)}, v.voices[v.failed:]
		f.sound, f.stop = sound, stop
		s.spawn(func() {
			defer stop()
			sound.sentence(ctx, text, &voices)
		})
	}
}

// phrase is nil while no phrase is being made.
func (a *answer) phrase() <-chan piece {
	if a == nil || a.voice == nil || a.voice.filler.sound == nil {
		return nil
	}
	return a.voice.filler.sound.pieces
}

// runs says whether a phrase is being spoken.
func (f *filler) runs() bool { return f.sound != nil || f.left > 0 && !f.cut }

// fillerAt is when the next phrase is due; false while none can be: because something is to be heard, somebody is asked
// something else, or nobody is there.
func (a *answer) fillerAt(alone bool) (time.Time, bool) {
	v := a.voice
	f := &v.filler
	if len(f.phrases) == 0 || f.runs() || alone || len(a.open) > 0 || !v.dry() {
		return time.Time{}, false
	}
	quiet := f.quiet
	if v.played < v.sent {
		if v.acked {
			return time.Time{}, false // it is being played, or somebody has stopped it
		}
		quiet = later(quiet, v.deadline())
	}
	due := quiet.Add(f.after)
	if f.said > 0 {
		due = later(due, f.last.Add(min(fillAgain<<min(f.said-1, 8), fillAtMost)))
	}
	return due, true
}

// dry says whether no sound is waiting to be sent, or on its way here.
func (v *voice) dry() bool {
	return !v.silent() && len(v.waiting) == 0 && len(v.spoken) == 0 && len(v.pcm) == 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextFiller is when a phrase begins, or has taken too long.
func (a *answer) nextFiller(now time.Time, alone bool) time.Duration {
	if f := &a.voice.filler; f.runs() {
		return f.last.Add(fillerTime).Sub(now)
	}
	if due, ok := a.fillerAt(alone); ok {
		return due.Sub(now)
	}
	return time.Hour
}

// fill begins a phrase when it is due, and ends one that takes too long.
func (s *Session) fill() {
	a := s.answer
	v := a.voice
	f := &v.filler
	if v.played >= v.sent && v.sent > f.played {
		f.quiet, f.played = s.now, v.sent
	}
	if f.runs() {
		if s.since(f.last) >= fillerTime {
			v.hush()
		}
		return
	}
	if due, ok := a.fillerAt(s.isAlone()); ok && !due.After(s.now) {
		text := f.phrases[f.said%len(f.phrases)]
		f.said++
		f.last, f.cut = s.now, false
		f.begin(text)
	}
}

// filled is what has been made of a phrase. One that cannot be spoken is nobody's error: the answer's own sentence will
// say so, if that cannot be either.
func (s *Session) filled(p filled) {
	v := s.answer.voice
	f := &v.filler
	err := p.err
	if err == nil && !p.ended {
		err = f.sound.take(p.chunk)
	}
	if err != nil {
		s.log.Warn("a voice failed to say a phrase", "error", err)
	}
	if p.last {
		f.phrases = nil
	}
	if p.ended && f.sound.resample != nil {
		f.sound.pcm = f.sound.resample.Flush(f.sound.pcm)
	}
	more := f.sound.pcm[:min(len(f.sound.pcm), v.samples(fillerTime)-f.left)]
	v.pcm, f.sound.pcm = append(v.pcm, more...), nil
	f.left += len(more)
	if p.ended {
		f.stop()
		f.sound = nil
		v.fillPhrase()
	}
	s.play()
}

// hush ends the phrase that is spoken: but for as much of it as it takes to fade, what has not been sent is not.
func (v *voice) hush() {
	f := &v.filler
	if !f.runs() {
		return
	}
	if f.sound != nil {
		f.stop()
		f.sound = nil
	}
	n := min(f.left, v.samples(fillerFades))
	v.pcm = v.pcm[:n:n]
	for i := range v.pcm {
		v.pcm[i] = int16(int(v.pcm[i]) * (n - i) / (n + 1))
	}
	f.left, f.cut = n, true
	v.fillPhrase()
}

// pause is for text that nothing follows for a while: its last sentence need not wait for what comes after it.
func (v *voice) pause() {
	if !v.silent() && len(v.uncut) == 0 {
		v.queue(v.cutter.Pause())
	}
}

// queue takes sentences of the answer. A phrase ends where they begin.
func (v *voice) queue(sentences []speech.Sentence) {
	if len(sentences) > 0 || v.whole {
		v.hush()
	}
	v.waiting = append(v.waiting, sentences...)
	v.settle()
}
