package speech

import "time"

// FrameSamples is how much sound at [Rate] a detector of speech looks at in one go: 32 ms.
const FrameSamples = 512

// Preroll is how much of what came before speech was noticed belongs to it, so that its first syllable is not lost.
const Preroll = 300 * time.Millisecond

// Endpointer says where speech begins and where it ends in a stream of frames, from how likely each of them is speech. It
// counts in samples and reads no clock.
//
// Speech begins with so much sound at the threshold or above it, and ends with so much below a lower one: sound between
// the two is what it was before. While speech is only suspected, a dip as short as a consonant's does not count, and a longer
// one ends the suspicion; so does a suspicion that lasts for half as long again as it takes.
type Endpointer struct {
	threshold, lower float32
	onset, end       int // samples

	speaking bool
	voiced   int // samples at the threshold or above it, since the suspicion began
	quiet    int // samples since sound fell below the lower one
	since    int // samples since the suspicion, or speech, began
}

// Endpoint is what a frame brings.
type Endpoint int

// What a frame may bring.
const (
	Same   Endpoint = iota // nothing new
	Begins                 // this is speech, and so is what came since [Endpointer.Since]
	Ends                   // speech has ended, [Endpointer.Quiet] ago
)

// How the lower threshold follows from the other one, and how long a dip may be within a suspicion.
const (
	thresholdGap = 0.15
	lowestLower  = 0.01
	longestDip   = 2 * FrameSamples
)

// NewEndpointer makes one that takes a frame for speech from threshold on, from 0 to 1, notices speech after onset of it, and
// its end after silence.
func NewEndpointer(threshold float64, onset, silence time.Duration) *Endpointer {
	return &Endpointer{
		threshold: float32(threshold), lower: float32(max(threshold-thresholdGap, lowestLower)),
		onset: max(Count(onset, Rate), 1), end: max(Count(silence, Rate), 1),
	}
}

// Add takes the next frame, as likely to be speech as that.
func (e *Endpointer) Add(likely float32) Endpoint {
	switch {
	case likely >= e.threshold:
		e.voiced += FrameSamples
		e.quiet = 0
	case likely < e.lower || e.quiet > 0:
		e.quiet += FrameSamples
	}
	if e.voiced == 0 {
		e.quiet = 0
		return Same
	}
	e.since += FrameSamples
	switch {
	case !e.speaking && e.voiced >= e.onset:
		e.speaking = true
		return Begins
	case !e.speaking && (e.quiet > longestDip || e.since > e.onset*3/2+longestDip):
		e.Reset()
	case e.speaking && e.quiet >= e.end:
		quiet := e.quiet
		e.Reset()
		e.quiet = quiet // until the next frame, for whoever asks
		return Ends
	}
	return Same
}

// Reset forgets what has been heard.
func (e *Endpointer) Reset() { e.speaking, e.voiced, e.quiet, e.since = false, 0, 0, 0 }

// Speaking says whether speech has begun and not ended.
func (e *Endpointer) Speaking() bool { return e.speaking }

// Since is how many samples ago speech, or the suspicion of it, began; 0 while there is none.
func (e *Endpointer) Since() int { return e.since }

// Voiced is how much of it was at the threshold or above it.
func (e *Endpointer) Voiced() time.Duration { return Duration(e.voiced, Rate) }

// Quiet is how long nothing has been heard within speech, or was when it ended.
func (e *Endpointer) Quiet() time.Duration { return Duration(e.quiet, Rate) }
