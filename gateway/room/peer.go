package room

import (
	"cmp"
	"context"
	"encoding/base64"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"vela/protocol"
	"vela/session"
	"vela/session/speech"
)

// peer shows a session's events to a room. The session calls Send, Resend and Close from its own goroutine; the rest is
// the room's. The lock guards what the two tell each other: the terms, the state and the floor.
type peer struct {
	publisher *publisher
	player    *player
	changed   chan struct{}   // of size 1: the state has
	over      func(why error) // ends the connection, and never waits

	codec speech.Codec
	span  trace.Span // of the stay

	// Owned by the room.
	resample *speech.Resampler // nil where the session takes 16 kHz
	encoder  speech.Encoder    // nil where it takes PCM16
	rest     []int16           // less than a packet of it

	// Owned by the session.
	stream   speech.Decoder // of an answer that it writes as Opus
	streamOf string

	mu    sync.Mutex
	terms protocol.Terms
	state protocol.State
	floor who
	typed string  // the id of the typed turn that has the floor
	spoke who     // had the floor before that turn, and has it again if the session refuses it
	calls []*call // that wait for an answer, oldest first
	quiet bool    // tts-mode is off: nothing is to be heard
}

// who is somebody in the room. The zero value is nobody.
type who struct {
	identity string
	track    string // SID of the microphone's track; empty for who writes
}

func newPeer(r *Room, span trace.Span) *peer {
	before := r.memory
	before.state = cmp.Or(before.state, protocol.Idle)
	p := &peer{changed: make(chan struct{}, 1), state: before.state, over: r.over, codec: r.cfg.Codec, span: span}
	p.publisher = newPublisher(newRenderer(r.session.ID(), before.state, r.cfg), before, r.metrics, func() { r.over(errBehind) })
	p.player = newPlayer(r.metrics)
	return p
}

// start runs what carries and plays until ctx is done. Whoever calls it waits for the group.
func (p *peer) start(ctx context.Context, l line) *sync.WaitGroup {
	var children sync.WaitGroup
	children.Go(func() {
		if err := p.publisher.run(ctx, l); err != nil {
			p.over(err)
		}
	})
	if out := l.play(); out != nil {
		children.Go(func() { p.player.run(ctx, out) })
	}
	return &children
}

// Send implements [session.Peer].
func (p *peer) Send(e session.Event) {
	from := p.note(e.Message)
	switch m := e.Message.(type) {
	case protocol.ResponseAudioDelta:
		p.play(m)
		return // its text comes as response.text.delta
	case protocol.ResponseCancelled:
		p.player.clear()
	}
	p.publisher.put(e, from)
}

// Resend implements [session.Peer].
func (p *peer) Resend(events []session.Event) {
	for _, e := range events {
		from := p.note(e.Message)
		if _, sound := e.Message.(protocol.ResponseAudioDelta); !sound { // it is late by now
			p.publisher.put(e, from)
		}
	}
}

// Close implements [session.Peer].
func (p *peer) Close(code protocol.CloseCode, _ string) {
	why := errSession
	switch code {
	case protocol.CloseTakenOver:
		why = errMoved
	case protocol.CloseIdle:
		why = errHold
	case protocol.CloseGoingAway:
		why = errShutdown
	}
	p.over(why)
}

// Agreed implements [session.Listener].
func (p *peer) Agreed(terms protocol.Terms) {
	p.mu.Lock()
	p.terms = terms
	p.mu.Unlock()
	p.publisher.agreed(terms)
}

// note keeps what of an event the room goes by, and returns who an event of the user's is of.
func (p *peer) note(m protocol.Message) who {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := p.floor
	switch m := m.(type) {
	case protocol.SessionReady:
		if m.Terms != nil {
			p.terms = *m.Terms
		}
		p.answered()
	case protocol.History:
		p.tell(m)
	case protocol.Error:
		p.failed(m)
	case protocol.SessionState:
		p.state = m.Value
		p.player.hold(m.Value == protocol.Listening)
		if m.Value == protocol.Idle {
			p.free()
		}
		select {
		case p.changed <- struct{}{}:
		default:
		}
	case protocol.TranscriptFinal:
		p.free()
	}
	return from
}

// free has nobody have the floor. Call it with the lock held.
func (p *peer) free() { p.floor, p.typed, p.spoke = who{}, "", who{} }

func (p *peer) play(m protocol.ResponseAudioDelta) {
	sound, err := base64.StdEncoding.DecodeString(m.Chunk)
	p.mu.Lock()
	out, quiet := p.terms.Audio.Output, p.quiet
	p.mu.Unlock()
	if err != nil || out == nil {
		return // the session wrote it
	}
	if out.Encoding != opusEncoding {
		p.player.put(m.ResponseID, m.StartMs, out.Rate, speech.Samples(sound), quiet)
		return
	}
	if p.stream == nil || p.streamOf != m.ResponseID {
		p.stream, err = p.codec.Decoder(outRate)
		p.streamOf = m.ResponseID
	}
	if err == nil {
		var samples []int16
		if samples, err = p.stream.Decode(sound); err == nil {
			p.player.put(m.ResponseID, m.StartMs, outRate, samples, quiet)
		}
	}
}

// opusEncoding is how a session that was made on a socket may write its sound.
const opusEncoding = "opus"

// takeFloor lets a microphone speak, unless another one does.
func (p *peer) takeFloor(m *microphone) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.floor == (who{}) {
		p.floor = m.who
	}
	return p.floor == m.who
}

// handsFree says whether the session itself hears where speech begins and ends.
func (p *peer) handsFree() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.terms.TurnDetection == "vad"
}

// yield gives back the floor of a microphone that took it with a noise: nobody listens yet.
func (p *peer) yield(m *microphone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.floor == m.who && p.state != protocol.Listening {
		p.floor = who{}
	}
}

// writes is what a typed turn does: it has the floor, whoever spoke.
func (p *peer) writes(identity, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.typed == "" {
		p.spoke = p.floor
	}
	p.floor, p.typed = who{identity: identity}, id
}

// fell forgets that a microphone spoke before the typed turn: it has fallen silent, and would not end what it said if it had
// the floor again.
func (p *peer) fell(m *microphone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spoke == m.who {
		p.spoke = who{}
	}
}

// await has a call wait for the session's answer.
func (p *peer) await(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
}

// answered follows a session.ready: the oldest call is through. Call it with the lock held.
func (p *peer) answered() {
	if len(p.calls) > 0 {
		p.calls[0].reply(p.calls[0].err)
		p.calls = p.calls[1:]
	}
}

// tell hands the conversation to the call that is being answered, if it asked for it. Call it with the lock held.
func (p *peer) tell(h protocol.History) {
	if len(p.calls) == 0 {
		return
	}
	if _, asks := p.calls[0].message.(protocol.HistoryGet); asks {
		p.calls[0].tell(h)
	}
}

// failed follows an error: of a call, or of a typed turn, which gives the floor back to whoever spoke. Call it with the lock held.
func (p *peer) failed(m protocol.Error) {
	if m.Ref == "" {
		return
	}
	if m.Ref == p.typed {
		p.floor, p.typed, p.spoke = p.spoke, "", who{}
	}
	for i, c := range p.calls {
		if c.id != m.Ref {
			continue
		}
		c.err = &callError{m.Code, m.Message}
		if _, own := c.message.(protocol.SessionStart); own {
			c.reply(c.err)
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
		}
		return
	}
}

// abandon answers the calls that get no answer any more.
func (p *peer) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		c.reply(errLost)
	}
	p.calls = nil
}

// listens says whether what a microphone says is still to be ended.
func (p *peer) listens(m *microphone) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.floor == m.who
}

func (p *peer) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == protocol.Idle
}

// audio is speech at 16 kHz in the format that was agreed with whoever made the session, and who pays for it.
func (p *peer) audio(samples []int16, pays session.Allowance) []session.Audio {
	p.mu.Lock()
	format := protocol.Format{Rate: speech.Rate}
	if in := p.terms.Audio.Input; in != nil {
		format = *in
	}
	p.mu.Unlock()
	if format.Rate != speech.Rate {
		if p.resample == nil {
			p.resample, _ = speech.NewResampler(speech.Rate, format.Rate) // the session has let only good rates in
		}
		samples = p.resample.Process(nil, samples)
	}
	if format.Encoding != opusEncoding {
		return []session.Audio{{PCM: speech.Bytes(samples), Pays: pays}}
	}
	if p.encoder == nil {
		var err error
		if p.encoder, err = p.codec.Encoder(format.Rate); err != nil {
			return nil
		}
	}
	var packets []session.Audio
	p.rest = append(p.rest, samples...)
	for n := speech.Count(speech.PacketLength, format.Rate); len(p.rest) >= n; p.rest = p.rest[n:] {
		if packet, err := p.encoder.Encode(p.rest[:n]); err == nil {
			packets = append(packets, session.Audio{PCM: packet, Pays: pays})
		}
	}
	return packets
}

// speak switches the sound of answers on or off: tts-mode.
func (p *peer) speak(on bool) {
	p.mu.Lock()
	p.quiet = !on
	p.mu.Unlock()
	if !on {
		p.player.mute()
	}
}
