package script

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"vela/gateway/client"
	"vela/protocol"
)

// FromJournal makes a scripted turn of a session's journal (vela serve --journal): what its clients sent, and as
// expectations the events that came of it. It passes against a gateway of the same settings, agent and recogniser.
//
// What differs from one run to the next stands as a placeholder: ids, tokens and times; so do the words of errors. What
// concerned only one connection is not in a journal, so answers such as errors and histories are passed over; and so are
// partial transcripts of speech, which depend on how fast the recogniser is. A session that a room took part in, or that
// ended with its process, is scripted up to there.
func FromJournal(r io.Reader) (string, error) {
	w := scribe{lines: bufio.NewScanner(r), seats: map[int]string{}}
	w.lines.Buffer(nil, maxJournalLine)
	if err := w.begin(); err != nil {
		return "", err
	}
	for n := 2; !w.over && w.lines.Scan(); n++ {
		var line journalLine
		if err := json.Unmarshal(w.lines.Bytes(), &line); err != nil {
			if !w.lines.Scan() {
				break // a crash cut the last line off
			}
			return "", fmt.Errorf("line %d of the journal: %w", n, err)
		}
		if err := w.take(line); err != nil {
			return "", fmt.Errorf("line %d of the journal: %w", n, err)
		}
	}
	w.flush()
	if w.here && w.quiet {
		w.add("%ssilent 200ms", w.colon())
	}
	return w.out.String(), w.lines.Err()
}

const maxJournalLine = 4 << 20

// journalLine is a line of a journal after its first: an input or an event. journalStart is the first.
type (
	journalLine struct {
		At int64 // ns since the session began
		In *struct {
			Kind   string
			Peer   int
			Seat   int
			Resume bool
			After  uint64
			Ref    string
			Client json.RawMessage
			PCM    []byte
			Error  *struct{ Code protocol.Code }
		}
		Event json.RawMessage
	}
	journalStart struct {
		Journal, Protocol int
		ID, Turns         string
		Settings          json.RawMessage
	}
)

// scribe writes a script line by line.
type scribe struct {
	lines *bufio.Scanner
	out   strings.Builder
	head  journalStart
	over  bool

	seats map[int]string // names of peers' connections
	peer  int            // who sits there
	here  bool           // somebody does

	greeted bool                // somebody did from the beginning
	owing   []protocol.Envelope // events that are still to be expected
	known   []protocol.Envelope // all events so far

	state protocol.State
	quiet bool // the last event said idle
	at    int64
	spoke int64 // when audio last came; 0 after anything else
	heard int64 // when the last event that is expected came
	slow  bool  // a longer within is in force
}

func (w *scribe) add(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

func (w *scribe) begin() error {
	if !w.lines.Scan() || json.Unmarshal(w.lines.Bytes(), &w.head) != nil || w.head.Journal == 0 {
		return errors.New("this is no journal of a session: its first line says nothing about one")
	}
	if w.head.Journal != 2 {
		return fmt.Errorf("this journal is of format %d; this program reads format 2", w.head.Journal)
	}
	w.state = protocol.Idle
	w.add("# The session %s, from its journal.\n", w.head.ID)
	w.add("within %v", patience)
	return nil
}

// patience is how long an expectation may take where the journal shows nothing longer.
const patience = 10 * time.Second

// take writes one line.
func (w *scribe) take(l journalLine) error {
	if l.Event != nil {
		return w.event(l.Event)
	}
	if l.In == nil {
		return errors.New("neither an input nor an event")
	}
	in := l.In
	if in.Seat != 0 {
		w.stop("A room took part from here on.")
		return nil
	}
	since := l.At - w.at
	w.at = l.At
	switch in.Kind {
	case "joined":
		w.flush()
		return w.joined(in.Peer, in.Resume, in.After)
	case "left":
		w.flush()
		if in.Peer == w.peer && w.here {
			w.add("%sdrop", w.colon())
			w.here = false
		}
	case "client":
		w.flush()
		return w.client(in.Peer, in.Client)
	case "audio":
		w.flush()
		w.pause(l.At)
		w.add("%s>binary %s", w.name(in.Peer), hex.EncodeToString(in.PCM))
		w.spoke = l.At
	case "malformed":
		w.flush()
		w.malformed(in.Peer, in.Ref)
	case "followed":
		w.flush()
		w.stop("From here on the session shows what agents of other sources do.")
	case "end":
		w.flush()
		w.stop("The session ended with its process here.")
	default: // what the recogniser, the agent and the clock did
		w.wait(since)
	}
	return nil
}

func (w *scribe) stop(why string) {
	w.flush()
	w.add("# %s", why)
	w.over, w.quiet = true, false
}

// wait lets expectations take as long as the journal shows.
func (w *scribe) wait(since int64) {
	d := time.Duration(since)
	switch long := d > patience/2; {
	case long:
		w.flush()
		w.add("within %v", min(maxLength, (2*d).Round(time.Second)))
	case w.slow:
		w.flush()
		w.add("within %v", patience)
	}
	w.slow = d > patience/2
}

// pause keeps the pace of audio, which a gateway holds to the speed of speech. To expect what came in between takes its
// own time already.
func (w *scribe) pause(at int64) {
	if gap := time.Duration(at - max(w.spoke, w.heard)); w.spoke != 0 && gap >= 5*time.Millisecond {
		w.add("wait %v", min(maxLength, gap.Round(time.Millisecond)))
	}
}

func (w *scribe) joined(peer int, resume bool, after uint64) error {
	old := w.colon()
	taken := w.here
	w.seats[peer] = fmt.Sprintf("p%d", peer)
	w.peer, w.here = peer, true
	switch {
	case w.head.Protocol < 2:
		w.add("connect as %s turns=%s", w.seats[peer], w.head.Turns)
		w.add(`%s< {"type":"session.ready","payload":{"sessionId":"<uuid>"}}`, w.seats[peer])
		w.add(`%s< {"type":"session.state","payload":{"value":"%s"}}`, w.seats[peer], w.state)
		w.add(`pass {"type":"error","payload":"<any>"}`)
		w.passPartials()
	case resume && !w.greeted:
		return errors.New("this session began in another process, whose journal has its beginning: make the script of that one")
	case resume:
		w.resume(peer, after)
	default:
		w.add("connect as %s turns=%s protocol=%s", w.seats[peer], w.head.Turns, client.Version2)
		w.add(`%s> {"type":"session.start","payload":%s}`, w.seats[peer], w.settings())
		w.add(`%s< {"type":"session.ready","payload":{"resumeToken":"<token:text>","...":"<any>"},"seq":"<none>"}`, w.seats[peer])
		w.add(`pass {"type":"<text>","payload":"<any>","seq":"<none>"}`)
		w.passPartials()
	}
	w.greeted = true
	if taken {
		w.add("%sclosed 4002", old)
	}
	return nil
}

func (w *scribe) settings() string {
	if s := w.head.Settings; len(s) > 0 && string(s) != "null" {
		return string(s)
	}
	return "{}"
}

// passPartials lets the recogniser say as much or as little on the way as it likes. In version 2 that leaves the numbers
// of what follows open, see expect.
func (w *scribe) passPartials() {
	if w.agent() {
		w.add(`pass {"type":"transcript.partial","payload":{"text":"<text>","...":"<any>"}}`)
	}
}

// agent says whether speech may be recognised.
func (w *scribe) agent() bool {
	return w.head.Turns == "agent" || bytes.Contains(w.head.Settings, []byte(`"agent"`))
}

func (w *scribe) resume(peer int, after uint64) {
	last := uint64(0)
	if n := len(w.known); n > 0 {
		last = w.known[n-1].Seq
	}
	recovered := after <= last
	number := fmt.Sprint(after)
	if w.agent() && recovered { // with other partial transcripts the numbers are others
		after = w.expected(after)
		if number = "0"; after > 0 {
			number = fmt.Sprintf("seen%d", after)
		}
	}
	w.add("resume as %s token=token after=%s", w.seats[peer], number)
	w.add(`%s< {"type":"session.ready","payload":{"resumed":true,"recovered":%t,"resumeToken":"<token:text>","...":"<any>"},"seq":"<none>"}`, w.seats[peer], recovered)
	for _, e := range w.known {
		if recovered && e.Seq > after {
			w.owing = append(w.owing, e)
		}
	}
}

// expected is the last event up to this one that an expectation gave its number a name.
func (w *scribe) expected(seq uint64) (found uint64) {
	for _, e := range w.known {
		if _, partial := e.Message.(protocol.TranscriptPartial); !partial && e.Seq <= seq {
			found = e.Seq
		}
	}
	return found
}

// client writes what a client sent.
func (w *scribe) client(peer int, text json.RawMessage) error {
	e, err := protocol.DecodeEnvelope(text, protocol.Client)
	if err != nil {
		return err
	}
	if _, ok := e.Message.(protocol.InputAudioAppend); ok {
		w.pause(w.at)
		w.spoke = w.at
	} else {
		w.spoke = 0
	}
	if w.head.Protocol < 2 {
		text = protocol.Encode(e.Message)
	}
	w.add("%s> %s", w.name(peer), text)
	if _, ok := e.Message.(protocol.SessionStart); ok && w.head.Protocol < 2 {
		w.add(`%s< {"type":"session.ready","payload":{"sessionId":"<uuid>"}}`, w.name(peer))
		w.add(`%s< {"type":"session.state","payload":{"value":"%s"}}`, w.name(peer), w.state)
	}
	return nil
}

// malformed stands for what was no event, which the journal does not keep.
func (w *scribe) malformed(peer int, ref string) {
	id, _ := json.Marshal(ref)
	if ref == "" {
		id = []byte("null")
	}
	w.add(`%s> {"type":"no event, and not what was sent","payload":{},"id":%s}`, w.name(peer), id)
}

// event keeps an event until the input that it came of is over: who joins is told first.
func (w *scribe) event(text json.RawMessage) error {
	e, err := protocol.DecodeEnvelope(text, protocol.Server)
	if err != nil {
		return err
	}
	if s, ok := e.Message.(protocol.SessionState); ok {
		w.state = s.Value
	}
	w.known = append(w.known, e)
	if w.here {
		w.owing = append(w.owing, e)
		if _, partial := e.Message.(protocol.TranscriptPartial); !partial || !w.agent() {
			w.heard = w.at
		}
	}
	return nil
}

// flush writes the expectations that are owed.
func (w *scribe) flush() {
	if !w.here {
		w.owing = nil
		return
	}
	for _, e := range w.owing {
		w.expect(e)
	}
	w.owing = nil
}

func (w *scribe) expect(e protocol.Envelope) {
	var pattern string
	switch m := e.Message.(type) {
	case protocol.TranscriptPartial:
		if w.agent() {
			return
		}
	case protocol.TurnMetrics:
		pattern = fmt.Sprintf(`{"turnId":%q,"gatewayMs":"<number>","totalMs":"<number>","...":"<any>"}`, m.TurnID)
	case protocol.Error:
		pattern = fmt.Sprintf(`{"code":%q,"message":"<text>","...":"<any>"}`, m.Code)
	}
	seq := e.Seq
	e.Seq = 0
	text := protocol.AppendEnvelope(nil, e)
	if w.head.Protocol < 2 {
		if text = protocol.Encode(e.Message); len(text) == 0 {
			return
		}
	}
	line := strings.TrimSuffix(string(text), "}")
	if pattern != "" {
		line = fmt.Sprintf(`{"type":%q,"payload":%s`, e.Message.Type(), pattern)
	}
	switch {
	case w.head.Protocol < 2:
		w.add("%s< %s}", w.name(w.peer), line)
	case w.agent():
		w.add(`%s< %s,"seq":"<seen%d:number>"}`, w.name(w.peer), line, seq)
	default:
		w.add(`%s< %s,"seq":%d}`, w.name(w.peer), line, seq)
	}
	s, idle := e.Message.(protocol.SessionState)
	w.quiet = idle && s.Value == protocol.Idle
	if _, ok := e.Message.(protocol.SessionEnded); ok {
		w.add("%sclosed", w.colon())
		w.here, w.quiet = false, false
	}
}

// name is what stands before a step of a peer's, colon before a step that is a word.
func (w *scribe) name(peer int) string { return w.seats[peer] }

func (w *scribe) colon() string { return w.seats[w.peer] + ": " }
