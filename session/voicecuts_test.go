package session_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
)

// A person hears answers over a connection that is cut at random, and interrupts them. What their player has played, by
// its own record, is compared with what the voices made and with what the session takes for heard. In every other session
// the microphone is open: they cough now and then, which stops no answer, and interrupt by speaking.

// choir are voices that number their samples, all of them together, and write down what they speak.
type choir struct {
	r     *rand.Rand
	mu    sync.Mutex
	made  int // samples
	lines []spokenLine
}

// spokenLine is a sentence that was spoken, or a part of it.
type spokenLine struct {
	text       string
	start, end int
	whole      bool
	wholeAt    time.Time
	broke      bool
}

// soloist is one of them. It speaks 50 ms for each byte.
type soloist struct {
	of    *choir
	pause time.Duration // before each chunk
	fails int           // one sentence in so many; 0: none
}

func (v *soloist) Synthesize(ctx context.Context, text string) iter.Seq2[speech.Chunk, error] {
	return func(yield func(speech.Chunk, error) bool) {
		c := v.of
		if slices.Contains(aWhile, text) {
			v.phrase(ctx, yield)
			return
		}
		left := speech.Count(time.Duration(len(text))*50*time.Millisecond, speech.Rate)
		c.mu.Lock()
		n, breaks := len(c.lines), -1
		c.lines = append(c.lines, spokenLine{text: text, start: c.made, end: c.made})
		if v.fails > 0 && c.r.IntN(v.fails) == 0 {
			breaks = c.r.IntN(2) * c.r.IntN(left)
		}
		c.mu.Unlock()
		for said := 0; left > 0; {
			if breaks >= 0 && said >= breaks {
				c.mu.Lock()
				c.lines[n].broke = true
				c.mu.Unlock()
				yield(speech.Chunk{}, errors.New("out of breath"))
				return
			}
			if v.pause > 0 && sleep(ctx, v.pause) != nil {
				return
			}
			samples := make([]int16, min(left, speech.Count(40*time.Millisecond, speech.Rate)))
			c.mu.Lock()
			for i := range samples {
				samples[i] = int16(uint16(c.made + i))
			}
			c.made += len(samples)
			left, said = left-len(samples), said+len(samples)
			c.lines[n].end, c.lines[n].whole, c.lines[n].wholeAt = c.made, left == 0, time.Now()
			c.mu.Unlock()
			if !yield(speech.Chunk{Samples: samples, Rate: speech.Rate}, nil) {
				return
			}
		}
	}
}

// phrase is a second of silence, in which nothing is numbered, or a failure.
func (v *soloist) phrase(ctx context.Context, yield func(speech.Chunk, error) bool) {
	v.of.mu.Lock()
	breaks := v.fails > 0 && v.of.r.IntN(v.fails) == 0
	v.of.mu.Unlock()
	for range 25 {
		if sleep(ctx, v.pause) != nil || !yield(hum(40*time.Millisecond, speech.Rate), nil) {
			return
		}
		if breaks {
			yield(speech.Chunk{}, errors.New("out of breath"))
			return
		}
	}
}

// skip is the beginning of the line that says again the one in which so many samples have been made, if that broke off: what
// was left of that then is heard by nobody.
func (c *choir) skip(made int) (start int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.lines[:max(0, len(c.lines)-1)] {
		if l := &c.lines[i]; l.broke && l.start <= made && made < l.end {
			l.end = made
			return c.lines[i+1].start, true
		}
	}
	return 0, false
}

// heardOf is how much of an answer, in bytes, has been spoken to its end when so many samples of all that the voices made
// have been played, the first of it is given, by what they wrote down: at least, and at most. They differ where a sentence was
// not yet whole, or became so at this very moment, of which the session need not know: then nobody can say where its words end.
// A line that broke off is said again.
func (c *choir) heardOf(text string, first, played int) (least, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	known := func(l spokenLine) bool { return l.whole && l.wholeAt.Before(now) }
	at, sure := 0, true
	for _, l := range c.lines {
		if l.start < first || l.end == l.start && !l.whole {
			continue
		}
		i := strings.Index(text[at:], l.text)
		if i < 0 {
			break
		}
		whole := text[at : at+i+len(l.text)]
		if at+len(whole) == len(strings.TrimRight(text, " ")) {
			whole = text[at:]
		}
		length := speech.Count(time.Duration(len(l.text))*50*time.Millisecond, speech.Rate)
		for end := 1; end <= len(whole); end++ {
			if end < len(whole) && whole[end] != ' ' || strings.TrimSpace(whole[:end]) == "" {
				continue
			}
			if done := l.start + length*end/len(whole); done <= played && done <= l.end {
				most = max(most, at+end)
				if sure && known(l) {
					least = at + end
				}
			}
		}
		if l.broke {
			continue
		}
		at += len(whole)
		sure = sure && known(l)
	}
	return least, most
}

// played is an answer as its player knows it.
type played struct {
	id      string
	text    strings.Builder
	told    strings.Builder
	first   int // number of its first sample; -1 before
	phrases []span
	skips   []skip
	got     int // samples
	played  int
	acked   int // -1: nothing
	stopped bool
	late    bool // it was stopped, and how much had been played was said after that
	over    bool
	heard   string
	whole   bool // it was completed
	muted   bool // the last voice failed
}

// skip is how many samples nobody hears behind so many of an answer's own.
type skip struct{ after, of int }

// made is which of the samples that the voices made follows so many of the answer's own.
func (a *played) made(own int) int {
	n := a.first + own
	for _, s := range a.skips {
		if own > s.after {
			n += s.of
		}
	}
	return n
}

// span is the samples of a phrase, in the sound of an answer.
type span struct{ from, to int }

// own is how many of the first samples of an answer's sound are its own.
func (a *played) own(of int) int {
	n := of
	for _, s := range a.phrases {
		n -= max(0, min(of, s.to)-s.from)
	}
	return n
}

// person is the client: its connections, one after the other, and its player.
type person struct {
	t       *testing.T
	r       *rand.Rand
	session *session.Session
	choir   *choir

	mu      sync.Mutex // the session's goroutine shares what follows
	here    *wire      // nil while there is no connection
	seq     uint64
	left    int // events until the connection is lost
	lost    *wire
	noticed bool // the session knows that it is
	back    time.Time
	cuts    int
	answers []*played
	state   protocol.State
	history *protocol.History
	open    bool          // the microphone is
	level   int16         // what it hears
	long    time.Duration // and for how long still
	spoke   bool          // there were words in it since the answer began
	late    []*played     // answers that ended by words, of which it has not been said how much was played
	bad     []string
	next    int // number of the sample that follows what was completed; -1: not known
}

// wire is one of its connections: a [session.Peer].
type wire struct {
	*person
	resent bool // what comes now was sent before
}

func (l *wire) Resend(events []session.Event) {
	l.resent = true
	for _, e := range events {
		l.Send(e)
	}
	l.resent = false
}

func (l *wire) Close(protocol.CloseCode, string) {}

func (l *wire) Send(e session.Event) {
	p := l.person
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.here != l {
		return
	}
	if h, ok := e.Message.(protocol.History); ok {
		p.history = &h
	}
	if e.Seq == 0 {
		return
	}
	if e.Seq != p.seq+1 {
		p.fault("event %d follows %d", e.Seq, p.seq)
	}
	p.seq = e.Seq
	p.note(e.Message)
	if p.left--; p.left == 0 {
		p.lost, p.here = l, nil
		p.back = time.Now().Add(time.Duration(pick(p.r, 0, 5, 40, 300, 900, 2500, 6000)) * time.Millisecond)
		p.cuts++
	}
}

func (p *person) fault(format string, args ...any) {
	p.bad = append(p.bad, fmt.Sprintf(format, args...))
}

func (p *person) answer() *played {
	if len(p.answers) == 0 {
		return &played{over: true, first: -1}
	}
	return p.answers[len(p.answers)-1]
}

// note takes an event, under the lock.
func (p *person) note(m protocol.Message) {
	a := p.answer()
	switch m := m.(type) {
	case protocol.SessionState:
		p.state = m.Value
	case protocol.TranscriptFinal:
		if p.level == cough && m.Text != "" && !p.spoke && strings.HasPrefix(m.Text, "word") {
			p.fault("a cough was recognised as %q", m.Text)
		}
	case protocol.ResponseCreated:
		p.spoke = false
		p.answers = append(p.answers, &played{id: m.ResponseID, first: -1, acked: -1})
	case protocol.ResponseTextDelta:
		a.text.WriteString(m.Text)
	case protocol.ResponseAudioDelta:
		p.hear(a, m)
	case protocol.Error:
		if m.Code != protocol.CodeSpeechFailed {
			p.fault("error %+v", m)
		}
		a.muted = a.muted || strings.Contains(m.Message, "as text")
	case protocol.ResponseCompleted:
		a.over, a.whole, a.heard = true, true, m.HeardText
		if p.next = a.made(a.own(a.got)); a.first < 0 || a.muted {
			p.next = -1
		}
		if !a.muted && a.told.String() != a.text.String() {
			p.fault("%s: %q was spoken of %q", a.id, a.told.String(), a.text.String())
		}
	case protocol.ResponseCancelled:
		a.over, a.heard, p.next = true, m.HeardText, -1
		p.cancelled(a, m)
		if p.open && m.Reason == protocol.CancelBargeIn && !a.stopped {
			if !p.spoke {
				p.fault("%s was interrupted, and nothing was said", a.id)
			}
			a.stopped, a.late = true, true
			p.late = append(p.late, a)
			spokenOver.Add(1)
		}
	}
}

func (p *person) hear(a *played, m protocol.ResponseAudioDelta) {
	pcm, _ := base64.StdEncoding.DecodeString(m.Chunk)
	samples := speech.Samples(pcm)
	if m.ResponseID != a.id || a.over || len(samples) == 0 {
		p.fault("sound of %s within %s, which is over: %t", m.ResponseID, a.id, a.over)
		return
	}
	if p.state == protocol.Listening {
		p.fault("%s: sound at %d ms while it is held", a.id, m.StartMs)
	}
	if want := speech.Duration(a.got, speech.Rate).Milliseconds(); m.StartMs != want {
		p.fault("%s: sound for %d ms where %d ms are due", a.id, m.StartMs, want)
	}
	if m.Filler {
		a.phrases = append(a.phrases, span{a.got, a.got + len(samples)})
		phrases.Add(1)
		if slices.Max(samples) != 0 || slices.Min(samples) != 0 || m.Text != "" {
			p.fault("%s: a phrase speaks of the answer, %q", a.id, m.Text)
		}
		a.got += len(samples)
		return
	}
	if a.first < 0 {
		a.first = p.numbered(uint16(samples[0]))
		if p.next >= 0 && a.first != p.next {
			if _, ok := p.saidAgain(p.next, uint16(samples[0])); !ok {
				p.fault("%s begins with sample %d, %d is due: some of the answer before was lost", a.id, a.first, p.next)
			}
		}
	}
	for i, s := range samples {
		own := a.own(a.got) + i
		want := a.made(own+1) - 1
		if uint16(s) == uint16(want) {
			continue
		}
		start, ok := p.saidAgain(want, uint16(s))
		if !ok {
			p.fault("%s: sample %d of the voice where %d is due", a.id, uint16(s), uint16(want))
			return
		}
		a.skips = append(a.skips, skip{own, start - want})
		again.Add(1)
	}
	a.got += len(samples)
	if ahead := a.got - max(0, a.acked); a.acked >= 0 && !p.here.resent && speech.Duration(ahead, speech.Rate) > 401*time.Millisecond {
		p.fault("%s: %d samples ahead of what was acknowledged", a.id, ahead)
	}
	a.told.WriteString(m.Text)
}

// saidAgain is the number of a sample that comes where another is due, given its low bits: the first of a line that says again what broke off.
func (p *person) saidAgain(due int, low uint16) (start int, ok bool) {
	for at := due; ; at = start {
		if start, ok = p.choir.skip(at); !ok || uint16(start) == low {
			return start, ok
		}
	}
}

// numbered is the whole number of a sample, which the sound has the low bits of: that of a line's beginning.
func (p *person) numbered(low uint16) int {
	p.choir.mu.Lock()
	defer p.choir.mu.Unlock()
	for i := len(p.choir.lines) - 1; i >= 0; i-- {
		if l := p.choir.lines[i]; uint16(l.start) == low && l.end > l.start {
			return l.start
		}
	}
	return -2
}

// cancelled compares what the session says with what was played.
func (p *person) cancelled(a *played, m protocol.ResponseCancelled) {
	if a.first < 0 && a.got > 0 && m.HeardText != "" && !a.muted {
		p.fault("%s: %q is heard, and phrases were played alone", a.id, m.HeardText)
	}
	if a.muted || a.first < 0 {
		return
	}
	least, most := p.choir.heardOf(a.text.String(), a.first, a.made(a.own(a.played)))
	if a.late || !a.stopped {
		least = 0 // it does not know yet
	}
	if n := len(m.HeardText); n < least || n > most || !strings.HasPrefix(a.text.String(), m.HeardText) {
		p.fault("%s: %d samples were played, %q is heard, want %q to %q", a.id, a.played, m.HeardText, a.text.String()[:least], a.text.String()[:most])
	}
}

// come is a new connection, under no lock.
func (p *person) come() {
	p.mu.Lock()
	old, before := p.lost, p.r.IntN(3) == 0 && !p.noticed
	next := &wire{person: p}
	p.here, p.lost, p.left = next, nil, 1+p.r.IntN(25)
	after := p.seq
	p.noticed = false
	p.mu.Unlock()
	if !before {
		p.session.Leave(old) // a second time, it means nothing
	}
	if err := p.session.Join(p.t.Context(), next, session.Hello{Resume: true, After: after}); err != nil {
		p.t.Error(err)
	}
	if before {
		p.session.Leave(old)
	}
}

func (p *person) send(messages ...protocol.Message) {
	p.mu.Lock()
	here := p.here
	p.mu.Unlock()
	for _, m := range messages {
		if err := p.session.Receive(p.t.Context(), here, "", m); err != nil {
			p.t.Error(err)
		}
	}
}

const playerStep = 20 * time.Millisecond

// step plays a little and returns what there is to say of it.
func (p *person) step() (ack []protocol.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answer()
	if a.stopped || a.got == 0 || p.state == protocol.Listening {
		return nil
	}
	a.played = min(a.played+speech.Count(playerStep, speech.Rate), a.got)
	if due := a.played-max(0, a.acked) >= speech.Count(200*time.Millisecond, speech.Rate) || a.played == a.got; !due || a.played == a.acked || p.here == nil || a.over {
		return nil
	}
	a.acked = a.played
	return []protocol.Message{ackOf(a)}
}

func ackOf(a *played) protocol.PlaybackAck {
	return protocol.PlaybackAck{ResponseID: a.id, PlayedMs: speech.Duration(a.played, speech.Rate).Milliseconds()}
}

// interrupt stops the player, and says so.
func (p *person) interrupt() {
	p.mu.Lock()
	a := p.answer()
	ack := ackOf(a)
	how := p.r.IntN(3)
	if p.open && how == 2 {
		p.level, p.long = words, 600*time.Millisecond
		p.mu.Unlock()
		return
	}
	a.stopped = true
	a.late = how > 0 || ack.PlayedMs == 0
	p.history = nil
	p.mu.Unlock()
	switch how {
	case 0:
		p.send(protocol.ResponseCancel{ResponseID: a.id, PlayedMs: ack.PlayedMs})
	case 1:
		p.send(typed(tale), ack)
	case 2:
		p.send(piece, ack, cancel)
	}
	synctest.Wait()
	if p.mu.Lock(); p.here == nil || a.muted || a.first < 0 {
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.send(protocol.HistoryGet{})
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.history == nil || a.whole {
		return
	}
	item := p.history.Items[len(p.history.Items)-1]
	heard := item.Text
	if item.HeardText != nil {
		heard = *item.HeardText
	}
	least, most := p.choir.heardOf(a.text.String(), a.first, a.made(a.own(a.played)))
	if item.Role != "assistant" || len(heard) < least || len(heard) > most {
		p.fault("%s: %d samples were played, the history has %q, want %q to %q; the voices: %+v", a.id, a.played, heard, a.text.String()[:least], a.text.String()[:most], p.choir.lines)
	}
	compared.Add(1)
}

// hear is what an open microphone hears now, and what was played of an answer that it has ended.
func (p *person) hears() (messages []protocol.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open || p.here == nil {
		return nil
	}
	if p.long <= 0 {
		p.level = quiet
		if p.r.IntN(100) == 0 {
			p.level, p.long = cough, time.Duration(200+p.r.IntN(600))*time.Millisecond
			coughs.Add(1)
		}
	}
	p.spoke = p.spoke || p.level == words
	p.long -= playerStep
	for _, a := range p.late {
		messages = append(messages, ackOf(a))
	}
	p.late = nil
	return append(messages, overheard(p.level, playerStep))
}

const tale = "It is noon. The tide turns at three, and then we sail around the island. Be there. Bring something to eat!"

// dallies tells the tale, with a tool that takes so long before each sentence.
func dallies(pause time.Duration) engine {
	return func(ctx context.Context, _ turn.Request, yield yieldSignal) {
		for sentence := range strings.SplitAfterSeq(tale, ".") {
			if !yield(callsTool, nil) || sleep(ctx, pause) != nil || !yield(toolReturns, nil) || !yield(delta(sentence), nil) {
				return
			}
		}
		yield(done, nil)
	}
}

// converse has answers spoken and interrupted until there were so many cuts, and returns how many.
func converse(t *testing.T, seed uint64) (cuts int) {
	r := rand.New(rand.NewPCG(seed, 9))
	c := &choir{r: rand.New(rand.NewPCG(seed, 10))}
	pause := time.Duration(pick(r, 0, 0, 5, 20, 45)) * time.Millisecond
	agent := tells(tale)
	if slow := pick(r, 0, 0, 300, 900, 2000); slow > 0 {
		agent = dallies(time.Duration(slow) * time.Millisecond)
	}
	open := seed%2 == 1
	cfg := version2(agentBacked(recogniser(counts), agent))
	if open {
		cfg = handsFree(agentBacked(recogniser(ears), agent))
	}
	cfg.Agents[0].Filler, cfg.Agents[0].FillerAfter = aWhile, 250*time.Millisecond
	fails := pick(r, 0, 0, 6)
	var soloists []session.Synthesizer
	for range 1 + r.IntN(2) {
		soloists = append(soloists, &soloist{of: c, pause: pause, fails: fails})
	}
	cfg.Voices = named(soloists...)
	cl := start(t, cfg)
	p := &person{t: t, r: r, session: cl.session, choir: c, open: open, left: 1 + r.IntN(40), next: 0}
	p.here = &wire{person: p}
	if err := p.session.Join(t.Context(), p.here, session.Hello{}); err != nil {
		t.Fatal(err)
	}
	ask := withVoice
	ask.Audio = &protocol.AudioFormats{Output: &protocol.Format{Encoding: "pcm16", Rate: speech.Rate, Framing: "json"}}
	if open {
		ask.TurnDetection = "vad"
	}
	p.send(ask)
	synctest.Wait()
	for turn := 0; turn < 12; {
		time.Sleep(playerStep)
		synctest.Wait()
		p.mu.Lock()
		away := p.here == nil
		notices := away && !p.noticed && p.r.IntN(10) == 0
		p.noticed = away && (p.noticed || notices)
		due := away && !time.Now().Before(p.back)
		a := p.answer()
		ready := !away && p.state == protocol.Idle && a.over && (a.stopped || a.played == a.got)
		breaks := !away && !a.over && a.got > 0 && p.r.IntN(60) == 0
		p.mu.Unlock()
		if notices {
			p.session.Leave(p.lost)
		}
		if due {
			p.come()
			synctest.Wait()
		}
		if heard := p.hears(); len(heard) > 0 {
			p.send(heard...)
			synctest.Wait()
		}
		if ack := p.step(); len(ack) > 0 {
			p.send(ack...)
			synctest.Wait()
		}
		switch {
		case due:
		case breaks:
			p.interrupt()
		case ready:
			turn++
			p.mu.Lock()
			p.state = protocol.Thinking // until it is told
			p.mu.Unlock()
			p.send(typed(tale))
		}
		if len(p.bad) > 0 {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, what := range p.bad {
		t.Error(what)
	}
	return p.cuts
}

// compared is how often the history was held to the player's record.
var compared atomic.Int64

// coughs is how many there were, and spokenOver how many answers words have ended.
var coughs, spokenOver atomic.Int64

// phrases is how many pieces of phrases were heard, and again how many sentences were said again in mid-sentence.
var phrases, again atomic.Int64

func TestRandomCutsWhileAnswersAreSpoken(t *testing.T) {
	t.Parallel() // the long ones beside one another
	most := 10_000
	if testing.Short() {
		most = 500
	}
	cuts, sessions := 0, uint64(0)
	for ; cuts < most; sessions++ {
		synctest.Test(t, func(t *testing.T) { cuts += converse(t, sessions) })
		if t.Failed() {
			t.Fatalf("seed %d", sessions)
		}
	}
	t.Logf("%d cuts in %d sessions; %d interruptions compared; %d pieces of phrases; %d sentences said again; %d coughs, and %d answers ended by words",
		cuts, sessions, compared.Load(), phrases.Load(), again.Load(), coughs.Load(), spokenOver.Load())
	if coughs.Load() < int64(most/50) || spokenOver.Load() < int64(most/500) {
		t.Error("open microphones have heard too little")
	}
	if compared.Load() < int64(most/100) || phrases.Load() < int64(most/10) || again.Load() < int64(most/1000) {
		t.Errorf("only %d interruptions were compared, %d pieces of phrases, %d sentences said again", compared.Load(), phrases.Load(), again.Load())
	}
}
