package session

import (
	"time"

	"vela/protocol"
)

// times is where a turn's time goes, on the clock of the mailbox.
type times struct {
	recognised
	asked time.Time
	first time.Time // the first of the answer's text; zero while there is none
	ready time.Time // the first sentence to be spoken; zero while there is none
	given time.Time // when a voice took it; zero before
	made  time.Time // the first of its sound that came; zero while there is none
	sound time.Time // the first of it that was sent; zero while there is none

	// gateway is what the answer waited for the session on the way to its first sound: whoever made something waited
	// until it was taken, and a sentence for its voice.
	gateway time.Duration
}

// recognised is what of a turn's time went before its question.
type recognised struct {
	spoken bool          // it was spoken, not typed
	stt    time.Duration // from the end of speech to the final transcript
	waited time.Duration // of that, for the session
}

// firstText notes when the first text was taken, and when it was yielded.
func (t *times) firstText(now, yielded time.Time) {
	if t.first.IsZero() {
		t.first = now
		t.gateway += now.Sub(yielded)
	}
}

// firstSentence notes when there was one to be spoken.
func (t *times) firstSentence(now time.Time) {
	if t.ready.IsZero() {
		t.ready = now
	}
}

// firstGiven notes when a voice took it.
func (t *times) firstGiven(now time.Time) {
	if t.given.IsZero() && !t.ready.IsZero() {
		t.given = now
		t.gateway += now.Sub(t.ready)
	}
}

// firstMade notes when the first sound was taken, and when it was made.
func (t *times) firstMade(now, made time.Time) {
	if t.made.IsZero() {
		t.made = now
		t.gateway += now.Sub(made)
	}
}

// firstAudio notes when the first sound was sent, and says whether it was that.
func (t *times) firstAudio(now time.Time) bool {
	if !t.sound.IsZero() {
		return false
	}
	t.sound = now
	return true
}

// total is how long the turn has taken: since the end of speech, or since it was typed.
func (t *times) total(now time.Time) time.Duration { return now.Sub(t.asked) + t.stt }

// added is what the gateway itself added to that.
func (t *times) added() time.Duration { return t.gateway + t.waited }

// metrics is what a client is told of the turn.
func (a *answer) metrics(now time.Time) protocol.TurnMetrics {
	t := a.times
	m := protocol.TurnMetrics{
		TurnID:    a.turn,
		GatewayMs: t.added().Milliseconds(),
		TotalMs:   t.total(now).Milliseconds(),
		Usage:     a.usage,
	}
	if t.spoken {
		m.SttMs = ms(t.stt)
	}
	if !t.first.IsZero() {
		m.FirstTokenMs = ms(t.first.Sub(t.asked))
	}
	if !t.sound.IsZero() {
		m.FirstAudioMs = ms(t.sound.Sub(t.asked))
	}
	return m
}

func ms(d time.Duration) *int64 {
	n := d.Milliseconds()
	return &n
}
