package session

import (
	"context"
	"time"

	"vela/session/speech"
)

// VoiceDetector tells speech from everything else in one stream of sound.
type VoiceDetector interface {
	// Speech is how likely the next frame of the stream, of [speech.FrameSamples] samples at [speech.Rate], is speech, from
	// 0 to 1. The session calls it from its own goroutine, for every frame in order: it takes a small part of the frame's
	// own 32 ms, and keeps no frame. There is nothing to end: a detector that is let go of is garbage.
	Speech(frame []int16) float32
}

// Where turns are detected, sound comes without a pause, and a detector says where speech begins and ends. The sound before
// that goes nowhere but into a short memory, so that the first syllable is heard; it costs no allowance, is no sign of life,
// and makes no event. From then on things are as if somebody had pressed a button, and released it at the end.
//
// All of it counts in samples of the stream. The mailbox's clock, on which everything is measured, comes in only at the end:
// speech ended when its last frame was taken, less the silence that followed it.
const (
	// micLost is how long a microphone may send nothing in the middle of speech until that has ended: it was closed, or its
	// client sends only what is loud.
	micLost = 2 * time.Second
	// shortSound is how much voice may be no more than a throat that is cleared. Words that recognisers make of that do not count.
	shortSound = 400 * time.Millisecond
)

// microphone is what comes from one seat.
type microphone struct {
	detector VoiceDetector
	points   *speech.Endpointer
	resample *speech.Resampler // nil where the rate is right
	rest     []int16           // less than a frame
	recent   []int16           // while nobody listens: the sound before speech, and what may be its beginning
	last     time.Time         // when something came
	credit   time.Duration     // how much sound may come now, at any speed
	fast     bool              // the client knows that it sends too fast
}

// handsFree says whether a detector ends the user's turns.
func (s *Session) handsFree() bool { return s.settings.terms.VAD != nil }

// microphoneOf is that of a seat, which is opened when the first sound comes.
func (s *Session) microphoneOf(seat Seat) *microphone {
	if s.mics[seat] == nil {
		vad := s.settings.terms.VAD
		s.mics[seat] = &microphone{
			detector: s.cfg.Detector(),
			points:   speech.NewEndpointer(vad.Threshold, duration(vad.SpeechMs), duration(vad.SilenceMs)),
			resample: s.resampler(),
			last:     s.now,
			credit:   burst,
		}
	}
	return s.mics[seat]
}

func duration(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// overhear takes what a microphone hears.
func (s *Session) overhear(ctx context.Context, p Peer, samples []int16) (failed error) {
	m := s.microphoneOf(s.seatOf(p))
	if refused := m.admit(speech.Duration(len(samples), s.settings.input.Rate), s.now); refused != nil {
		return refused.news()
	}
	frames := m.frames(samples)
	likely := make([]float32, len(frames))
	for i, frame := range frames {
		likely[i] = m.detector.Speech(frame)
	}
	if len(likely) > 0 {
		s.journal.write(entry{Likely: likely})
	}
	for i, frame := range frames {
		if err := s.frame(ctx, p, m, frame, likely[i]); err != nil {
			failed = err
		}
	}
	return failed
}

// admit holds a client to twice the speed of speech, after a minute that may come at any. It is told once, until it has
// slowed down for long enough to have that minute again.
func (m *microphone) admit(length time.Duration, now time.Time) *refused {
	m.credit = min(burst, m.credit+2*now.Sub(m.last))
	m.last = now
	if m.credit == burst {
		m.fast = false
	}
	if length > m.credit {
		known := m.fast
		m.fast = true
		return &refused{errAudioTooFast, known}
	}
	m.credit -= length
	return nil
}

// frames is the sound in whole frames; what is left over waits for more.
func (m *microphone) frames(samples []int16) (frames [][]int16) {
	if m.resample != nil {
		samples = m.resample.Process(nil, samples)
	}
	all := append(m.rest, samples...)
	for len(all) >= speech.FrameSamples {
		frames = append(frames, all[:speech.FrameSamples:speech.FrameSamples])
		all = all[speech.FrameSamples:]
	}
	m.rest = append([]int16(nil), all...)
	return frames
}

// frame takes the next 32 ms, as likely to be speech as that.
func (s *Session) frame(ctx context.Context, p Peer, m *microphone, frame []int16, likely float32) error {
	point := m.points.Add(likely)
	if m.points.Speaking() {
		s.lastSeen = s.now // silence is no sign of life
	}
	switch u := s.heardFrom(m); {
	case u != nil && point == speech.Ends:
		s.endSpeech(s.now.Add(-m.points.Quiet()))
	case u != nil:
		u.voiced = m.points.Voiced()
		err := s.feed(frame)
		if s.held() && u.length >= longestHold {
			s.endSpeech(s.now)
		}
		return err
	case point == speech.Begins:
		m.keep(frame, m.points.Since())
		return s.beginSpeech(ctx, p, m)
	case m.points.Speaking():
		m.keep(frame, 0) // nobody listens to it
	default:
		m.keep(frame, m.points.Since())
	}
	return nil
}

// heardFrom is the utterance that what this microphone hears belongs to; nil while there is none.
func (s *Session) heardFrom(m *microphone) *utterance {
	if u := s.hearing; u != nil && u.from == m && !u.committed {
		return u
	}
	return nil
}

// overhears says whether hands-free speech is being heard, and has not ended.
func (s *Session) overhears() bool {
	return s.hearing != nil && s.hearing.from != nil && !s.hearing.committed
}

// keep remembers sound that may turn out to belong to speech: what is suspected to be, and a little before it.
func (m *microphone) keep(frame []int16, suspected int) {
	m.recent = append(m.recent, frame...)
	if over := len(m.recent) - suspected - speech.Count(speech.Preroll, speech.Rate); over > 0 {
		m.recent = m.recent[:copy(m.recent, m.recent[over:])]
	}
}

// beginSpeech wakes the recogniser; an answer is held until it is clear whether there are words in it. Speech that begins
// when nobody may listen is let go to its end.
func (s *Session) beginSpeech(ctx context.Context, p Peer, m *microphone) error {
	if s.hearing != nil && s.hearing.committed || s.inFlight() && !s.interrupts() || !s.takeFloor(p) {
		return nil
	}
	began := m.recent
	m.recent = nil
	if !s.allowed(speech.Duration(len(began), speech.Rate)) {
		s.floor = nobody
		return errAllowance
	}
	if s.answer != nil {
		s.hold()
	}
	s.startHearing(ctx)
	u := s.hearing
	u.from, u.voiced, u.length = m, m.points.Voiced(), speech.Duration(len(began), speech.Rate)
	u.add(began)
	s.wake()
	return nil
}

// feed is more of the speech that is being heard.
func (s *Session) feed(samples []int16) error {
	u := s.hearing
	length := speech.Duration(len(samples), speech.Rate)
	if u.length+length > s.cfg.MaxAudio {
		known := u.full
		u.full = true
		return (&refused{errAudioTooLong, known}).news()
	}
	if err := s.afford(length); err != nil {
		return err.news()
	}
	u.length += length
	u.add(samples)
	return nil
}

// endSpeech commits what has been said; the speech was over then.
func (s *Session) endSpeech(over time.Time) {
	if u := s.hearing; over.After(u.began) {
		u.ended = over
	}
	s.commitSpeech()
}

// commitHeard is a client that ends hands-free speech itself. The rest of it is let go to its end.
func (s *Session) commitHeard() {
	m := s.hearing.from
	if err := s.feed(m.rest); err != nil {
		s.log.Debug("the last of an utterance was left out", "reason", err)
	}
	m.rest = nil
	s.commitSpeech()
}

// micSilent ends speech from a microphone that has been gone for too long. While everybody is, it may come back.
func (s *Session) micSilent() {
	if s.overhears() && !s.isAlone() && s.since(s.hearing.from.last) >= micLost {
		s.endSpeech(s.hearing.from.last)
	}
}

// nextMic is when that is; an hour where nobody speaks.
func (s *Session) nextMic() time.Duration {
	if s.overhears() && !s.isAlone() {
		return micLost - s.since(s.hearing.from.last)
	}
	return time.Hour
}

// returned is somebody who comes back: the time without them was no silence.
func (s *Session) returned() {
	for _, m := range s.mics {
		if m != nil && s.isAlone() {
			m.last = s.now
		}
	}
}

// openMicrophones begins anew with what they hear, as other settings want it.
func (s *Session) openMicrophones() { s.mics = [seats]*microphone{} }

// deafen forgets what a microphone has heard, and what it was about to.
func (m *microphone) deafen() {
	if m != nil {
		m.points.Reset()
		m.rest, m.recent = nil, nil
	}
}

// says tells words from what a recogniser makes of a cough.
func (u *utterance) says(text string) bool {
	if u.from == nil {
		return text != ""
	}
	return !speech.Wordless(text) && (u.voiced >= shortSound || !speech.Faint(text))
}
