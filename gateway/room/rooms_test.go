package room

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
)

// stage is a line to a room of a test, and the people there.
type stage struct {
	air
	room    *Room
	ctx     context.Context
	people  []came
	excused []string // whom it left on purpose, and why
	gone    bool
}

func (s *stage) present() []came                     { return s.people }
func (s *stage) listen(context.Context, *microphone) {}
func (s *stage) play() speaker                       { return nil }
func (s *stage) excuse(people []string, why string)  { s.excused = append(people, why) }
func (s *stage) close()                              { s.mu.Lock(); defer s.mu.Unlock(); s.gone = true }
func (s *stage) closed() bool                        { s.mu.Lock(); defer s.mu.Unlock(); return s.gone }
func (s *stage) happens(in input)                    { s.room.post(s.ctx, in) }

// parrot answers with what was said; "wait" it answers when its turn is over.
type parrot struct{}

func (parrot) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		if !yield(signal.TextDelta{Content: fmt.Sprintf("%s %d", req.Text, len(req.History))}, nil) {
			return
		}
		if req.Text == "wait" {
			<-ctx.Done()
			return
		}
		yield(signal.Completion{}, nil)
	}
}

// house is rooms in a bubble, with lines in place of LiveKit.
type house struct {
	*Rooms
	t        *testing.T
	mu       sync.Mutex
	lines    []*stage
	sessions int
	ears     session.Transcriber
	follow   session.Follow // nil: its sessions may not
	tracer   trace.Tracer
	ready    func(*stage) error // before a connection is made; nil makes it
	wg       sync.WaitGroup
}

func open(t *testing.T, cfg Config) *house {
	t.Helper()
	h := &house{t: t}
	ctx, stop := context.WithCancelCause(t.Context())
	cfg.Key, cfg.Secret, cfg.URL = "key", "secret-secret-secret-secret-secret", "ws://nowhere"
	cfg.NewSession = func(ask protocol.SessionStart) (*session.Session, error) {
		h.sessions++
		s := session.New(session.Config{
			ID: fmt.Sprintf("%08d-session", h.sessions), Version: 2, Transcriber: h.ears, Follow: h.follow, Tracer: h.tracer, Token: "t", Turns: session.Agent, Mock: deterministic.Engine{},
			Agents: []session.NamedEngine{{Name: "parrot", Engine: parrot{}}, {Name: "other", Engine: parrot{}}}, Mirror: h.Mirror, Window: 10 * time.Minute, Idle: time.Hour,
		})
		if err := s.Configure(ask); err != nil {
			return nil, err
		}
		h.wg.Go(func() { s.Run(ctx) })
		return s, nil
	}
	h.Rooms = New(cfg)
	h.dial = func(ctx context.Context, r *Room, _ ticket) (line, error) {
		s := &stage{room: r, ctx: ctx}
		if h.ready != nil {
			if err := h.ready(s); err != nil {
				return nil, err
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, s)
		return s, nil
	}
	t.Cleanup(func() {
		h.shut()
		stop(session.ErrShutdown)
		h.wg.Wait()
	})
	return h
}

// join brings an agent into a room, and ann.
func (h *house) join(name string) *stage {
	h.t.Helper()
	if err := h.Join(name); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	s := h.last()
	s.happens(came{identity: "ann"})
	synctest.Wait()
	return s
}

func (h *house) last() *stage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[len(h.lines)-1]
}

func (h *house) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lines)
}

// says is what was said in a room, by everybody.
func (s *stage) says() string {
	synctest.Wait()
	var said []string
	for _, line := range s.described() {
		if strings.Contains(line, "chunk ") && !strings.HasPrefix(line, "ganglia") {
			said = append(said, line[strings.Index(line, "chunk ")+len("chunk xx 0 "):])
		}
	}
	return strings.Join(said, "|")
}

func TestATypedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		s.happens(typed{"ann", "hello"})
		if got := s.says(); got != "hello|hello 0" {
			t.Errorf("said: %s", got)
		}
		if !slices.ContainsFunc(s.described(), func(l string) bool { return strings.HasPrefix(l, "ann chunk") }) {
			t.Error("what ann wrote is not hers")
		}
		err := h.Join("kitchen")
		synctest.Wait()
		if err != nil || h.connections() != 1 || h.sessions != 1 {
			t.Errorf("%v; %d connections, %d sessions", err, h.connections(), h.sessions)
		}
	})
}

// Two ways into a room at once are one.
func TestTwoWaysIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		var left sync.WaitGroup
		left.Add(1)
		if err := errors.Join(h.Join("kitchen"), h.enter("kitchen", ticket{}, func(error) { left.Done() }), h.Join("kitchen")); err != nil {
			t.Fatal(err)
		}
		left.Wait() // the job of the second is over at once
		synctest.Wait()
		if h.connections() != 1 || h.sessions != 1 {
			t.Errorf("%d connections, %d sessions", h.connections(), h.sessions)
		}
	})
}

// What is to be heard is let go of with its answer, and held while somebody speaks.
func TestSoundFollowsTheSession(t *testing.T) {
	r := &Room{cfg: &Config{}, session: session.New(session.Config{ID: "12345678", Version: 2, Mock: deterministic.Engine{}}), end: make(chan error, 1)}
	p := newPeer(r, noop.Span{})
	send := func(m protocol.Message) { p.Send(session.Event{Message: m}) }
	send(protocol.SessionReady{Terms: &protocol.Terms{Audio: protocol.AudioFormats{Output: &protocol.Format{Encoding: "pcm16", Rate: outRate}}}})
	send(protocol.ResponseAudioDelta{ResponseID: "r1", Chunk: base64.StdEncoding.EncodeToString(make([]byte, 4*frameSize))})
	if n := p.player.ready(); n != 2*frameSize {
		t.Fatalf("%d samples wait", n)
	}
	send(protocol.SessionState{Value: protocol.Listening})
	if n := p.player.ready(); n != 0 {
		t.Errorf("%d samples would be played over who speaks", n)
	}
	send(protocol.SessionState{Value: protocol.Speaking})
	if n := p.player.ready(); n != 2*frameSize {
		t.Errorf("%d samples go on", n)
	}
	send(protocol.ResponseCancelled{ResponseID: "r1"})
	if n := p.player.ready(); n != 0 {
		t.Errorf("%d samples of an answer that was cut", n)
	}
	for code, why := range map[protocol.CloseCode]error{protocol.CloseTakenOver: errMoved, protocol.CloseIdle: errHold, protocol.CloseGoingAway: errShutdown, protocol.CloseInternal: errSession} {
		p.Close(code, "")
		if got := <-r.end; !errors.Is(got, why) {
			t.Errorf("%d: %v", code, got)
		}
	}
}

// An open microphone that is not heard, because somebody else speaks, is not heard from the middle on.
func TestWhoWasTalkedOverIsNotHeardLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		loud := slices.Repeat([]int16{8000, -8000}, 160)
		ann, bob := &microphone{who: who{"ann", "TR_1"}}, &microphone{who: who{"bob", "TR_2"}}
		s.happens(frame{ann, loud})
		s.happens(frame{bob, loud})
		synctest.Wait()
		if !s.room.peer.listens(ann) {
			t.Fatal("ann spoke first")
		}
		s.room.peer.note(protocol.TranscriptFinal{})
		s.happens(frame{bob, loud})
		synctest.Wait()
		if s.room.peer.listens(bob) {
			t.Error("bob has the floor in the middle of a word")
		}
		s.happens(fell{bob})
		s.happens(frame{bob, loud})
		synctest.Wait()
		if !s.room.peer.listens(bob) {
			t.Error("bob began anew")
		}
	})
}

// hears takes everything for the same word.
type hears string

func (h hears) Transcribe(ctx context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		for range audio {
		}
		if ctx.Err() == nil {
			yield(speech.Transcript{Text: string(h), Final: true}, nil)
		}
	}
}

// A microphone that was open for a moment and heard nothing is no turn; one that heard something is.
func TestSilenceIsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{NoContent: true})
		h.ears = hears("hello")
		s := h.join("kitchen")
		ann := &microphone{who: who{"ann", "TR_1"}}
		s.happens(frame{ann, make([]int16, 320)})
		s.happens(fell{ann})
		if got := s.says(); got != "" || s.room.peer.listens(ann) {
			t.Errorf("silence: said %q, listened to: %v", got, s.room.peer.listens(ann))
		}
		for range 2 {
			s.happens(frame{ann, slices.Repeat([]int16{8000, -8000}, 160)})
			s.happens(frame{ann, make([]int16, 320)})
			s.happens(fell{ann})
			synctest.Wait()
		}
		if got := s.says(); got != "hello|hello 0|hello|hello 2" {
			t.Errorf("said %q", got)
		}
	})
}

// An open microphone breaks no written turn off with its silence, nor with the rest of what was being said when somebody wrote;
// one that is unmuted in the middle of an answer does, as a button that is pressed.
func TestWhatIsWrittenIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{NoContent: true})
		s := h.join("kitchen")
		silence, loud := make([]int16, 320), slices.Repeat([]int16{8000, -8000}, 160)
		ann := &microphone{who: who{"ann", "TR_1"}, sid: "TR_1", packets: newWire()}
		s.happens(opened{ann})
		state := func() protocol.State {
			synctest.Wait()
			s.room.peer.mu.Lock()
			defer s.room.peer.mu.Unlock()
			return s.room.peer.state
		}
		s.happens(frame{ann, silence})
		if got := state(); got != protocol.Idle {
			t.Errorf("silence of a microphone that nobody has unmuted: %s", got)
		}
		s.happens(frame{ann, loud})
		if got := state(); got != protocol.Listening {
			t.Fatalf("speech: %s", got)
		}
		s.happens(typed{"bob", "wait"})
		synctest.Wait()
		for range 100 { // two seconds
			s.happens(frame{ann, loud})
		}
		for range 100 {
			s.happens(frame{ann, silence})
		}
		if got := state(); got != protocol.Speaking {
			t.Errorf("the answer to what was written is over: %s", got)
		}
		s.happens(muted{"TR_1", true})
		s.happens(fell{ann})
		s.happens(muted{"TR_1", false})
		s.happens(frame{ann, silence})
		if got := state(); got != protocol.Listening {
			t.Errorf("the button was pressed: %s", got)
		}
	})
}

// A microphone that was muted before the room knew it is muted.
func TestAMuteThatComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		for _, on := range []bool{true, false} {
			s.happens(muted{"TR_1", on})
			m := &microphone{who: who{"ann", "TR_1"}, sid: "TR_1", packets: newWire(), isMuted: func() bool { return on }}
			s.happens(opened{m})
			synctest.Wait()
			if m.muted.Load() != on {
				t.Errorf("muted: %v, want %v", m.muted.Load(), on)
			}
		}
	})
}

// Of two agents the one that came later leaves.
func TestASecondAgentLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		h.ready = func(s *stage) error {
			s.people = []came{{identity: "ann", first: true}, {identity: "agent-1", agent: true, first: true}}
			return nil
		}
		if err := h.Join("kitchen"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := h.last(); !s.closed() || h.connections() != 1 {
			t.Errorf("closed: %v, %d connections", s.closed(), h.connections())
		}
		h.ready = nil
		s := h.join("hall")
		s.happens(came{identity: "agent-2", agent: true})
		synctest.Wait()
		if s.closed() {
			t.Error("the first agent left, too")
		}
	})
}

// A connection that is lost is made again, with the same session, and what was missed is said once.
func TestALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{NoContent: true})
		s := h.join("kitchen")
		s.happens(typed{"ann", "one"})
		if got := s.says(); got != "one|one 0" {
			t.Fatalf("said: %s", got)
		}
		failures := 0
		h.ready = func(*stage) error {
			if failures++; failures <= 3 {
				return errUnreachable
			}
			return nil
		}
		sess := s.room.session
		s.room.over(errLost)
		synctest.Wait()
		if err := sess.Join(t.Context(), &nobody{}, session.Hello{}); err != nil { // a socket, meanwhile
			t.Fatal(err)
		}
		other := &nobody{}
		if err := sess.Join(t.Context(), other, session.Hello{}); err != nil {
			t.Fatal(err)
		}
		if err := sess.Receive(t.Context(), other, "", protocol.InputTextSubmit{Text: "two"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if again := h.last(); again == s || again.says() != "two|two 2" || h.sessions != 1 || !s.closed() {
			t.Errorf("said: %s; %d sessions", again.says(), h.sessions)
		}
		if got := strings.Join(h.last().was(), " "); got == "" || !strings.HasSuffix(got, "listening") {
			t.Errorf("the agent is %q", got)
		}
	})
}

// nobody is a peer that shows nothing.
type nobody struct{}

func (*nobody) Send(session.Event)               {}
func (*nobody) Resend([]session.Event)           {}
func (*nobody) Close(protocol.CloseCode, string) {}

// After a configured silence the agent says so and leaves; speech and packets of the client's put that off.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{Hold: time.Minute, NoContent: true})
		s := h.join("kitchen")
		pass(50 * time.Second)
		s.happens(command{"ann", []byte(`{"type":"anything"}`)})
		pass(50 * time.Second)
		s.happens(typed{"ann", "hello"})
		pass(59 * time.Second)
		if s.closed() {
			t.Fatal("too early")
		}
		pass(2 * time.Second)
		lines := s.described()
		if last := lines[len(lines)-1]; !s.closed() || last != `ganglia-events {"type":"session_hold","reason":"idle"}` {
			t.Errorf("closed: %v, last: %s", s.closed(), last)
		}
		if s = h.join("kitchen"); h.sessions != 1 {
			t.Errorf("%d sessions", h.sessions)
		}
		s.happens(typed{"ann", "again"})
		if got := s.says(); got != "again|again 2" {
			t.Errorf("said: %s", got)
		}
	})
}

func TestTheAgentLeavesAnEmptyRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		s.happens(came{identity: "bob"})
		s.happens(left{"ann"})
		pass(2 * time.Minute)
		if s.closed() {
			t.Fatal("bob is still there")
		}
		s.happens(left{"bob"})
		pass(59 * time.Second)
		s.happens(came{identity: "bob"})
		pass(time.Hour / 2)
		if s.closed() {
			t.Fatal("bob came back")
		}
		s.happens(left{"bob"})
		pass(61 * time.Second)
		if !s.closed() {
			t.Error("nobody is there")
		}
	})
}

// A session that names a room takes it from the one before, and leaves the room that it was in.
func TestASessionMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{NoContent: true})
		first := h.join("kitchen")
		sess, err := h.cfg.NewSession(protocol.SessionStart{Room: "kitchen"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		second := h.last()
		if second == first || !first.closed() || second.room.session != sess {
			t.Fatal("the room shows the session before")
		}
		second.happens(typed{"ann", "hello"})
		if got := second.says(); got != "hello|hello 0" {
			t.Errorf("said: %s", got)
		}
		p := &nobody{}
		if err := errors.Join(sess.Join(t.Context(), p, session.Hello{}), sess.Receive(t.Context(), p, "", protocol.SessionStart{Room: "hall"})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if third := h.last(); !second.closed() || third.room.name != "hall" || third.room.session != sess {
			t.Errorf("it is in %s", third.room.name)
		}
	})
}

// A call gets its own answer, whatever else is going on; one that is not taken gets the words.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		called := func(method, payload string) error {
			m, err := readCall(method, []byte(payload))
			if err != nil {
				return err
			}
			c := &call{identity: "ann", message: m, done: make(chan error, 1)}
			s.happens(c)
			return <-c.done
		}
		s.happens(typed{"ann", "wait"})
		for _, c := range []struct{ method, payload, fails string }{
			{"session.start", `{"agent":"other"}`, "Settings change between turns"},
			{"response.cancel", ``, ""},
			{"session.start", `{"agent":"other"}`, ""},
			{"session.start", `{"agent":"none"}`, "cannot give that agent"},
			{"session.start", `{"voice":"nobody"}`, "cannot give that voice"},
			{"session.start", `{"turns":"agent"}`, "agent, voice, approvals, interrupt"},
			{"session.start", `{"follow":["local:claude-code"]}`, "cannot give that follow"},
			{"session.start", `{"turnDetection":"vad"}`, "cannot give that turnDetection"},
			{"session.start", `{"turnDetection":"none"}`, ""},
			{"input_audio.clear", ``, ""},
			{"approval.answer", `{"approvalId":"a9.9","allow":true}`, "No such question"},
			{"input_text.submit", `{"text":"hello"}`, ""},
			{"history.clear", `{}`, ""},
			{"response.cancel", `{`, "no JSON"},
			{"response.cancel", `{},"x":{}`, "no JSON"},
			{"session.close", `{}`, "no such method"},
		} {
			err := called(c.method, c.payload)
			synctest.Wait()
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("%s %s: %v", c.method, c.payload, err)
			}
		}
		s.happens(command{"ann", []byte(`{"type":"end_voice_session"}`)})
		synctest.Wait()
		if !s.closed() {
			t.Error("it goes on")
		}
	})
}

// Who asks for the conversation gets it as the answer; of a long one, the newest that LiveKit carries.
func TestTheHistoryIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		s.happens(typed{"ann", "hello"})
		synctest.Wait()
		asked := &call{identity: "ann", message: protocol.HistoryGet{}, done: make(chan error, 1)}
		cleared := &call{identity: "bob", message: protocol.HistoryClear{}, done: make(chan error, 1), answer: []byte("{}")}
		s.happens(asked)
		s.happens(cleared)
		if err := errors.Join(<-asked.done, <-cleared.done); err != nil {
			t.Fatal(err)
		}
		var told protocol.History
		if err := json.Unmarshal(asked.answer, &told); err != nil || len(told.Items) != 2 || told.Items[1].Text != "hello 0" {
			t.Errorf("%s, %v", asked.answer, err)
		}
		if string(cleared.answer) != "{}" {
			t.Errorf("clearing is answered with %s", cleared.answer)
		}
	})
	var long protocol.History
	for i := range 100 {
		long.Items = append(long.Items, protocol.HistoryItem{Role: "user", Text: strings.Repeat("x", 1000), At: int64(i)})
	}
	c := new(call)
	c.tell(long)
	var told protocol.History
	if err := json.Unmarshal(c.answer, &told); err != nil || len(c.answer) > maxAnswer || len(told.Items) < 10 || told.Items[len(told.Items)-1].At != 99 {
		t.Errorf("%d items in %d bytes, %v", len(told.Items), len(c.answer), err)
	}
}

// What is said is forgotten when its speaker wants that, and the rest of it is not heard either. Nobody forgets it for another one.
func TestWhatIsBeingSaidIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		s := h.join("kitchen")
		loud := slices.Repeat([]int16{8000, -8000}, 160)
		ann := &microphone{who: who{"ann", "TR_1"}}
		clear := func(identity string) error {
			c := &call{identity: identity, message: protocol.InputAudioClear{}, done: make(chan error, 1)}
			s.happens(c)
			return <-c.done
		}
		s.happens(frame{ann, loud})
		synctest.Wait()
		if err := clear("bob"); !errors.Is(err, errNotYours) || !s.room.peer.listens(ann) {
			t.Fatalf("bob had ann forgotten: %v", err)
		}
		if err := clear("ann"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.happens(frame{ann, loud})
		synctest.Wait()
		if s.room.peer.listens(ann) {
			t.Error("the rest of it is heard")
		}
		s.happens(fell{ann})
		s.happens(frame{ann, loud})
		synctest.Wait()
		if !s.room.peer.listens(ann) {
			t.Error("what ann says next is not heard")
		}
	})
}

// The floor is who spoke first, until the final transcript or idle; who types has it.
func TestTheFloor(t *testing.T) {
	ann, bob := &microphone{who: who{"ann", "TR_1"}}, &microphone{who: who{"bob", "TR_2"}}
	p := &peer{changed: make(chan struct{}, 1), player: newPlayer(nil)}
	if !p.takeFloor(ann) || p.takeFloor(bob) || !p.listens(ann) || p.listens(bob) {
		t.Fatal("ann spoke first")
	}
	if from := p.note(protocol.TranscriptPartial{Text: "a"}); from != ann.who {
		t.Errorf("a partial transcript of %v", from)
	}
	if from := p.note(protocol.TranscriptFinal{Text: "a"}); from != ann.who {
		t.Errorf("the final transcript of %v", from)
	}
	if p.listens(ann) || !p.takeFloor(bob) {
		t.Error("bob may speak now")
	}
	p.writes("ann", "t1")
	if p.listens(bob) || p.takeFloor(bob) {
		t.Error("ann types")
	}
	p.note(protocol.Error{Ref: "t1"})
	if !p.listens(bob) {
		t.Error("ann's turn was refused, and what bob says is still to be ended")
	}
	p.writes("ann", "t2")
	p.fell(bob)
	p.note(protocol.Error{Ref: "t2"})
	if p.listens(bob) || !p.takeFloor(ann) {
		t.Error("ann's turn was refused, and bob had fallen silent before")
	}
	p.note(protocol.SessionState{Value: protocol.Idle})
	if !p.takeFloor(ann) {
		t.Error("idle: everybody may speak")
	}
}

// What a client may send on ganglia-events is passed over unless it is a command.
func FuzzCommand(f *testing.F) {
	for _, c := range []any{ganglia.TTSMode{Value: "off"}, ganglia.TextMessage{Text: "hello"}, ganglia.EndVoiceSession{}} {
		b, _ := json.Marshal(c)
		f.Add(b)
	}
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, object []byte) {
		_, _ = ganglia.DecodeCommand(object)
		for _, method := range methods {
			if m, err := readCall(method, object); (m == nil) != (err != nil) {
				t.Fatalf("%s: %v, %v", method, m, err)
			}
		}
	})
}
