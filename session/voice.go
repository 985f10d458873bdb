package session

import (
	"context"
	"iter"
	"strings"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// The answer is spoken by the sentence. A child of the session synthesizes one after the other; what it makes waits here
// until the client has played enough of what it was sent, and is numbered, kept and sent like any other event. What was
// heard is what the client says it has played, as text.
const (
	playAhead    = 400 * time.Millisecond // of sound that a client is sent before it has played it
	chunkLength  = speech.PacketLength    // of sound in one event
	madeAhead    = 10 * time.Second       // of sound that waits here; the synthesizer gets no further sentence meanwhile
	playedLate   = time.Second            // after the end of the sound a client has not acknowledged all of it
	neverAcks    = 2 * time.Second        // after which a client that has acknowledged nothing is sent sound by the clock
	stalledFor   = time.Minute            // after which a client that has stopped playing in the middle is sent no more
	ackedLate    = 2 * time.Second        // how long after an answer's end what was played still counts
	slowSpeech   = 90 * time.Millisecond  // a byte of text, while it is not known how long its sentence is: nobody speaks slower
	longSpeech   = 2 * time.Minute        // of sound in one sentence: a voice that makes more has failed
	voiceSilent  = 90 * time.Second       // after which a voice has failed: those of this program say so themselves before
	fewSentences = 4                      // are waiting: then more of the text is cut
	cutAtOnce    = 1 << 10                // bytes of it
	longestAck   = 1 << 40                // ms: what is more counts as this
)

// voice is the sound of one answer. Positions in it are in samples of what is sent, from the answer's beginning.
type voice struct {
	uncut   []byte // of the answer's text
	cutter  speech.Sentences
	waiting []speech.Sentence    // for the synthesizer
	say     chan speech.Sentence // to it; closed after the last one
	pieces  chan piece           // from it
	spoken  []speech.Sentence    // those that it has been given and has not ended, oldest first; at most two

	rate     int               // Hz, of what is sent
	in       int               // Hz, of what resample takes
	resample *speech.Resampler // nil where the synthesizer's rate is right
	pcm      []int16           // made, and not sent
	packets  speech.Encoder    // nil: it is sent as PCM16
	begun    int               // where the sentence begins that is being made

	words  []word
	told   int // words whose text has been sent
	marked int // words whose place is certain: of sentences that have ended, and what was heard of one that broke off

	sent, played int
	acked        bool        // something has been
	ackedAt      time.Time   // when that last became more, or somebody came back
	kept         []keptSound // what was sent and has not been played, in the log
	firstSent    time.Time   // zero until then
	lastSent     time.Time

	whole  bool          // the answer's text is
	closed bool          // say is
	voices []Synthesizer // who speaks it: the first, and the next where one fails
	failed int           // how many of them have
	mute   bool          // every voice has failed: the rest is text alone
	lost   bool          // the client plays no more: the rest is text that nobody has heard

	filler filler
}

// keptSound is the event of some sound, and where that ends.
type keptSound struct {
	seq uint64
	end int
}

// word is a word of the answer: where its text ends, in bytes, and its sound.
type word struct {
	end, at int
}

// startVoice begins the sound of an answer, if the client wants any.
func (s *Session) startVoice(ctx context.Context, a *answer) {
	out := s.settings.terms.Audio.Output
	if out == nil || a.mocked || len(s.cfg.Voices) == 0 {
		return
	}
	a.voice = &voice{rate: out.Rate, voices: s.voices(), say: make(chan speech.Sentence), pieces: make(chan piece, 4)}
	v := a.voice
	if out.Encoding == encodingOpus {
		var err error
		if v.packets, err = s.cfg.Codec.Encoder(out.Rate); err != nil {
			a.voice = nil
			s.emit(s.wireError(err, protocol.CodeSpeechFailed))
			return
		}
	}
	s.spawn(func() { v.run(ctx, v.voices) })
}

// made is where the sound ends that has been made.
func (v *voice) made() int { return v.sent + len(v.pcm) }

func (v *voice) samples(d time.Duration) int { return speech.Count(d, v.rate) }

func (v *voice) duration(samples int) time.Duration { return speech.Duration(samples, v.rate) }

// sounds is nil while there is no sound. A sentence that has been begun is taken to its end: a synthesizer may lose
// patience with who stops listening.
func (a *answer) sounds() <-chan piece {
	if a == nil || a.voice == nil {
		return nil
	}
	return a.voice.pieces
}

// offer is where the next sentence goes; nil while there is none, or while enough sound waits.
func (a *answer) offer() chan<- speech.Sentence {
	if a == nil || a.voice == nil {
		return nil
	}
	v := a.voice
	if len(v.waiting) == 0 || v.waiting[0].Spoken == "" || len(v.spoken) > 1 || len(v.pcm) > v.samples(madeAhead) {
		return nil
	}
	return v.say
}

// sentence is the next one for the synthesizer.
func (a *answer) sentence() speech.Sentence {
	if a == nil || a.voice == nil || len(a.voice.waiting) == 0 {
		return speech.Sentence{}
	}
	return a.voice.waiting[0]
}

// add is more of the answer's text; all of it has come when whole is true.
func (v *voice) add(delta string, whole bool) {
	v.whole = whole
	if v.silent() {
		return
	}
	v.uncut = append(v.uncut, delta...)
	v.queue(v.cut())
}

// cut is the next sentences, as long as few are waiting: an agent may write far more at once than anybody has heard.
func (v *voice) cut() (sentences []speech.Sentence) {
	for len(v.uncut) > 0 && len(v.waiting)+len(sentences) < fewSentences {
		n := min(len(v.uncut), cutAtOnce)
		sentences = append(sentences, v.cutter.Add(string(v.uncut[:n]))...)
		v.uncut = v.uncut[n:]
	}
	if v.whole && len(v.uncut) == 0 {
		v.uncut = nil
		sentences = append(sentences, v.cutter.Flush()...)
	}
	return sentences
}

// settle passes over sentences with nothing to say when their turn comes, and lets the synthesizer go after the last.
func (v *voice) settle() {
	for len(v.spoken) == 0 && len(v.waiting) > 0 && v.waiting[0].Spoken == "" {
		v.words = append(v.words, word{v.waiting[0].End, v.made()})
		v.marked = len(v.words)
		v.waiting = append(v.waiting[1:], v.cut()...)
	}
	if v.whole && len(v.waiting) == 0 && len(v.uncut) == 0 && !v.closed {
		v.closed = true
		close(v.say)
	}
}

// taken follows a sentence that the synthesizer took.
func (v *voice) taken() {
	next := v.waiting[0]
	v.waiting = v.waiting[1:]
	v.waiting = append(v.waiting, v.cut()...)
	v.spoken = append(v.spoken, next)
	if len(v.spoken) == 1 {
		v.begin()
	}
	v.settle()
}

// begin marks the words of the sentence that is about to be made, as if it were spoken slowly: who breaks it off before
// its length is known has not heard more than that. Figures are longer in words.
func (v *voice) begin() {
	v.begun = v.made()
	length := v.samples(slowSpeech) * max(len(v.spoken[0].Text), len(v.spoken[0].Spoken))
	v.mark(func(bytes, of int) int { return length * bytes / of })
}

// again is for a sentence that broke off: the next voice says it from its beginning. What was made of it and not sent, nobody
// hears; the words that were in what was sent stay where they were said first.
func (v *voice) again() {
	if len(v.spoken) == 0 { // only in a journal that was tampered with
		return
	}
	v.pcm = v.pcm[:min(len(v.pcm), max(0, v.begun-v.sent))]
	v.resample, v.in = nil, 0
	for v.marked < len(v.words) && v.words[v.marked].at <= v.made() {
		v.marked++
	}
	v.begin()
}

// end marks them by how long the sentence has become.
func (v *voice) end() {
	if v.resample != nil {
		v.pcm = v.resample.Flush(v.pcm)
	}
	length := v.made() - v.begun
	v.mark(func(bytes, of int) int { return length * bytes / of })
	v.marked = len(v.words)
	v.spoken = v.spoken[1:]
	if len(v.spoken) > 0 {
		v.begin()
	}
	v.tail()
	v.settle()
}

// mark says where each word of the sentence that is being made ends.
func (v *voice) mark(at func(bytes, of int) int) {
	sentence := v.spoken[0]
	v.words = v.words[:v.marked]
	said := 0 // how much of the text a voice that failed has said
	if v.marked > 0 {
		said = v.words[v.marked-1].end
	}
	text := sentence.Text
	for end := range wordEnds(text) {
		if sentence.Start+end > said {
			v.words = append(v.words, word{sentence.Start + end, v.begun + at(end, len(text))})
		}
	}
}

// wordEnds are where the words of a sentence end, in bytes; what follows the last one belongs to it.
func wordEnds(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		at := 0
		for {
			start := at + len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\n"))
			i := strings.IndexAny(text[start:], " \t\n")
			if i < 0 || strings.TrimSpace(text[start+i:]) == "" {
				yield(len(text))
				return
			}
			if at = start + i; !yield(at) {
				return
			}
		}
	}
}

// take is sound for the answer.
func (v *voice) take(c speech.Chunk) error {
	if v.resample == nil && c.Rate != v.rate || v.in != c.Rate && v.in != 0 {
		r, err := speech.NewResampler(c.Rate, v.rate)
		if err != nil {
			return err
		}
		v.resample = r
	}
	v.in = c.Rate
	if v.resample == nil {
		v.pcm = append(v.pcm, c.Samples...)
	} else {
		v.pcm = v.resample.Process(v.pcm, c.Samples)
	}
	return nil
}

// speak gives the answer's text to its voice.
func (s *Session) speak(delta string, whole bool) {
	if v := s.answer.voice; v != nil {
		v.filler.quiet = s.now
		v.add(delta, whole)
		s.play()
	}
}

// taken follows a sentence that a voice took.
func (s *Session) taken() {
	s.answer.times.firstGiven(s.now)
	s.traceVoice()
	s.answer.voice.taken()
}

// sound is what the synthesizer has made.
func (s *Session) sound(p piece) {
	v := s.answer.voice
	if v.lost {
		return
	}
	if p.err == nil && !p.ended && !v.mute {
		s.answer.times.firstMade(s.now, p.at)
		p.err = v.take(p.chunk)
		p.last = true // a rate that speak let through: only in a journal that was tampered with
	}
	switch {
	case p.err != nil:
		s.voiceFailed(p)
	case p.ended && !v.mute:
		v.end()
	}
	s.play()
}

// voiceFailed tells the client, which hears another voice from now on, or goes on with text alone.
func (s *Session) voiceFailed(p piece) {
	v := s.answer.voice
	if v.mute {
		return
	}
	v.failed++
	words := errVoiceChanged
	if p.last {
		words = errVoiceLost
		v.mute, v.waiting, v.spoken, v.uncut = true, nil, nil, nil // what has been made is still played
	} else if p.ended {
		v.again()
	}
	s.log.Warn("a voice failed", "error", p.err, "left", !p.last)
	s.emit(s.wireError(words, protocol.CodeSpeechFailed))
}
