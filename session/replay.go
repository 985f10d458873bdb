package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session/speech"
	"vela/turn"
)

// Replayed is what became of a journal.
type Replayed struct {
	ID     string
	Inputs int
	Events int
	// Different is where the events that came differ from those that were recorded; nil if nowhere.
	Different *Difference
}

// Difference is the first event that came out differently.
type Difference struct {
	Line      int    // of the journal, from 1: the input that it came of
	Input     string // that line
	Want, Got string // the event as recorded, and as it came; empty where there was none
}

// maxVoices bounds what a journal can claim to have had.
const maxVoices = 16

var errBadEntry = errors.New("no input of a session")

// maxLine bounds a line of a journal: a message of 1 MiB, written in base64 within JSON, and what stands around it.
const maxLine = 4 << 20

// Replay runs a journal again and compares what comes of it. mock is the fixed turn, whose words are part of what is
// compared, and so are the packets of codec, which may be nil where the journal has no Opus: another libopus makes others. Its error is about the journal: one that cannot be read is not one that differs. A last line that was cut
// off, as a crash leaves it, is passed over.
func Replay(r io.Reader, mock Mock, codec speech.Codec) (Replayed, error) {
	p := &player{lines: bufio.NewScanner(r), peers: map[int]Peer{}}
	p.lines.Buffer(nil, maxLine)
	if err := p.head(mock, codec); err != nil {
		return p.out, err
	}
	for p.next() {
		if err := p.entry(); err != nil {
			return p.out, fmt.Errorf("line %d of the journal: %w", p.line, err)
		}
		if p.out.Different != nil {
			return p.out, nil
		}
	}
	p.settle("")
	return p.out, p.lines.Err()
}

// player replays one journal.
type player struct {
	lines  *bufio.Scanner
	line   int
	text   []byte
	back   bool      // text has been looked at, and is still to come
	likely []float32 // how likely the next frames of the present input are speech
	s      *Session
	began  time.Time
	peers  map[int]Peer
	out    Replayed

	came  [][]byte // events of the present input that no line has been compared with yet
	input string   // the line of the present input
	at    int      // and its number
}

func (p *player) next() bool {
	if p.back {
		p.back = false
		return true
	}
	if !p.lines.Scan() {
		return false
	}
	p.line++
	p.text = p.lines.Bytes()
	return true
}

// head makes the session as it was.
func (p *player) head(mock Mock, codec speech.Codec) error {
	var h journalHead
	if !p.next() || json.Unmarshal(p.text, &h) != nil || h.Journal == 0 {
		return errors.New("this is no journal of a session: its first line says nothing about one")
	}
	if h.Journal != 2 {
		return fmt.Errorf("this journal is of format %d; this program reads format 2", h.Journal)
	}
	cfg := Config{
		ID: h.ID, Version: h.Protocol, Turns: h.Turns, Mock: mock,
		Window: h.Limits[0], MaxAudio: h.Limits[1], Recognise: h.Limits[2], AgentSilent: h.Limits[3], Idle: h.Limits[4], Approve: h.Limits[5], ToolSilent: h.Limits[6],
		Log: slog.New(slog.DiscardHandler),
	}
	for _, a := range h.Agents {
		cfg.Agents = append(cfg.Agents, NamedEngine{Name: a.Name, Engine: recorded{}, Ponder: a.Ponder, Filler: a.Filler, FillerAfter: a.FillerAfter})
	}
	if h.Transcriber {
		cfg.Transcriber = recorded{}
	}
	for _, name := range h.Voices[:min(len(h.Voices), maxVoices)] {
		cfg.Voices = append(cfg.Voices, NamedVoice{Name: name, Synthesizer: recorded{}})
	}
	cfg.Allowance, cfg.Codec = p, codec
	if h.VAD != nil {
		cfg.Detector, cfg.VAD = func() VoiceDetector { return p }, *h.VAD
	}
	cfg.Mirror = func(*Session, string) {}
	cfg.Follow = func(context.Context, []string) iter.Seq[Followed] { return nil } // what came stands in the journal
	p.s = New(cfg)
	p.s.replayed = func(e Event) { p.came = append(p.came, appendEvent(nil, e)) }
	if err := p.configure(h.Settings); err != nil {
		return err
	}
	p.began = time.Unix(0, h.Began)
	p.s.now, p.s.lastSeen = p.began, p.began
	p.out.ID = h.ID
	return nil
}

func (p *player) configure(settings json.RawMessage) error {
	if len(settings) == 0 || string(settings) == "null" {
		return nil
	}
	var ask protocol.SessionStart
	if err := json.Unmarshal(settings, &ask); err != nil {
		return fmt.Errorf("the settings in the journal: %w", err)
	}
	return p.s.Configure(ask)
}

// entry takes one line: an input for the session, or an event to compare.
func (p *player) entry() error {
	var e entry
	if err := json.Unmarshal(p.text, &e); err != nil {
		if !p.lines.Scan() { // the last line, cut off
			return nil
		}
		return errors.New("it is no JSON")
	}
	switch {
	case e.Event != nil:
		p.compare(*e.Event)
		return nil
	case e.In == nil:
		return errBadEntry
	}
	p.settle("")
	if p.out.Different != nil {
		return nil
	}
	p.s.now = p.began.Add(time.Duration(e.At))
	in, err := e.In.read(p.s.now, p.peers)
	if err != nil {
		return err
	}
	p.input, p.at, p.likely = string(p.text), p.line, nil
	p.out.Inputs++
	return p.play(in)
}

// aside takes the next line if what it says is wanted, of what the session learnt at this point of an input. What came before
// it is compared first.
func (p *player) aside(wanted func(entry) bool) (e entry, ok bool) {
	for p.out.Different == nil && p.next() {
		e = entry{}
		switch json.Unmarshal(p.text, &e); {
		case e.Event != nil && len(p.came) > 0:
			p.compare(*e.Event)
			continue
		case wanted(e):
			return e, true
		}
		p.back = true
		break
	}
	return entry{}, false
}

// Take implements [Allowance], as it was answered when the journal was written.
func (p *player) Take(time.Duration) bool {
	_, spent := p.aside(func(e entry) bool { return e.Spent })
	return !spent
}

// Speech implements [VoiceDetector], as it was answered when the journal was written.
func (p *player) Speech([]int16) float32 {
	if len(p.likely) == 0 {
		e, _ := p.aside(func(e entry) bool { return len(e.Likely) > 0 })
		p.likely = append(e.Likely, 0) // in a journal that was tampered with
	}
	likely := p.likely[0]
	p.likely = p.likely[1:]
	return likely
}

// play gives the session an input. One that this session cannot have had is an error, not a crash.
func (p *player) play(in input) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("this input does not fit the session: %v", r)
		}
	}()
	if e, ok := in.(ended); ok {
		p.s.end(e.cause)
		return nil
	}
	if why := p.s.step(context.Background(), in); why != nil {
		p.s.end(why)
	}
	return nil
}

// compare takes the next event that came and holds it to the one recorded.
func (p *player) compare(want []byte) {
	got := []byte(nil)
	if len(p.came) > 0 {
		got, p.came = p.came[0], p.came[1:]
	}
	p.out.Events++
	if !bytes.Equal(got, want) {
		p.out.Different = &Difference{p.at, p.input, string(want), string(got)}
	}
}

// settle says that no more events of the present input are recorded.
func (p *player) settle(want string) {
	if len(p.came) > 0 && p.out.Different == nil {
		p.out.Different = &Difference{p.at, p.input, want, string(p.came[0])}
	}
	p.came = nil
}

// recorded stands for the agent and the recogniser, which are not asked again: the journal has what they said.
type recorded struct{}

// Run implements [turn.Engine].
func (recorded) Run(context.Context, turn.Request) iter.Seq2[signal.Payload, error] {
	return func(func(signal.Payload, error) bool) {}
}

// Synthesize implements [Synthesizer].
func (recorded) Synthesize(context.Context, string) iter.Seq2[speech.Chunk, error] {
	return func(func(speech.Chunk, error) bool) {}
}

// Transcribe implements [Transcriber].
func (recorded) Transcribe(context.Context, iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(func(speech.Transcript, error) bool) {}
}
