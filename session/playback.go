package session

import (
	"time"

	"vela/protocol"
)

// What of the sound goes out and when, and what was heard of it.

// next takes the sound and the words of the next event; false while there is not enough, or enough is under way.
func (v *voice) next(now time.Time, text string) (start int, pcm []int16, words string, ok bool) {
	n := v.samples(chunkLength)
	more := len(v.spoken) > 0 && v.filler.left == 0 || v.packets != nil && v.filler.sound != nil
	if len(v.pcm) < n && more || len(v.pcm) == 0 {
		return 0, nil, "", false
	}
	v.fill(n)
	n = min(n, len(v.pcm))
	filler := v.filler.left > 0
	if filler {
		n = min(n, v.filler.left) // an event is of the one or of the other
	}
	if v.sent+n > v.played+v.samples(v.allowed(now)) {
		return 0, nil, "", false
	}
	start, pcm = v.sent, v.pcm[:n:n]
	v.pcm = v.pcm[n:]
	v.sent += n
	from := 0
	if v.told > 0 {
		from = v.words[v.told-1].end
	}
	to := from
	for !filler && v.told < len(v.words) && (v.startOf(v.told) < v.sent || v.words[v.told].at <= v.sent) { // or it has no sound
		to = v.words[v.told].end
		v.told++
	}
	if filler {
		v.filler.left -= n
	}
	if v.firstSent.IsZero() {
		v.firstSent = now
	}
	v.lastSent = now
	return start, pcm, text[from:min(to, len(text))], true
}

func (v *voice) startOf(i int) int {
	if i == 0 {
		return 0
	}
	return v.words[i-1].at
}

// allowed is how much sound may be under way now. A client that acknowledges nothing is taken to play as it receives.
func (v *voice) allowed(now time.Time) time.Duration {
	if v.acked || v.firstSent.IsZero() {
		return playAhead
	}
	return playAhead + max(0, now.Sub(v.firstSent)-neverAcks)
}

// ack is how much the client says it has played; more than it was sent it cannot have.
func (v *voice) ack(played time.Duration) {
	v.acked = true
	at := v.samples(played)
	if v.samples(played+time.Millisecond) >= v.sent {
		at = v.sent // the client counts in whole milliseconds
	}
	v.played = max(v.played, at)
}

// heard is how much of the answer's text has been, in bytes.
func (v *voice) heard() int {
	end := 0
	for _, w := range v.words {
		if w.at > v.played {
			break
		}
		end = w.end
	}
	return end
}

// over says whether there is nothing more to play, or to wait for.
func (v *voice) over(now time.Time) bool {
	return v.allSent() && (v.played >= v.sent || !now.Before(v.deadline()))
}

// allSent says whether no more sound comes.
func (v *voice) allSent() bool {
	return v.whole && len(v.pcm) == 0 && (v.silent() || v.closed && len(v.spoken) == 0)
}

// silent says whether no more of the answer is spoken.
func (v *voice) silent() bool { return v.mute || v.lost }

// stallsAt is when a client that has played some of the sound, and not all that it was sent, has stopped for good; false
// while there is none such.
func (v *voice) stallsAt() (time.Time, bool) {
	return later(v.lastSent, v.ackedAt).Add(stalledFor), v.acked && v.played < v.sent && !v.silent() && !v.allSent()
}

// abandon sends no more sound.
func (v *voice) abandon() {
	v.hush()
	v.lost, v.waiting, v.spoken, v.uncut, v.pcm, v.filler = true, nil, nil, nil, nil, filler{}
}

// deadline is when the client must have played what it was sent. One that acknowledges nothing played what came before
// by the clock.
func (v *voice) deadline() time.Time {
	return v.lastSent.Add(min(v.duration(v.sent-v.played), playAhead) + playedLate)
}

// goOn goes on with the clocks after a hold: those that a client's playing is waited for by, and those of phrases.
func (v *voice) goOn(away, held time.Duration) {
	v.resume(away)
	if !v.lastSent.IsZero() {
		v.lastSent = v.lastSent.Add(held)
	}
	f := &v.filler
	f.quiet, f.last = f.quiet.Add(held), f.last.Add(held)
}

// resume goes on with the clock for a client that was away for so long.
func (v *voice) resume(away time.Duration) {
	if !v.firstSent.IsZero() {
		v.firstSent = v.firstSent.Add(away)
	}
	v.ackedAt = later(v.lastSent, v.ackedAt).Add(away)
}

// remains is what counts of a sound that has ended. The sound itself, and what still waits to be made, are let go of.
func (v *voice) remains() *voice {
	return &voice{rate: v.rate, words: v.words, sent: v.sent, played: v.played, acked: v.acked, mute: v.mute, kept: v.kept}
}

// play sends what the client may have now, and ends an answer that has been played. While nobody is here the sound
// waits.
func (s *Session) play() {
	a := s.answer
	if a == nil || a.voice == nil {
		return
	}
	v := a.voice
	if a.offer() != nil {
		a.times.firstSentence(s.now)
	}
	if a.hold != nil {
		return
	}
	if at, ok := v.stallsAt(); ok && !s.isAlone() && !at.After(s.now) {
		s.log.Info("the client has stopped playing", "answer", a.id)
		v.abandon()
	}
	s.fill()
	text := a.text.String()
	for !s.isAlone() {
		filler := v.filler.left > 0
		start, pcm, words, ok := v.next(s.now, text)
		if !ok {
			break
		}
		chunk, err := v.encode(pcm)
		if err != nil {
			v.pcm = nil
			s.voiceFailed(piece{err: err, last: true})
			break
		}
		if !filler && a.times.firstAudio(s.now) {
			s.trace.firstAudio(s.now)
		}
		s.emit2(protocol.ResponseAudioDelta{
			ResponseID: a.id, StartMs: v.duration(start).Milliseconds(), Text: words, Filler: filler, Chunk: chunk,
		})
		v.kept = append(v.kept, keptSound{s.events.last, v.sent})
	}
	if a.ended && v.over(s.now) {
		s.completeAnswer()
		return
	}
	s.wake()
}

// nextTick is when sound is to be sent by the clock, or the answer is over. All else that sound may wait for is an input.
func (v *voice) nextTick(now time.Time, alone bool) time.Duration {
	switch {
	case v.allSent():
		return v.deadline().Sub(now)
	case alone:
		return time.Hour
	}
	if at, ok := v.stallsAt(); ok {
		return at.Sub(now)
	}
	if v.acked || v.firstSent.IsZero() || len(v.pcm) == 0 {
		return time.Hour
	}
	return max(chunkLength, neverAcks-now.Sub(v.firstSent))
}

// acknowledge takes what a client says it has played, of the answer that runs or of the one that was just cut.
func (s *Session) acknowledge(m protocol.PlaybackAck) error {
	played := played(m.PlayedMs)
	switch {
	case m.PlayedMs < 0:
		return errPlayed
	case s.answer != nil && s.answer.id == m.ResponseID && s.answer.voice != nil:
		v := s.answer.voice
		before := v.played
		v.ack(played)
		if v.played > before {
			v.ackedAt = s.now
		}
		s.spend(v)
		s.play()
	case s.cut != nil && s.cut.id == m.ResponseID && s.since(s.cut.at) <= ackedLate:
		before := s.cut.voice.heard()
		s.cut.voice.ack(played)
		s.spend(s.cut.voice)
		if s.cut.voice.heard() > before {
			s.correct(s.cut)
		}
	}
	return nil
}

// spend lets the log forget the sound that was played: whoever comes back needs no more of it than what it spoke.
func (s *Session) spend(v *voice) {
	for len(v.kept) > 0 && v.kept[0].end <= v.played {
		s.events.spend(v.kept[0].seq)
		v.kept = v.kept[1:]
	}
}

// played is what a client says it has played.
func played(ms int64) time.Duration {
	return time.Duration(min(ms, longestAck)) * time.Millisecond
}

// cut is an answer that ended before all of its sound was acknowledged: what was heard of it may still become more.
type cut struct {
	*answer
	at time.Time
}

func (s *Session) keepCut(a *answer) {
	a.voice = a.voice.remains()
	s.cut = &cut{a, s.now}
}

// played is how much of the answer's sound the client says it has played, in ms.
func (a *answer) played() int64 {
	if a.voice == nil {
		return 0
	}
	return a.voice.duration(a.voice.played).Milliseconds()
}

// heardText is what of an answer was heard: all that was shown, where it was not spoken.
func (a *answer) heardText() string {
	text := a.text.String()
	if a.voice == nil || a.voice.mute {
		return text
	}
	return text[:min(len(text), a.voice.heard())]
}
