package session

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session/speech"
	"vela/turn"
)

// A journal is what a session's mailbox took, with times, and the events that came of it: one JSON object a line. The
// first line is a [journalHead]; every other one is an [entry] with exactly one input, or one event, or what the session learnt of
// the input before it that another machine might answer differently. Since a session depends on nothing else, the inputs make the
// same events again: see [Replay].
//
// It holds what was said, audio included, but no token: what resumes a session never reaches the mailbox.

// journalHead is what a session starts from.
type journalHead struct {
	Journal     int              `json:"journal"` // the version of this format: 2
	ID          string           `json:"id"`
	Protocol    int              `json:"protocol"`
	Turns       Turns            `json:"turns"`
	Agents      []agentEntry     `json:"agents"`
	Transcriber bool             `json:"transcriber"`   // there is one
	Voices      []string         `json:"voices"`        // by name
	VAD         *protocol.VAD    `json:"vad,omitempty"` // what clients get that do not say; nil where nothing detects speech
	Limits      [7]time.Duration `json:"limits"`        // window, audio, recognise, agent silent, idle, approve, tool silent
	Settings    json.RawMessage  `json:"settings"`      // what Configure was asked for, as session.start's payload
	Began       int64            `json:"began"`         // Unix ns
}

// entry is one line. At is in ns after the head's Began.
type entry struct {
	At     int64            `json:"at,omitempty"`
	Spent  bool             `json:"spent,omitempty"`  // the client had no audio left for the input before this line
	Likely []float32        `json:"likely,omitempty"` // how likely the frames of the input before this line are speech
	In     *inputEntry      `json:"in,omitempty"`
	Event  *json.RawMessage `json:"event,omitempty"` // as version 2 writes it
}

// inputEntry is one input; Kind says which, and what else is there.
type inputEntry struct {
	Kind   string          `json:"kind"`
	Peer   int             `json:"peer,omitempty"` // peers are numbered as they come, from 1
	Seat   Seat            `json:"seat,omitempty"`
	Resume bool            `json:"resume,omitempty"`
	After  uint64          `json:"after,omitempty"`
	Order  uint64          `json:"order,omitempty"`
	Ref    string          `json:"ref,omitempty"`
	Client json.RawMessage `json:"client,omitempty"` // the client's event, whole
	PCM    []byte          `json:"pcm,omitempty"`    // of a binary message
	Error  *errorEntry     `json:"error,omitempty"`
	Text   string          `json:"text,omitempty"`
	Final  bool            `json:"final,omitempty"`
	Ended  bool            `json:"ended,omitempty"`
	Asks   *askEntry       `json:"asks,omitempty"`
	Type   string          `json:"type,omitempty"`   // of the engine's signal
	Signal json.RawMessage `json:"signal,omitempty"` // its payload
	Source string          `json:"source,omitempty"` // of a signal that was followed
	Behind int64           `json:"behind,omitempty"` // ns that it had waited
	Rate   int             `json:"rate,omitempty"`   // of PCM that a voice made
	Last   bool            `json:"last,omitempty"`   // with an error of a voice: there is no other
	Why    string          `json:"why,omitempty"`
}

// agentEntry is an agent that could be asked for.
type agentEntry struct {
	Name   string   `json:"name"`
	Ponder []string `json:"ponder,omitempty"`

	Filler      []string      `json:"filler,omitempty"`
	FillerAfter time.Duration `json:"fillerAfter,omitempty"`
}

func agentEntries(agents []NamedEngine) []agentEntry {
	entries := make([]agentEntry, 0, len(agents))
	for _, a := range agents {
		entries = append(entries, agentEntry{a.Name, a.Ponder, a.Filler, a.FillerAfter})
	}
	return entries
}

// askEntry is what an engine asked.
type askEntry struct {
	CallID  string `json:"callId,omitempty"`
	Name    string `json:"name,omitempty"`
	Summary string `json:"summary,omitempty"`
	Risky   bool   `json:"risky,omitempty"`
}

// errorEntry is an error as far as a client may see it. One without a code has no words here: they may name anything.
type errorEntry struct {
	Code  protocol.Code `json:"code,omitempty"`
	Words string        `json:"words,omitempty"`
}

// The kinds of inputs.
const (
	kindJoined    = "joined"
	kindLeft      = "left"
	kindClient    = "client"
	kindAudio     = "audio"
	kindMalformed = "malformed"
	kindHeard     = "heard"
	kindSaid      = "said"
	kindTaken     = "taken"
	kindSpoken    = "spoken"
	kindFilled    = "filled"
	kindOffered   = "offered"
	kindFollowed  = "followed"
	kindTick      = "tick"
	kindEnd       = "end"
)

// journal writes one. A nil one writes nothing. When writing fails the journal ends and the session goes on; the error
// is told once.
type journal struct {
	w      io.WriteCloser
	began  time.Time
	peers  map[Peer]int
	buf    []byte
	failed func(error)
}

func (s *Session) startJournal() {
	if s.cfg.Journal == nil {
		return
	}
	w := s.cfg.Journal()
	if w == nil {
		return
	}
	s.journal = &journal{w: w, began: s.now, peers: map[Peer]int{}, failed: func(err error) {
		s.cfg.Metrics.journalFailed()
		s.log.Error("the journal of this session ends here", "error", err)
	}}
	c := s.cfg
	settings, _ := json.Marshal(s.asked)
	var vad *protocol.VAD
	if c.Detector != nil {
		vad = &c.VAD
	}
	s.journal.write(journalHead{
		VAD:     vad,
		Journal: 2, ID: c.ID, Protocol: c.Version, Turns: c.Turns,
		Agents: agentEntries(c.Agents), Transcriber: c.Transcriber != nil, Voices: c.voiceList(),
		Limits:   [7]time.Duration{c.Window, c.MaxAudio, c.Recognise, c.AgentSilent, c.Idle, c.Approve, c.ToolSilent},
		Settings: settings, Began: s.now.UnixNano(),
	})
}

func (j *journal) write(entry any) {
	if j == nil || j.w == nil {
		return
	}
	b, err := json.Marshal(entry)
	if err != nil {
		j.fail(err)
		return
	}
	j.line(append(b, '\n'))
}

// line writes a whole one at once, so that a crash cuts at most the last.
func (j *journal) line(b []byte) {
	if _, err := j.w.Write(b); err != nil {
		j.fail(err)
	}
}

func (j *journal) fail(err error) {
	j.close()
	j.failed(err)
}

func (j *journal) close() {
	if j != nil && j.w != nil {
		_ = j.w.Close() // every line was written when it came: there is nothing to flush
		j.w = nil
	}
}

// input writes what the mailbox took. Speech, which is nearly all of it, is written without another look.
func (j *journal) input(now time.Time, in input) {
	if j == nil || j.w == nil {
		return
	}
	at := now.Sub(j.began).Nanoseconds()
	if m, ok := in.(fromClient); ok {
		if _, audio := m.message.(protocol.InputAudioAppend); audio {
			j.buf = j.appendClient(j.buf[:0], at, m)
			j.line(j.buf)
			return
		}
	}
	e := j.entry(now, in)
	j.write(entry{At: at, In: &e})
}

// appendClient is the entry of an event whose JSON is known to be good.
func (j *journal) appendClient(dst []byte, at int64, m fromClient) []byte {
	dst = append(dst, `{"at":`...)
	dst = strconv.AppendInt(dst, at, 10)
	dst = append(dst, `,"in":{"kind":"client","peer":`...)
	dst = strconv.AppendInt(dst, int64(j.peers[m.peer]), 10)
	dst = append(dst, `,"client":`...)
	dst = protocol.AppendEnvelope(dst, protocol.Envelope{ID: m.ref, Message: m.message})
	return append(dst, "}}\n"...)
}

// event writes what came of it.
func (j *journal) event(e Event) {
	if j == nil || j.w == nil {
		return
	}
	j.buf = append(j.buf[:0], `{"event":`...)
	j.buf = appendEvent(j.buf, e)
	j.buf = append(j.buf, "}\n"...)
	j.line(j.buf)
}

// appendEvent is an event as version 2 writes it, which has all of it.
func appendEvent(dst []byte, e Event) []byte {
	return protocol.AppendEnvelope(dst, protocol.Envelope{Seq: e.Seq, TS: e.At, Message: e.Message})
}

func (j *journal) entry(now time.Time, in input) inputEntry {
	switch in := in.(type) {
	case joined:
		j.peers[in.peer] = len(j.peers) + 1
		return inputEntry{Kind: kindJoined, Peer: j.peers[in.peer], Seat: in.hello.Seat, Resume: in.hello.Resume, After: in.hello.After, Order: in.hello.Order}
	case left:
		return inputEntry{Kind: kindLeft, Peer: j.peers[in.peer]}
	case fromClient:
		if audio, ok := in.message.(Audio); ok {
			return inputEntry{Kind: kindAudio, Peer: j.peers[in.peer], PCM: audio.PCM}
		}
		event := protocol.AppendEnvelope(nil, protocol.Envelope{ID: in.ref, Message: in.message})
		return inputEntry{Kind: kindClient, Peer: j.peers[in.peer], Client: event}
	case malformed:
		return inputEntry{Kind: kindMalformed, Peer: j.peers[in.peer], Ref: in.ref, Error: errorOf(in.err)}
	case heard:
		return inputEntry{Kind: kindHeard, Text: in.transcript.Text, Final: in.transcript.Final, Ended: in.ended, Error: errorOf(in.err), Behind: behind(now, in.at)}
	case said:
		return saidEntry(now, in)
	case taken:
		return inputEntry{Kind: kindTaken}
	case piece:
		return in.entry(now, kindSpoken)
	case filled:
		return piece(in).entry(now, kindFilled)
	case offered:
		return inputEntry{Kind: kindOffered}
	case Followed:
		return in.entry()
	case ended:
		return inputEntry{Kind: kindEnd, Why: string(endReason(in.cause))}
	}
	return inputEntry{Kind: kindTick}
}

// behind is how long something waited that was made at a time; 0 where nothing was.
func behind(now, at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return now.Sub(at).Nanoseconds()
}

func (p piece) entry(now time.Time, kind string) inputEntry {
	return inputEntry{Kind: kind, PCM: speech.Bytes(p.chunk.Samples), Rate: p.chunk.Rate, Ended: p.ended, Error: errorOf(p.err), Last: p.last, Behind: behind(now, p.at)}
}

func (g Followed) entry() inputEntry {
	e := inputEntry{Kind: kindFollowed, Source: g.Source, Type: g.Payload.SignalType()}
	e.Signal, _ = json.Marshal(g.Payload)
	return e
}

func saidEntry(now time.Time, in said) inputEntry {
	e := inputEntry{Kind: kindSaid, Ended: in.ended, Error: errorOf(in.err)}
	if in.asks != nil {
		asked := askEntry(in.asks.Question)
		e.Asks = &asked
	}
	if in.payload != nil {
		e.Type = in.payload.SignalType()
		e.Signal, _ = json.Marshal(in.payload)
		e.Behind = now.Sub(in.at).Nanoseconds()
	}
	return e
}

func errorOf(err error) *errorEntry {
	if err == nil {
		return nil
	}
	var known coded
	if errors.As(err, &known) {
		return &errorEntry{known.Code(), known.Error()}
	}
	return &errorEntry{}
}

// error is what stands for the error in a replay.
func (e *errorEntry) error() error {
	switch {
	case e == nil:
		return nil
	case e.Code == "":
		return errRecorded
	}
	return &refusal{e.Code, e.Words}
}

var errRecorded = errors.New("session: an error without a code, as recorded")

// read is the input again.
func (e inputEntry) read(now time.Time, peers map[int]Peer) (input, error) {
	peer := peers[e.Peer]
	switch e.Kind {
	case kindJoined:
		peer = &deafPeer{}
		peers[e.Peer] = peer
		if e.Seat < 0 || e.Seat >= seats {
			return nil, errBadEntry
		}
		return joined{peer, Hello{Seat: e.Seat, Resume: e.Resume, After: e.After, Order: e.Order}}, nil
	case kindHeard:
		return heard{transcript: speech.Transcript{Text: e.Text, Final: e.Final}, ended: e.Ended, err: e.Error.error(), at: e.at(now)}, nil
	case kindSaid:
		return e.readSaid(now)
	case kindTaken:
		return taken{}, nil
	case kindSpoken:
		return e.readPiece(now), nil
	case kindFilled:
		return filled(e.readPiece(now)), nil
	case kindOffered:
		return offered{}, nil
	case kindFollowed:
		payload, err := signal.DecodePayload(e.Type, e.Signal)
		return Followed{e.Source, payload}, err
	case kindTick:
		return tick{}, nil
	case kindEnd:
		return ended{causeOf(e.Why)}, nil
	}
	if peer == nil {
		return nil, errBadEntry
	}
	switch e.Kind {
	case kindLeft:
		return left{peer}, nil
	case kindAudio:
		return fromClient{peer, "", Audio{PCM: e.PCM}}, nil
	case kindMalformed:
		return malformed{peer, e.Ref, e.Error.error()}, nil
	case kindClient:
		m, err := protocol.DecodeEnvelope(e.Client, protocol.Client)
		return fromClient{peer, m.ID, m.Message}, err
	}
	return nil, errBadEntry
}

// at is when it was made.
func (e inputEntry) at(now time.Time) time.Time { return now.Add(-time.Duration(e.Behind)) }

func (e inputEntry) readPiece(now time.Time) piece {
	chunk := speech.Chunk{Samples: speech.Samples(e.PCM), Rate: e.Rate}
	return piece{chunk: chunk, ended: e.Ended, err: e.Error.error(), last: e.Last, at: e.at(now)}
}

func (e inputEntry) readSaid(now time.Time) (input, error) {
	in := said{ended: e.Ended, err: e.Error.error(), at: e.at(now)}
	if e.Asks != nil {
		in.asks = &question{turn.Question(*e.Asks), make(chan turn.Answer, 1)}
	}
	if e.Type == "" {
		return in, nil
	}
	payload, err := signal.DecodePayload(e.Type, e.Signal)
	in.payload = payload
	return in, err
}

func causeOf(why string) error {
	if protocol.EndReason(why) == protocol.EndShutdown {
		return ErrShutdown
	}
	return errRecorded
}

// deafPeer sits where a client sat.
type deafPeer struct{ _ byte } // not empty: two of them must differ

func (*deafPeer) Send(Event)                       {}
func (*deafPeer) Resend([]Event)                   {}
func (*deafPeer) Close(protocol.CloseCode, string) {}
