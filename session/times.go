package session

import (
	"time"

	"vela/protocol"
)

// times is where a turn's time goes, on the clock of the mailbox.
type times struct {
	asked   time.Time
	first   time.Time     // the first of the answer's text; zero while there is none
	stt     time.Duration // from the end of speech to the final transcript; 0 for a turn without speech
	sound   time.Time     // the first of its sound; zero while there is none
	gateway time.Duration // what waited for the session
}

// firstText notes when the first text was taken, and when it was yielded.
func (t *times) firstText(now, yielded time.Time) {
	if t.first.IsZero() {
		t.first = now
		t.gateway += now.Sub(yielded)
	}
}

// firstAudio notes when the first sound was sent.
func (t *times) firstAudio(now time.Time) {
	if t.sound.IsZero() {
		t.sound = now
	}
}

// metrics is what a client is told of the turn.
func (a *answer) metrics(now time.Time) protocol.TurnMetrics {
	t := a.times
	m := protocol.TurnMetrics{
		TurnID:    a.turn,
		GatewayMs: t.gateway.Milliseconds(),
		TotalMs:   (now.Sub(t.asked) + t.stt).Milliseconds(),
		Usage:     a.usage,
	}
	if t.stt > 0 {
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
