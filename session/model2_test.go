package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
	"vela/session"
	"vela/turn/deterministic"
)

// TestAgainstTheModel2 lets two seats do anything, legal or not: sockets and rooms come, take over, leave, resume, speak,
// type and cancel. The session's journal says in which order it took what came; the model below says for each of these
// inputs what follows, exactly: the events, whom they are shown to, and what one peer alone is told.
func TestAgainstTheModel2(t *testing.T) {
	t.Parallel()
	streams := 800
	if testing.Short() {
		streams = 200
	}
	for seed := range streams {
		synctest.Test(t, func(t *testing.T) { randomSession(t, rand.New(rand.NewPCG(uint64(seed), 5))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// records are what a session took, did and showed, in order.
type records struct {
	mu     sync.Mutex // the session's goroutine writes, the test reads
	all    []moment
	events []session.Event // the session's own, as the journal has them
	bad    error
}

// moment is an input, or else what came of one.
type moment struct {
	in  *taken2
	out string
}

// taken2 is an input as a journal has it.
type taken2 struct {
	at     int64           // ns
	Kind   string          `json:"kind"`
	Peer   int             `json:"peer"`
	Seat   int             `json:"seat"`
	Resume bool            `json:"resume"`
	After  uint64          `json:"after"`
	Ref    string          `json:"ref"`
	Client json.RawMessage `json:"client"`
	PCM    []byte          `json:"pcm"`
	likely []float32       // how likely its frames are speech, of a line of its own
	Error  *struct {
		Code protocol.Code `json:"code"`
	} `json:"error"`
	Text  string `json:"text"`
	Final bool   `json:"final"`
	Ended bool   `json:"ended"`
	Asks  *struct {
		Name string `json:"name"`
	} `json:"asks"`
	Type   string          `json:"type"`
	Signal json.RawMessage `json:"signal"`
}

// Write takes a line of the journal.
func (r *records) Write(line []byte) (int, error) {
	var l struct {
		Journal int
		At      int64
		In      *taken2
		Likely  []float32
		Event   json.RawMessage
	}
	err := json.Unmarshal(line, &l)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
	case l.Likely != nil:
		r.all[len(r.all)-1].in.likely = l.Likely // it comes before all that comes of it
	case l.In != nil:
		l.In.at = l.At
		r.all = append(r.all, moment{in: l.In})
	case l.Event != nil:
		var e protocol.Envelope
		e, err = protocol.DecodeEnvelope(l.Event, protocol.Server)
		event := session.Event{Seq: e.Seq, At: e.TS, Message: e.Message}
		r.events = append(r.events, event)
		r.all = append(r.all, moment{out: brief2(event)})
	}
	if err != nil {
		r.bad = fmt.Errorf("%s: %w", line, err)
	}
	return len(line), nil
}

func (r *records) Close() error { return nil }

// guest is a [session.Peer] that has been given a number.
type guest struct {
	records *records
	number  int
}

func (g *guest) Send(e session.Event) { g.note(brief2(e)) }

func (g *guest) Resend(events []session.Event) {
	for _, e := range events {
		g.Send(e)
	}
}

func (g *guest) Close(code protocol.CloseCode, _ string) { g.note(fmt.Sprint("closed ", code)) }

func (g *guest) note(what string) {
	g.records.mu.Lock()
	defer g.records.mu.Unlock()
	g.records.all = append(g.records.all, moment{out: fmt.Sprintf("p%d %s", g.number, what)})
}

// brief2 is an event in few words, its number before them.
func brief2(e session.Event) string {
	words := e.Message.Type()
	switch m := e.Message.(type) {
	case protocol.SessionReady:
		words = fmt.Sprintf("ready %t %t %d %s %t %s %s", m.Resumed, m.Recovered, m.LastSeq, m.Turns, m.Interrupt, m.Audio.Input.Framing, m.TurnDetection)
	case protocol.SessionState:
		words = string(m.Value)
	case protocol.TranscriptPartial:
		words = fmt.Sprintf("? %s %s", m.ItemID, m.Text)
	case protocol.TranscriptFinal:
		words = fmt.Sprintf(". %s %s", m.ItemID, m.Text)
	case protocol.ResponseCreated:
		words = fmt.Sprintf("created %s %s", m.ResponseID, m.TurnID)
	case protocol.ResponseTextDelta:
		words = fmt.Sprintf("> %s %s", m.ResponseID, m.Text)
	case protocol.ResponseCompleted:
		words = fmt.Sprintf("completed %s %s", m.ResponseID, m.HeardText)
	case protocol.ResponseCancelled:
		words = fmt.Sprintf("cancelled %s %s %s", m.ResponseID, m.Reason, m.HeardText)
	case protocol.TurnMetrics:
		words = "metrics " + m.TurnID
	case protocol.Error:
		words = fmt.Sprintf("! %s %s", m.Code, m.Ref)
	case ganglia.Status:
		words = "doing " + string(m.Action)
	case ganglia.Artifact:
		words = "artifact " + string(m.ArtifactType)
	case protocol.ApprovalRequest:
		words = fmt.Sprintf("may %s %s", m.ApprovalID, m.Name)
	case protocol.History:
		words = fmt.Sprintf("history %d", len(m.Items))
	case protocol.SessionEnded:
		words = fmt.Sprintf("ended %s", m.Reason)
	}
	if e.Seq == 0 {
		return words
	}
	return fmt.Sprintf("#%d %s", e.Seq, words)
}

// randomSession plays about sixty random steps and holds what came of them against the model.
func randomSession(t *testing.T, r *rand.Rand) {
	rec := &records{}
	cfg := agentBacked(recogniser(countsWords), varied)
	cfg.Detector = loud
	cfg.Turns = pick(r, session.Agent, session.Agent, session.Deterministic)
	cfg.Mock = deterministic.Engine{Pace: pick(r, 0, 50*time.Millisecond)}
	cfg.Journal = func() io.WriteCloser { return rec }
	s := session.New(version2(cfg))
	asking := r.IntN(4) == 0 // much of what happens is about questions
	start := protocol.SessionStart{Approvals: &asking}
	open := cfg.Turns == session.Agent && r.IntN(2) == 0 // much of what happens is heard by open microphones
	if open {
		start.TurnDetection = "vad"
	}
	if err := s.Configure(start); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); s.Run(ctx) }()

	var guests []*guest
	come := func(h session.Hello) {
		guests = append(guests, &guest{rec, len(guests) + 1})
		_ = s.Join(t.Context(), guests[len(guests)-1], h) // it may be over already
	}
	come(session.Hello{})
	come(session.Hello{Seat: session.Room})
	for step := range 40 + r.IntN(40) {
		g := guests[len(guests)-1-r.IntN(min(4, len(guests)))] // some of them have been taken over, or have left
		switch r.IntN(24) {
		case 0:
			come(session.Hello{Seat: pick(r, session.Socket, session.Room)})
		case 1, 2:
			come(session.Hello{Seat: pick(r, session.Socket, session.Socket, session.Room), Resume: true, After: uint64(r.IntN(60))})
		case 3, 4:
			s.Leave(g)
		case 5:
			_ = s.Reject(t.Context(), g, fmt.Sprint("bad ", step), wordsError{protocol.CodeInvalidJSON, "{"})
		case 6:
			_ = s.Receive(t.Context(), g, "", session.Audio{PCM: make([]byte, pick(r, 0, 3, 640))})
		default:
			m := anyMessage(r)
			if asking && r.IntN(2) == 0 {
				m = pick[protocol.Message](r, typed("asks"), typed("asks"), anyAnswer(r), anyAnswer(r), anyAnswer(r))
			}
			if open && r.IntN(3) > 0 {
				level := pick(r, quiet, quiet, cough, words, words)
				for range r.IntN(8) {
					_ = s.Receive(t.Context(), g, "", overheard(level, 40*time.Millisecond))
					synctest.Wait()
				}
				m = overheard(level, pick(r, 40*time.Millisecond, 300*time.Millisecond, 700*time.Millisecond))
			}
			_ = s.Receive(t.Context(), g, fmt.Sprint("m", step), m)
		}
		switch r.IntN(6) {
		case 0, 1:
			synctest.Wait()
		case 2, 3:
			time.Sleep(pick(r, time.Millisecond, 30*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, time.Second))
		}
	}
	if r.IntN(2) == 0 {
		_ = s.Receive(t.Context(), guests[len(guests)-1], "", protocol.SessionClose{})
		synctest.Wait()
	}
	cancel(session.ErrShutdown)
	<-over
	if rec.bad != nil {
		t.Fatal(rec.bad)
	}
	agree(t, cfg, start, rec)
	rules2(t, rec.events)
}

func anyMessage(r *rand.Rand) protocol.Message {
	yes, no := true, false
	return pick[protocol.Message](r,
		piece, piece, piece, piece, protocol.InputAudioAppend{Chunk: "%"}, commit, commit, commit,
		typed("slow"), typed("slow"), typed(pick(r, "works", "works hard", "fails", "fails at once", "panics", "stops", "says nothing", "asks", "asks", "falls silent", "hello")),
		trigger, cancel, protocol.ResponseCancel{ResponseID: fmt.Sprint("r", 1+r.IntN(6))}, protocol.InputAudioClear{},
		sessionStart, protocol.SessionStart{Interrupt: pick(r, &yes, &no)}, protocol.SessionStart{Approvals: pick(r, &yes, &yes, &no)},
		anyAnswer(r), protocol.SessionStart{Turns: pick(r, "agent", "deterministic", "magic"), Interrupt: &yes},
		protocol.SessionStart{Audio: &protocol.AudioFormats{Input: &protocol.Format{Encoding: "pcm16", Rate: 16000, Framing: pick(r, "json", "binary")}}},
		protocol.SessionStart{TurnDetection: pick(r, "vad", "vad", "none")},
		protocol.HistoryGet{}, protocol.HistoryClear{}, protocol.PlaybackAck{ResponseID: "r1"}, protocol.SessionResume{Token: "the-token"})
}

func anyAnswer(r *rand.Rand) protocol.Message {
	return protocol.ApprovalAnswer{ApprovalID: fmt.Sprintf("a%d.1", 1+r.IntN(8)), Allow: r.IntN(2) == 0, Remember: r.IntN(4) == 0}
}

// agree plays the inputs to the model and compares what comes of each.
func agree(t *testing.T, cfg session.Config, start protocol.SessionStart, rec *records) {
	t.Helper()
	m := &model2{floor: -1, state: "idle", turns: string(cfg.Turns), interrupt: true, approvals: *start.Approvals, framing: "json", detection: "none"}
	if start.TurnDetection != "" {
		m.detection = start.TurnDetection
	}
	var story []string
	for i := 0; i < len(rec.all); {
		in := rec.all[i].in
		if in == nil {
			t.Fatalf("%s came of nothing", rec.all[i].out)
		}
		var got []string
		for i++; i < len(rec.all) && rec.all[i].in == nil; i++ {
			if what := rec.all[i].out; !strings.HasSuffix(what, " closed 4006") && !strings.Contains(what, "session_gone") { // it came too late to be seated
				got = append(got, what)
			}
		}
		m.out = nil
		m.step(*in)
		what, _ := json.Marshal(in)
		if len(what) > 200 {
			what = what[:200]
		}
		story = append(story, "<- "+string(what))
		story = append(story, got...)
		if !equal(got, m.out) {
			t.Fatalf("%s\nthe model says:\n%s", strings.Join(story[max(0, len(story)-60):], "\n"), strings.Join(m.out, "\n"))
		}
	}
	if !m.over {
		t.Error("the session did not end")
	}
}

// model2 is version 2 of the contract, once more: small, and without a goroutine or a clock.
type model2 struct {
	out []string // what comes of the present input

	seats [2]int // the numbers of the peers
	floor int    // a seat, or -1
	begun bool
	over  bool
	log   []string
	state string

	turns, framing string
	interrupt      bool

	items, asked int
	chunks       int
	hearing      bool
	committed    bool
	partial      string
	history      int

	detection string   // who ends a turn
	mics      [2]micOf // what each seat's microphone hears
	from      int      // whose speech is heard, with a detector
	voiced    int      // frames of it
	held      bool     // the answer is, for it
	wasHeld   bool     // the one that has just ended was

	answers   string // the id of the answer that runs; "" when none does
	mocked    bool
	text      string
	used      bool // a tool
	completed bool

	doing   string // the last status
	doingAt int64

	approvals bool
	open      map[string]string // what each open question is about
	questions int               // of the answer that runs
	standing  map[string]bool   // what was answered for good
}

func (m *model2) emit(format string, args ...any) {
	event := fmt.Sprintf("#%d %s", len(m.log)+1, fmt.Sprintf(format, args...))
	m.log = append(m.log, event)
	m.out = append(m.out, event)
	for _, p := range m.seats {
		if p != 0 {
			m.tell(p, "%s", event)
		}
	}
}

func (m *model2) tell(p int, format string, args ...any) {
	m.out = append(m.out, fmt.Sprintf("p%d %s", p, fmt.Sprintf(format, args...)))
}

func (m *model2) enter(state string) {
	m.state = state
	m.emit("%s", state)
}

func (m *model2) step(in taken2) {
	seat := -1
	for i, p := range m.seats {
		if p == in.Peer && p != 0 {
			seat = i
		}
	}
	switch in.Kind {
	case "joined":
		m.join(in)
	case "left":
		if seat >= 0 {
			m.seats[seat] = 0
		}
	case "tick":
		if m.overhears() && m.seats != [2]int{} && in.at-m.mics[m.from].last >= 2e9 {
			m.committed = true // nothing has come of it for two seconds
		}
	case "heard":
		m.heard(in)
	case "said":
		m.said(in)
	case "end":
		m.end("shutdown", "shutdown", 1001)
	case "client", "audio", "malformed":
		if seat >= 0 { // nobody else is listened to
			m.client(seat, in)
		}
	}
}

func (m *model2) join(in taken2) {
	if old := m.seats[in.Seat]; old != 0 {
		m.tell(old, "closed 4002")
	}
	if m.begun && m.seats == [2]int{} {
		for i := range m.mics {
			m.mics[i].last = in.at // nobody could have said anything
		}
	}
	m.seats[in.Seat] = in.Peer
	recovered := in.Resume && in.After <= uint64(len(m.log))
	first := !m.begun
	m.begun = true
	m.tell(in.Peer, "ready %t %t %d %s %t %s %s", in.Resume, recovered, len(m.log), m.turns, m.interrupt, m.framing, m.detection)
	switch {
	case recovered:
		for _, event := range m.log[in.After:] {
			m.tell(in.Peer, "%s", event)
		}
	case first:
		m.enter("idle")
	default:
		m.tell(in.Peer, "%s", m.state)
	}
}

func (m *model2) inFlight() bool { return m.answers != "" || m.committed }

// forget drops what is being said. An answer that was held for it goes on.
func (m *model2) forget() {
	m.chunks, m.hearing, m.committed, m.partial, m.floor = 0, false, false, "", -1
	if m.held {
		m.held = false
		m.enter(map[bool]string{true: "thinking", false: "speaking"}[m.text == ""])
	}
}

// micOf is a detector's endpoints, in frames of 32 ms: 7 of speech begin it, 19 of silence end it, a suspicion survives 2 of
// silence, and lasts no longer than 11.
type micOf struct {
	speaking             bool
	voiced, quiet, since int
	last                 int64
}

// add says whether speech begins or ends with the frame.
func (c *micOf) add(likely float32) (begins, ends bool) {
	if likely >= 0.5 {
		c.voiced, c.quiet = c.voiced+1, 0
	} else if likely < 0.35 || c.quiet > 0 {
		c.quiet++
	}
	if c.voiced == 0 {
		c.quiet = 0
		return false, false
	}
	c.since++
	switch {
	case !c.speaking && c.voiced == 7:
		c.speaking = true
		return true, false
	case !c.speaking && (c.quiet > 2 || c.since > 11), c.speaking && c.quiet == 19:
		ends = c.speaking
		*c = micOf{last: c.last}
	}
	return false, ends
}

// overhear is what an open microphone hears.
func (m *model2) overhear(seat int, in taken2) {
	c := &m.mics[seat]
	c.last = in.at
	for _, likely := range in.likely {
		begins, ends := c.add(likely)
		switch heard := m.overhears() && m.from == seat; {
		case heard && ends:
			m.committed = true
		case heard:
			m.voiced = c.voiced
		case begins:
			m.begin(seat)
		}
	}
}

// overhears says whether what an open microphone hears is heard.
func (m *model2) overhears() bool { return m.detection == "vad" && m.hearing && !m.committed }

// begin is speech: an answer is held for it.
func (m *model2) begin(seat int) {
	if m.committed || m.inFlight() && !(m.answers != "" && m.interrupt) || !m.speaks(seat) {
		return
	}
	if m.answers != "" {
		m.held = true
	}
	if m.answers != "" || m.state == "idle" {
		m.enter("listening")
	}
	m.items++
	m.hearing, m.from, m.voiced = true, seat, m.mics[seat].voiced
}

// says tells words from noise.
func (m *model2) says(text string) bool {
	return text != "" && (text != "oh" || m.detection == "none" || m.voiced*32 >= 400)
}

// talkedOver ends an answer that was held.
func (m *model2) talkedOver() {
	m.cut("barge_in")
	m.enter("listening")
}

// ended follows the end of an answer: what is being said goes on.
func (m *model2) ended() {
	m.enter(map[bool]string{true: "listening", false: "idle"}[m.wasHeld])
}

// mayEnd says whether a seat may end, or forget, what is being said. Who has left says nothing more, and the answer that was
// held for it goes on.
func (m *model2) mayEnd(seat int) bool {
	if m.inFlight() && !m.overhears() || !m.speaks(seat) {
		return false
	}
	if m.inFlight() && !m.overhears() {
		m.floor = -1
		return false
	}
	return true
}

// speaks says whether a seat may speak, and then the floor is its own.
func (m *model2) speaks(seat int) bool {
	if m.floor >= 0 && m.floor != seat {
		if m.seats[m.floor] != 0 {
			return false
		}
		m.forget()
	}
	m.floor = seat
	return true
}

func (m *model2) item() string { return fmt.Sprint("i", m.items) }

// ask follows the final transcript.
func (m *model2) ask(text string, mocked bool) {
	m.emit(". %s %s", m.item(), text)
	m.enter("thinking")
	m.asked++
	m.answers, m.mocked, m.text, m.completed, m.used = fmt.Sprint("r", m.asked), mocked, "", false, false
	m.open, m.questions, m.doing = map[string]string{}, 0, ""
	m.emit("created %s t%d", m.answers, m.asked)
}

// cut ends the answer, if there is one, before its end.
func (m *model2) cut(reason string) {
	if m.answers != "" {
		m.close("cancelled %s %s %s", m.answers, reason, m.text)
	}
}

func (m *model2) close(format string, args ...any) {
	if !m.mocked {
		m.history++
		if m.text != "" || m.used {
			m.history++
		}
	}
	m.answers, m.open, m.wasHeld, m.held = "", nil, m.held, false
	m.emit(format, args...)
	m.emit("metrics t%d", m.asked)
}

func (m *model2) end(reason, answer string, code int) {
	m.over = true
	m.cut(answer)
	m.emit("ended %s", reason)
	for _, p := range m.seats {
		if p != 0 {
			m.tell(p, "closed %d", code)
		}
	}
}

func (m *model2) heard(in taken2) {
	says := m.says(in.Text)
	switch {
	case in.Final && !says:
		held := m.held
		m.emit(". %s ", m.item())
		if m.forget(); !held {
			m.enter("idle")
		}
	case in.Final:
		if m.held {
			m.talkedOver()
		}
		m.forget()
		m.ask(in.Text, false)
	case in.Text != m.partial:
		m.partial = in.Text
		if m.held && !says {
			return
		}
		if m.held {
			m.talkedOver()
		}
		m.emit("? %s %s", m.item(), in.Text)
	}
}

func (m *model2) said(in taken2) {
	switch {
	case in.Asks != nil:
		m.question(in.Asks.Name)
	case in.Error != nil:
		code := in.Error.Code
		if code == "" {
			code = protocol.CodeAgentFailed
		}
		m.fail(code)
	case in.Ended && !m.completed:
		m.fail(protocol.CodeAgentFailed)
	case in.Ended:
		m.close("completed %s %s", m.answers, m.text)
		m.ended()
	default:
		m.signal(in)
	}
}

// question is an engine that asks; who cannot be asked, or has said so for good, is not.
func (m *model2) question(name string) {
	if _, known := m.standing[name]; known || !m.approvals {
		return
	}
	m.questions++
	id := fmt.Sprintf("a%d.%d", m.asked, m.questions)
	m.open[id] = name
	m.emit("may %s %s", id, name)
}

func (m *model2) approve(a protocol.ApprovalAnswer) protocol.Code {
	name, open := m.open[a.ApprovalID]
	if !open {
		var turn int
		if _, err := fmt.Sscanf(a.ApprovalID, "a%d.", &turn); err == nil && turn <= m.asked {
			return "" // it was settled meanwhile
		}
		return protocol.CodeInvalidMessage
	}
	delete(m.open, a.ApprovalID)
	if a.Remember {
		if m.standing == nil {
			m.standing = map[string]bool{}
		}
		m.standing[name] = a.Allow
	}
	return ""
}

func (m *model2) fail(code protocol.Code) {
	m.emit("! %s ", code)
	m.cut("error")
	m.ended()
}

func (m *model2) signal(in taken2) {
	p, _ := signal.DecodePayload(in.Type, in.Signal)
	switch p := p.(type) {
	case signal.TextDelta:
		if m.state == "thinking" {
			m.enter("speaking")
		}
		m.text += p.Content
		m.emit("> %s %s", m.answers, p.Content)
	case signal.Thinking:
		m.emit("thinking.delta")
	case signal.ToolCall:
		m.used = true
		m.emit("tool.call")
		if doing := map[string]string{"read": "reading_file", "list": "thinking", "clock": "thinking"}[p.ToolName]; doing != m.doing || in.at-m.doingAt > 500e6 {
			m.doing, m.doingAt = doing, in.at
			m.emit("doing %s", doing)
		}
	case signal.ToolResult:
		m.emit("tool.result")
		if !p.Success {
			m.emit("artifact error")
		}
	case signal.Completion:
		m.completed = true
	}
}

// client is what a peer that sits sends. What is refused changes nothing, and is told to that peer alone.
func (m *model2) client(seat int, in taken2) {
	ref, why := in.Ref, protocol.Code("")
	switch in.Kind {
	case "malformed":
		why = in.Error.Code
	case "audio":
		why = m.append(seat, in, (m.framing == "binary" || seat == 1) && len(in.PCM) > 0 && len(in.PCM)%2 == 0)
	default:
		e, _ := protocol.DecodeEnvelope(in.Client, protocol.Client)
		ref, why = e.ID, m.handle(seat, in, e.Message)
	}
	if why != "" {
		m.tell(m.seats[seat], "! %s %s", why, ref)
	}
}

func (m *model2) handle(seat int, in taken2, message protocol.Message) protocol.Code {
	me := m.seats[seat]
	switch message := message.(type) {
	case protocol.SessionClose:
		m.end("closed", "client", 1000)
	case protocol.SessionStart:
		return m.start(me, message)
	case protocol.InputAudioAppend:
		return m.append(seat, in, message.Chunk != "%" || m.turns == "deterministic")
	case protocol.InputAudioCommit:
		return m.commit(seat)
	case protocol.InputAudioClear:
		m.mics[seat] = micOf{last: m.mics[seat].last}
		if !m.mayEnd(seat) {
			return ""
		}
		held := m.held
		if m.forget(); !held {
			m.stop()
		}
	case protocol.ResponseCancel:
		if message.ResponseID == "" || message.ResponseID == m.answers {
			m.cut("client")
			m.forget()
			m.stop()
		}
	case protocol.InputTextSubmit:
		return m.submit(message.Text)
	case protocol.MockedTurnTrigger:
		if m.inFlight() {
			return m.running()
		}
		m.forget()
		m.enter("listening")
		m.items++
		m.ask(strings.TrimPrefix(question, ". "), true)
	case protocol.HistoryGet:
		m.tell(me, "history %d", m.history)
	case protocol.HistoryClear:
		if m.inFlight() {
			return m.running()
		}
		m.history, m.standing = 0, nil
		m.tell(me, "history 0")
	case protocol.ApprovalAnswer:
		return m.approve(message)
	case protocol.PlaybackAck: // of an answer without sound
	case protocol.SessionResume:
		return protocol.CodeInvalidMessage
	default:
		return protocol.CodeUnsupported
	}
	return ""
}

// running is the code for what cannot be had while a turn is in flight.
func (m *model2) running() protocol.Code {
	if m.answers != "" && m.mocked {
		return protocol.CodeMockedTurnInFlight
	}
	return protocol.CodeTurnInFlight
}

// stop brings the session to idle.
func (m *model2) stop() {
	if m.state != "idle" {
		m.enter("idle")
	}
}

func (m *model2) start(me int, ask protocol.SessionStart) protocol.Code {
	if b, _ := json.Marshal(ask); !bytes.Equal(b, []byte("{}")) {
		switch {
		case m.inFlight() || m.state != "idle":
			return protocol.CodeTurnInFlight
		case ask.Turns == "magic":
			return protocol.CodeUnsupported
		}
		turns, detection := m.turns, m.detection
		if ask.Turns != "" {
			turns = ask.Turns
		}
		if ask.TurnDetection != "" {
			detection = ask.TurnDetection
		}
		if detection == "vad" && turns != "agent" {
			return protocol.CodeUnsupported
		}
		m.detection, m.mics = detection, [2]micOf{}
		if ask.Turns != "" {
			m.turns = ask.Turns
		}
		if ask.Interrupt != nil {
			m.interrupt = *ask.Interrupt
		}
		if ask.Approvals != nil {
			m.approvals = *ask.Approvals
		}
		if ask.Audio != nil {
			m.framing = ask.Audio.Input.Framing
		}
	}
	m.tell(me, "ready false false %d %s %t %s %s", len(m.log), m.turns, m.interrupt, m.framing, m.detection)
	m.tell(me, "%s", m.state)
	return ""
}

func (m *model2) append(seat int, in taken2, good bool) protocol.Code {
	interrupts := m.answers != "" && m.interrupt
	switch {
	case m.detection == "vad" && !good:
		return protocol.CodeInvalidMessage
	case m.detection == "vad":
		m.overhear(seat, in)
		return ""
	case m.inFlight() && !interrupts:
		return ""
	case !good:
		return protocol.CodeInvalidMessage
	case !m.speaks(seat):
		return ""
	}
	if interrupts {
		m.cut("barge_in")
	}
	if interrupts || m.state == "idle" {
		m.enter("listening")
	}
	if m.turns == "agent" {
		if !m.hearing {
			m.items++
		}
		m.hearing = true
		return ""
	}
	if m.chunks++; m.chunks == 1 {
		m.items++
	}
	m.emit("? %s %s", m.item(), deterministic.Engine{}.Partial(m.chunks))
	return ""
}

func (m *model2) commit(seat int) protocol.Code {
	switch {
	case !m.mayEnd(seat):
		return m.running()
	case m.turns == "agent" && m.hearing:
		m.committed = true
		return ""
	case m.turns == "agent":
		m.forget()
		m.items++
		m.emit(". %s ", m.item())
		m.enter("idle")
		return ""
	}
	if m.chunks == 0 {
		m.items++
	}
	text := deterministic.Engine{}.Final(m.chunks)
	m.forget()
	m.ask(text, true)
	return ""
}

func (m *model2) submit(text string) protocol.Code {
	switch {
	case m.answers != "" && m.interrupt:
		m.cut("barge_in")
		m.enter("listening")
	case m.inFlight():
		return m.running()
	}
	m.forget()
	m.items++
	m.ask(text, m.turns == "deterministic")
	return ""
}

// rules2 are what holds of any session of version 2, whatever was sent, without knowing what was.
func rules2(t *testing.T, events []session.Event) {
	t.Helper()
	leads := map[protocol.State]string{ // to which phases each may lead
		"": "idle", protocol.Idle: "listening thinking idle", protocol.Listening: "listening thinking speaking idle",
		protocol.Thinking: "speaking idle listening", protocol.Speaking: "idle listening",
	}
	var state protocol.State
	open, turnID, before := "", "", "" // the answer that runs, and the type of the last event
	seen := map[string]bool{}
	for i, e := range events {
		n := i + 1
		if e.Seq != uint64(n) {
			t.Errorf("event %d has the number %d", n, e.Seq)
		}
		of := "" // which answer it is part of
		switch m := e.Message.(type) {
		case protocol.SessionState:
			if !strings.Contains(leads[state], string(m.Value)) {
				t.Errorf("event %d leads from %s to %s", n, state, m.Value)
			}
			state = m.Value
			if answering := state != protocol.Idle; open != "" && !answering { // listening: it is held
				t.Errorf("event %d is %s, and %s has not ended", n, state, open)
			}
		case protocol.TranscriptPartial:
			if state != protocol.Listening {
				t.Errorf("event %d is a partial transcript while %s", n, state)
			}
		case protocol.TranscriptFinal:
			if open != "" && (m.Text != "" || state != protocol.Listening) {
				t.Errorf("event %d is a final transcript while %s runs", n, open)
			}
		case protocol.ResponseCreated:
			if open != "" || seen[m.ResponseID] || state != protocol.Thinking {
				t.Errorf("event %d begins %s while %s and %q runs", n, m.ResponseID, state, open)
			}
			open, turnID, seen[m.ResponseID] = m.ResponseID, m.TurnID, true
		case protocol.ResponseTextDelta:
			if of = m.ResponseID; state != protocol.Speaking && state != protocol.Listening {
				t.Errorf("event %d is part of an answer while %s", n, state)
			}
		case protocol.ThinkingDelta, protocol.ToolCall, protocol.ToolResult, protocol.ApprovalRequest, ganglia.Status, ganglia.Artifact:
			if open == "" {
				t.Errorf("event %d is of an agent that nobody asked", n)
			}
		case protocol.ResponseCompleted:
			of = m.ResponseID
		case protocol.ResponseCancelled:
			of = m.ResponseID
		case protocol.TurnMetrics:
			if m.TurnID != turnID || before != "response.completed" && before != "response.cancelled" {
				t.Errorf("event %d measures %s after %s", n, m.TurnID, before)
			}
		case protocol.Error:
			if m.Ref != "" {
				t.Errorf("event %d answers %s, and is shown to all", n, m.Ref)
			}
		case protocol.SessionEnded:
			if n != len(events) || open != "" {
				t.Errorf("event %d ends the session, of %d events, while %q runs", n, len(events), open)
			}
		}
		if of != "" && of != open {
			t.Errorf("event %d is part of %s while %q runs", n, of, open)
		}
		now := e.Message.Type()
		if now == "response.completed" || now == "response.cancelled" {
			open = ""
		}
		if (before == "response.completed" || before == "response.cancelled") && now != "turn.metrics" ||
			before == "turn.metrics" && now != "session.state" && now != "session.ended" {
			t.Errorf("event %d, %s, follows %s", n, now, before)
		}
		before = now
	}
	if before != "session.ended" {
		t.Errorf("the last event is %s", before)
	}
}
