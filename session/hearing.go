package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// Transcriber turns the speech of one utterance into text. It serves many sessions at a time: Transcribe may be called
// from several goroutines.
type Transcriber interface {
	// Transcribe reads mono samples at [speech.Rate], in pieces of any length, until audio ends, and yields partial
	// transcripts and then exactly one final one, or an error in its place. It stops promptly once ctx is done, audio
	// ends early then, or when its reader leaves the loop. It yields from the goroutine that ranges over it, keeps no
	// piece of audio, and leaves no goroutine behind.
	Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error]
}

// utterance is the user's half of an agent-backed turn, while it is heard and recognised. The audio that the
// recogniser has not taken yet waits in pending, bounded by how much audio a turn may have; the session's goroutine
// offers it piece by piece (take in mailbox.go), so neither waits for the other.
type utterance struct {
	began     time.Time
	from      *microphone   // whose sound it is; nil where the client says when it begins and ends
	voiced    time.Duration // of it, as far as its microphone knows
	asked     time.Time     // when it was committed
	ended     time.Time     // when the speech was over: then, or before, where a detector has waited for silence
	length    time.Duration // of the audio accepted so far
	pending   [][]int16
	frames    chan []int16 // to the recogniser; closed after the commit, when nothing is pending
	heard     chan heard   // from it
	stop      context.CancelCauseFunc
	resample  *speech.Resampler // nil where the rate is right
	committed bool
	partial   string
	failed    bool // nobody listens; the client knows
	full      bool // the client knows that there is too much audio
	fast      bool // the client knows that it sends too fast
	spent     bool // the client knows that its allowance is used up
}

// heard is one thing that the recogniser says, or that it has ended: a partial transcript may be empty.
type heard struct {
	transcript speech.Transcript
	err        error
	ended      bool
	at         time.Time // when it was yielded
}

// texts is nil while nothing is recognised.
func (u *utterance) texts() <-chan heard {
	if u == nil || u.failed {
		return nil
	}
	return u.heard
}

// offer is where the next piece goes, nil while there is none.
func (u *utterance) offer() chan<- []int16 {
	if u == nil || u.failed || len(u.pending) == 0 {
		return nil
	}
	return u.frames
}

// head is the next piece for the recogniser.
func (u *utterance) head() []int16 {
	if u == nil || len(u.pending) == 0 {
		return nil
	}
	return u.pending[0]
}

// sent follows a piece that the recogniser took.
func (u *utterance) sent() {
	u.pending[0] = nil
	u.pending = u.pending[1:]
	if u.committed && len(u.pending) == 0 {
		close(u.frames)
	}
}

// commit says that no more audio comes.
func (u *utterance) commit(now time.Time) {
	if u.resample != nil {
		u.add(u.resample.Flush(nil))
	}
	u.committed, u.asked = true, now
	if u.ended.IsZero() {
		u.ended = now
	}
	if len(u.pending) == 0 && !u.failed {
		close(u.frames)
	}
}

// listen takes a piece of speech; the first of a turn wakes the recogniser. It returns why it does not.
func (s *Session) listen(ctx context.Context, samples []int16) error {
	if s.hearing == nil {
		s.startHearing(ctx)
	}
	length := speech.Duration(len(samples), s.settings.input.Rate)
	if refused := s.hearing.refuse(length, s.now, s.cfg.MaxAudio); refused != nil {
		return refused.news()
	}
	if refused := s.afford(length); refused != nil {
		return refused.news()
	}
	if s.hearing.resample != nil {
		samples = s.hearing.resample.Process(nil, samples)
	}
	s.hearing.add(samples)
	return nil
}

// afford takes so much audio of the utterance from the client's allowance, or says why not.
func (s *Session) afford(length time.Duration) *refused {
	u := s.hearing
	if length == 0 || u.failed || s.allowed(length) {
		return nil
	}
	known := u.spent
	u.spent = true
	return &refused{errAllowance, known}
}

// add is audio for the recogniser.
func (u *utterance) add(samples []int16) {
	if len(samples) > 0 && !u.failed {
		u.pending = append(u.pending, samples)
	}
}

// resampler is nil where the client sends at the recognisers' rate.
func (s *Session) resampler() *speech.Resampler {
	if s.settings.input.Rate == speech.Rate {
		return nil
	}
	r, err := speech.NewResampler(s.settings.input.Rate, speech.Rate)
	if err != nil {
		s.log.Error("no resampler for the rate that was agreed", "error", err) // settings.go let only good ones in
	}
	return r
}

// maxFrame bounds a binary message of audio, in bytes.
const maxFrame = 64 << 10

// samplesOf is the audio of an event or a binary message, at the rate that was agreed. A chunk of a deterministic turn
// has none: it is opaque.
func (s *Session) samplesOf(p Peer, m protocol.Message) ([]int16, error) {
	switch m := m.(type) {
	case protocol.InputAudioAppend:
		if s.settings.turns != Agent {
			return nil, nil
		}
		if s.settings.input.Encoding == encodingOpus {
			packet, err := base64.StdEncoding.DecodeString(m.Chunk)
			if err != nil {
				return nil, errPacket
			}
			return s.decode(p, packet)
		}
		samples, err := decodeChunk(m.Chunk)
		if err != nil && s.cfg.Version >= 2 {
			return nil, errChunk2
		}
		return samples, err
	case Audio:
		switch n := len(m.PCM); {
		case s.settings.input.Framing != "binary" && s.seatOf(p) != Room:
			return nil, errNotAgreed
		case s.settings.input.Encoding == encodingOpus:
			return s.decode(p, m.PCM)
		case n == 0 || n%2 != 0 || n > maxFrame:
			return nil, errFrame
		}
		return speech.Samples(m.PCM), nil
	}
	return nil, errChunk
}

// refused is audio that is too much; known when the client has been told already.
type refused struct {
	err   error
	known bool
}

// news is what the client does not know yet.
func (r *refused) news() error {
	if r.known {
		return nil
	}
	return r.err
}

// burst is how much audio may come at any speed; after it the average is held to twice real time.
const burst = time.Minute

// refuse says why so much more audio is too much, nil if it is not, and counts it. The client is told once a turn: one
// that streams at three times the speed of speech has two chunks taken and one refused, over and over.
func (u *utterance) refuse(more time.Duration, now time.Time, longest time.Duration) *refused {
	length := u.length + more
	switch {
	case length > longest:
		known := u.full
		u.full = true
		return &refused{errAudioTooLong, known}
	case length > burst+2*now.Sub(u.began):
		known := u.fast
		u.fast = true
		return &refused{errAudioTooFast, known}
	}
	u.length = length
	return nil
}

func decodeChunk(chunk string) ([]int16, error) {
	pcm, err := base64.StdEncoding.DecodeString(chunk)
	if err != nil || len(pcm)%2 != 0 {
		return nil, errChunk
	}
	return speech.Samples(pcm), nil
}

func (s *Session) startHearing(ctx context.Context) {
	ctx, stop := context.WithCancelCause(ctx)
	u := &utterance{began: s.now, frames: make(chan []int16), heard: make(chan heard, 4), stop: stop}
	if !s.handsFree() { // a microphone has its own
		u.resample = s.resampler()
	}
	s.hearing = u
	s.newItem()
	ctx = s.traceHearing(ctx)
	if s.machine.can(evAppend) { // not when an answer was interrupted
		s.enter(evAppend)
	}
	if s.cfg.Transcriber == nil {
		s.goDeaf(errNoTranscriber)
		return
	}
	s.spawn(func() {
		defer stop(nil)
		u.run(ctx, s.cfg.Transcriber)
	})
}

// run hands over what the recogniser makes of the audio until it ends or ctx does.
func (u *utterance) run(ctx context.Context, t Transcriber) {
	defer u.hand(ctx, heard{ended: true})
	defer func() {
		if p := recover(); p != nil {
			u.hand(ctx, heard{err: fmt.Errorf("session: transcriber panicked: %v\n%s", p, debug.Stack())})
		}
	}()
	for transcript, err := range t.Transcribe(ctx, u.audio(ctx)) {
		if !u.hand(ctx, heard{transcript: transcript, err: err, at: time.Now()}) || err != nil {
			return
		}
	}
}

func (u *utterance) hand(ctx context.Context, h heard) bool {
	select {
	case u.heard <- h:
		return true
	case <-ctx.Done():
		return false
	}
}

// audio is the utterance as the recogniser reads it.
func (u *utterance) audio(ctx context.Context) iter.Seq[[]int16] {
	return func(yield func([]int16) bool) {
		for {
			select {
			case samples, ok := <-u.frames:
				if !ok || !yield(samples) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// goDeaf tells the client, once, that nobody recognises this utterance. Before the commit the session stays in
// listening, so that the audio that still comes does not start one failing turn after the other.
func (s *Session) goDeaf(err error) {
	u := s.hearing
	u.failed, u.pending = true, nil
	u.stop(err)
	s.speechTrace().deaf(s.now, err)
	s.emit(s.wireError(err, protocol.CodeSpeechFailed))
	if u.committed || s.held() {
		s.endHearing(evNothing)
	}
}

// endHearing lets go of the utterance and moves on: to an answer that was held, where there is one still.
func (s *Session) endHearing(event string) {
	s.hearing.stop(nil)
	s.speechTrace().unheard(s.now, event)
	s.hearing, s.floor = nil, nobody
	if s.held() {
		s.goOn()
		return
	}
	s.enter(event)
}

// commitSpeech ends the utterance; what was said follows when the recogniser has it.
func (s *Session) commitSpeech() {
	switch {
	case s.hearing == nil:
		s.floor = nobody
		s.emit(protocol.TranscriptFinal{ItemID: s.newItem()})
		s.enter(evNothing)
	case s.hearing.failed:
		s.endHearing(evNothing)
	default:
		s.hearing.commit(s.now)
		s.speechTrace().committed(s.now, s.hearing.ended)
		s.wake()
	}
}

// hear takes what the recogniser says.
func (s *Session) hear(ctx context.Context, h heard) {
	u := s.hearing
	switch {
	case h.err != nil:
		s.goDeaf(h.err)
	case h.transcript.Final:
		s.hearFinal(ctx, h.transcript.Text, h.at)
	case h.ended:
		s.goDeaf(errNoFinal)
	case h.transcript.Text != u.partial:
		u.partial = h.transcript.Text
		s.hearPartial()
	}
}

// hearPartial shows what has been recognised so far. The first words end an answer that was held for them; what is none is
// kept back until it is clear what comes of it.
func (s *Session) hearPartial() {
	u := s.hearing
	if s.held() {
		if !u.says(u.partial) {
			return
		}
		s.bargeIn()
	}
	s.emit(protocol.TranscriptPartial{Text: u.partial, ItemID: s.item()})
}

// hearFinal asks the agent what the user asked.
func (s *Session) hearFinal(ctx context.Context, text string, yielded time.Time) {
	if !s.hearing.committed {
		// A recogniser that stops listening by itself leaves the rest of what is being said unheard.
		s.goDeaf(errNoFinal)
		return
	}
	switch says := s.hearing.says(text); {
	case !says:
		text = ""
	case s.held():
		s.bargeIn()
	}
	s.countRecognised()
	s.emit(protocol.TranscriptFinal{Text: text, ItemID: s.item()})
	ended := s.hearing.ended
	switch {
	case text == "":
		s.endHearing(evNothing)
	case s.agent() == nil:
		s.endHearing(evThink)
		s.traceNoAgent(ctx)
		s.emit(s.wireError(errNoAgent, protocol.CodeAgentUnavailable))
		s.enter(evFinish)
	default:
		s.endHearing(evThink)
		s.spoken = recognised{true, s.since(ended), s.since(yielded)}
		s.ask(ctx, *s.agent(), text, false)
	}
}
