package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// Synthesizer turns text into speech. It serves many sessions at a time: Synthesize may be called from several
// goroutines.
type Synthesizer interface {
	// Synthesize speaks one sentence and yields it as it is made, all of it at one rate; an error is the last thing. It
	// stops promptly once ctx is done or its reader leaves the loop, yields from the goroutine that ranges over it, and
	// leaves no goroutine or process behind.
	Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error]
}

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

// maxPiece bounds what a voice hands over at once, in samples: it has to fit into a line of the journal.
const maxPiece = 1 << 16

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
	marked int // words of sentences that have ended

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

// piece is one thing that the synthesizer makes of a sentence, or that it has ended.
type piece struct {
	chunk speech.Chunk
	ended bool      // the sentence; with err: broken off, some of it has been made
	err   error     // of the voice that spoke
	last  bool      // with err: there is no other voice
	at    time.Time // when it was made
}

// offered says that the synthesizer took the sentence that was offered to it.
type offered struct{}

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

// run synthesizes the sentences until there are no more. It is the child.
func (v *voice) run(ctx context.Context, voices []Synthesizer) {
	for {
		select {
		case sentence, more := <-v.say:
			if !more || !v.sentence(ctx, sentence.Spoken, &voices) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// sentence speaks one; a voice that fails is not used again in this answer. It is false once nobody listens.
func (v *voice) sentence(ctx context.Context, text string, voices *[]Synthesizer) bool {
	for len(*voices) > 0 {
		begun, err := v.speak(ctx, (*voices)[0], text)
		if err == nil {
			return v.hand(ctx, piece{ended: true})
		}
		if ctx.Err() != nil {
			return false
		}
		*voices = (*voices)[1:]
		if !v.hand(ctx, piece{err: err, last: len(*voices) == 0, ended: begun}) {
			return false
		}
		if begun {
			return true // half of it has been heard: the next voice goes on with the next sentence
		}
	}
	return v.hand(ctx, piece{ended: true})
}

var (
	errVoiceSilent = errors.New("session: the voice makes no sound")
	errVoiceLong   = errors.New("session: the voice does not come to an end")
)

// speak lets one voice speak. A voice that panics has failed, and so has one that makes nothing for too long, or too much.
func (v *voice) speak(ctx context.Context, with Synthesizer, text string) (begun bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("session: synthesizer panicked: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	silent := time.AfterFunc(voiceSilent, func() { stop(errVoiceSilent) })
	defer silent.Stop()
	length := time.Duration(0)
	for chunk, err := range with.Synthesize(ctx, text) {
		if err != nil {
			return begun, err
		}
		if chunk.Rate < speech.MinRate || chunk.Rate > speech.MaxRate {
			return begun, fmt.Errorf("session: a voice of %d Hz: they go from %d to %d", chunk.Rate, speech.MinRate, speech.MaxRate)
		}
		if length += chunk.Duration(); length > longSpeech {
			return begun, errVoiceLong
		}
		for samples := range slices.Chunk(chunk.Samples, maxPiece) {
			if !v.hand(ctx, piece{chunk: speech.Chunk{Samples: samples, Rate: chunk.Rate}}) {
				return begun, context.Cause(ctx)
			}
			begun = true
			silent.Reset(voiceSilent)
		}
	}
	return begun, context.Cause(ctx) // who was silent for too long may just have stopped
}

func (v *voice) hand(ctx context.Context, p piece) bool {
	p.at = time.Now()
	select {
	case v.pieces <- p:
		return true
	case <-ctx.Done():
		return false
	}
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

// end marks them by how long the sentence has become. Of one that was broken off it is not known how long it would have
// been: what there was no sound for is shown where it ends.
func (v *voice) end(broken bool) {
	if v.resample != nil {
		v.pcm = v.resample.Flush(v.pcm)
	}
	length := v.made() - v.begun
	if broken {
		for i := range v.words[v.marked:] {
			w := &v.words[v.marked+i]
			w.at = min(w.at, v.made())
		}
	} else {
		v.mark(func(bytes, of int) int { return length * bytes / of })
	}
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
	text := sentence.Text
	for end := range wordEnds(text) {
		v.words = append(v.words, word{sentence.Start + end, v.begun + at(end, len(text))})
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
		v.end(false)
	}
	s.play()
}

// voiceFailed tells the client, which goes on with another voice or with text alone.
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
		v.end(true)
	}
	s.log.Warn("a voice failed", "error", p.err, "left", !p.last)
	s.emit(s.wireError(words, protocol.CodeSpeechFailed))
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
