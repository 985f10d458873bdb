package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
)

// A session takes what each client sends in its order and loses nothing, however far it is behind; meanwhile whoever
// sends waits.
func TestTheMailboxHoldsBackAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, session.Config{})
		resume := make(chan struct{})
		stuck := false
		c.onSend = func(session.Event) {
			if !stuck { // what a peer must never do, so that the session falls behind
				stuck = true
				<-resume
			}
		}
		const senders, each = 5, 40
		sent := make([]int, senders)
		for i := range sent {
			go func() {
				for sent[i] < each {
					err := wordsError{protocol.CodeInvalidMessage, fmt.Sprintf("%d %d", i, sent[i])}
					if err := c.session.Reject(t.Context(), c, "", err); err != nil {
						t.Error(err)
					}
					sent[i]++
				}
			}()
		}
		synctest.Wait()
		total := 0
		for _, n := range sent {
			total += n
		}
		if total >= senders*each || total < 1 {
			t.Errorf("%d of %d were taken by a session that does nothing", total, senders*each)
		}

		close(resume)
		synctest.Wait()
		var got [senders]int
		for _, e := range c.shown[c.read:] {
			var sender, n int
			if _, err := fmt.Sscan(e.Message.(protocol.Error).Message, &sender, &n); err != nil {
				t.Fatal(err)
			}
			if n != got[sender] {
				t.Fatalf("sender %d: %d came after %d", sender, n, got[sender]-1)
			}
			got[sender]++
		}
		for i, n := range got {
			if n != each {
				t.Errorf("sender %d: %d came, want %d", i, n, each)
			}
		}
	})
}

// Whoever waits for a session that is behind gives up with its own context.
func TestWaitingForASessionEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(session.Config{ID: sessionID, Mock: deterministic.Engine{}}) // never run
		cause := errors.New("the socket is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var err error
		go func() {
			for err == nil {
				err = s.Receive(ctx, &client{}, "", sessionStart)
			}
		}()
		synctest.Wait()
		cancel(cause)
		synctest.Wait()
		if !errors.Is(err, cause) {
			t.Errorf("error %v, want %v", err, cause)
		}
	})
}

// A session that is over says so, every time, although its mailbox has room.
func TestASessionThatIsOverTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, session.Config{})
		c.session.Leave(c)
		<-c.ended
		for range 50 {
			for what, err := range map[string]error{
				"Join":    c.session.Join(t.Context(), c, session.Hello{}),
				"Receive": c.session.Receive(t.Context(), c, "", trigger),
				"Reject":  c.session.Reject(t.Context(), c, "", errSecret),
			} {
				if !errors.Is(err, session.ErrEnded) {
					t.Fatalf("%s: error %v, want %v", what, err, session.ErrEnded)
				}
			}
			c.session.Leave(c) // must return
		}
		c.expect()
	})
}

// blocked is a session in the middle of the given part of a turn.
var blocked = map[string]struct {
	cfg  func(ended *int) session.Config
	send []protocol.Message
}{
	"answering": {func(ended *int) session.Config {
		return agentBacked(hears("hello"), engine(func(ctx context.Context, _ turn.Request, _ yieldSignal) {
			<-ctx.Done()
			*ended++
		}))
	}, []protocol.Message{piece, commit}},
	"asking too late": {func(ended *int) session.Config {
		return agentBacked(hears("hello"), engine(func(ctx context.Context, req turn.Request, _ yieldSignal) {
			<-ctx.Done()
			for range 20 { // more than the session would take, were it still listening
				if _, err := req.Ask(context.Background(), turn.Question{}); err == nil {
					panic("somebody has answered")
				}
			}
			*ended++
		}))
	}, []protocol.Message{piece, commit}},
	"hearing": {func(ended *int) session.Config {
		return agentBacked(recogniser(func(ctx context.Context, audio iter.Seq[[]int16], _ yieldTranscript) {
			for range audio {
			}
			*ended++
		}), nil)
	}, []protocol.Message{piece, piece}},
	"recognising": {func(ended *int) session.Config {
		return agentBacked(recogniser(func(ctx context.Context, _ iter.Seq[[]int16], _ yieldTranscript) {
			<-ctx.Done()
			*ended++
		}), nil)
	}, []protocol.Message{piece, piece, commit}},
}

// However a session ends, Run returns, after everything that it ran.
func TestRunEndsWithAllItsChildren(t *testing.T) {
	for name, b := range blocked {
		for how, end := range map[string]func(*client){
			"leave":    func(c *client) { c.session.Leave(c) },
			"shutdown": func(c *client) { c.cancel(session.ErrShutdown) },
			"cancel":   func(c *client) { c.send(cancel); c.session.Leave(c) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ended := 0
					c := connect(t, b.cfg(&ended))
					c.send(b.send...)
					synctest.Wait()
					end(c)
					<-c.ended
					if ended != 1 {
						t.Errorf("%d of 1 child has ended when Run returns", ended)
					}
				})
			})
		}
	}
}

// An engine that minds nothing but its reader ends with the turn, too.
func TestAFloodingEngineEnds(t *testing.T) {
	ended := false
	flood := engine(func(_ context.Context, _ turn.Request, yield yieldSignal) {
		for yield(delta("word"), nil) { // it does not look at its context
		}
		ended = true
	})
	s := session.New(session.Config{ID: sessionID, Mock: deterministic.Engine{},
		Turns: session.Agent, Transcriber: hears("hello"), Agents: agents(flood)})
	flooded := make(chan struct{})
	var once sync.Once
	p := &client{t: t, session: s}
	p.onSend = func(e session.Event) {
		if _, ok := e.Message.(protocol.ResponseTextDelta); ok {
			once.Do(func() { close(flooded) })
		}
	}
	over := make(chan struct{})
	go func() { defer close(over); s.Run(t.Context()) }()
	p.join()
	p.send(piece, commit)
	<-flooded
	p.send(cancel, trigger)
	s.Leave(p)
	<-over
	if !ended {
		t.Error("the engine has not ended")
	}
}

// The causes that end a session from outside, and what its peer is told.
func TestWhyASessionEnds(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  string
	}{
		{session.ErrShutdown, "1001 the gateway is stopping, come back"},
		{fmt.Errorf("SIGTERM: %w", session.ErrShutdown), "1001 the gateway is stopping, come back"},
		{nil, "1001 the gateway is stopping, come back"}, // plainly cancelled
		{errSecret, "1011 something went wrong in the gateway, come back"},
		{context.DeadlineExceeded, "1011 something went wrong in the gateway, come back"},
	} {
		synctest.Test(t, func(t *testing.T) {
			one := connect(t, session.Config{})
			one.cancel(c.cause)
			<-one.ended
			if !slices.Equal(one.closed, []string{c.want}) {
				t.Errorf("%v: closed %q, want %q once", c.cause, one.closed, c.want)
			}
		})
	}
}

// Two peers see the same events, with the same numbers; what one of them did wrong is its own affair. The session goes
// on until both have left.
func TestTwoPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := connect(t, session.Config{})
		b := &client{t: t, session: a.session, ended: a.ended}
		if err := b.session.Join(t.Context(), b, session.Hello{Seat: session.Room}); err != nil {
			t.Fatal(err)
		}
		b.expect("ready", "idle")
		a.expect()

		b.send(trigger)
		a.expect(fixedTurn...)
		b.expect(fixedTurn...)
		if !slices.Equal(a.shown[2:], b.shown[2:]) {
			t.Errorf("they see different events:\n%v\n%v", a.shown[2:], b.shown[2:])
		}
		if err := a.session.Reject(t.Context(), a, "", errSecret); err != nil {
			t.Fatal(err)
		}
		a.expect("! internal") // a reason that is not fit for a client
		b.expect()

		a.session.Leave(a)
		a.session.Leave(a) // once more does no harm
		b.send(trigger)
		b.expect(fixedTurn...)
		a.expect()
		b.session.Leave(b)
		<-b.ended
		if len(a.closed)+len(b.closed) > 0 {
			t.Errorf("who has left is closed: %q, %q", a.closed, b.closed)
		}
	})
}

// attentive is a peer that goes by what is in force.
type attentive struct {
	*client
	agreed []protocol.Terms
}

func (l *attentive) Agreed(terms protocol.Terms) { l.agreed = append(l.agreed, terms) }

// What one peer has changed another one is told that listens for it, and only that: it does not answer what was not asked.
func TestWhatAnotherPeerHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := connect2(t, session.Config{Version: 2})
		room := &attentive{client: &client{t: t, session: a.session, ended: a.ended}}
		if err := a.session.Join(t.Context(), room, session.Hello{Seat: session.Room}); err != nil {
			t.Fatal(err)
		}
		room.expect("ready", "idle")
		off := false
		for _, m := range []protocol.SessionStart{{}, {Language: "klingon"}, {Interrupt: &off}} {
			if err := a.session.Receive(t.Context(), a, "", m); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.session.Receive(t.Context(), room, "", protocol.SessionStart{Approvals: &off}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		room.expect("ready", "idle") // its own
		if len(room.agreed) != 1 || room.agreed[0].Interrupt {
			t.Errorf("it was told %+v", room.agreed)
		}
	})
}

// Nobody comes: the session ends all the same, once it has been idle for too long.
func TestASessionThatNobodyJoinsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := start(t, session.Config{Idle: time.Minute})
		<-c.ended
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it ended after %v", d)
		}
	})
}

// A turn that takes longer than a client may be idle is no idleness; afterwards the limit holds again.
func TestALongTurnIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := session.Config{Idle: time.Minute, Mock: deterministic.Engine{Pace: 50 * time.Second}}
		c := connect(t, cfg)
		c.send(trigger)
		began := time.Now()
		<-c.ended
		c.expect(fixedTurn...)
		if len(c.closed) != 1 || c.closed[0] != "4005 nothing was said for too long" {
			t.Errorf("closed %q", c.closed)
		}
		if d := time.Since(began); d < 150*time.Second || d > 150*time.Second+cfg.Idle {
			t.Errorf("it ended after %v, want at most %v after the turn", d, cfg.Idle)
		}
	})
}

// Each message puts the limit off, so a client that keeps talking stays.
func TestTalkingKeepsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, session.Config{Idle: time.Minute})
		for range 100 {
			time.Sleep(59 * time.Second)
			c.send(cancel)
		}
		c.expect()
		began := time.Now()
		<-c.ended
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it ended %v after the last message", d)
		}
	})
}

// An agent is given two minutes for each of its signals, not for its answer.
func TestAnAgentThatKeepsTalkingIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, agentBacked(hears("hello"), engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
			signals := []signal.Payload{signal.Thinking{Content: "hm"}, delta("One"), signal.TokenUsage{}, delta(" two"), done}
			for _, p := range signals {
				time.Sleep(119 * time.Second)
				if !yield(p, nil) {
					return
				}
			}
		})))
		c.send(piece, commit)
		time.Sleep(time.Hour)
		c.expect("listening", ". hello", "thinking", "speaking", "> One", ">  two", "completed", "idle")
	})
}

// The fixed turn is held to the same limit, although nothing was recognised before it.
func TestAnEngineThatHangsEndsWithTheTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, session.Config{Mock: mocked{func(ctx context.Context, _ turn.Request, _ yieldSignal) { <-ctx.Done() }}})
		c.send(trigger)
		time.Sleep(2*time.Minute - 1)
		c.expect("listening", ". question", "thinking")
		time.Sleep(1)
		c.expect("! agent_timeout", "idle")
	})
}

// The recogniser's half minute begins with the commit, not with the audio.
func TestTheRecogniserIsGivenTimeAfterTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := agentBacked(recognisers["takes 2s"], says("hi"))
		cfg.Recognise = 2*time.Second + 1
		c := connect(t, cfg)
		c.send(piece)
		time.Sleep(5 * time.Minute)
		c.send(commit)
		time.Sleep(2 * time.Second)
		c.expect("listening", ". at last", "thinking", "speaking", "> hi", "completed", "idle")

		cfg.Recognise = 2*time.Second - 1
		c = connect(t, cfg)
		c.send(piece)
		time.Sleep(5 * time.Minute)
		c.send(commit)
		time.Sleep(2 * time.Second)
		c.expect("listening", "! speech_failed", "idle")
	})
}

// A recogniser that is slow gets all of the audio, in order, the rest of it after the commit.
func TestASlowRecogniserGetsAllTheAudio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int16
		c := connect(t, agentBacked(recogniser(func(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
			for samples := range audio {
				time.Sleep(100 * time.Millisecond)
				got = append(got, samples...)
			}
			yield(speech.Transcript{Text: strconv.Itoa(len(got)), Final: true}, nil)
		}), says("hi")))
		var want []int16
		for i := range 100 {
			samples := make([]int16, i)
			for j := range samples {
				samples[j] = int16(len(want) + j)
			}
			want = append(want, samples...)
			c.send(protocol.InputAudioAppend{Chunk: base64Of(speech.Bytes(samples))})
			time.Sleep(20 * time.Millisecond)
		}
		c.send(commit)
		c.expect("listening")
		time.Sleep(time.Minute)
		c.expect(". 4950", "thinking", "speaking", "> hi", "completed", "idle")
		if !slices.Equal(got, want) {
			t.Errorf("the recogniser got %d samples, want %d", len(got), len(want))
		}
	})
}

// Ten minutes of audio at its own speed are one turn; the next piece is too much, and the client is told once.
func TestTenMinutesOfAudioAreATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		c := connect(t, agentBacked(recogniser(func(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
			for samples := range audio {
				heard += len(samples)
			}
			yield(speech.Transcript{Text: "all", Final: true}, nil)
		}), says("hi")))
		second := silence(time.Second)
		for range 10 * 60 {
			c.send(second)
			time.Sleep(time.Second)
		}
		c.expect("listening")
		for range 30 {
			c.send(piece)
			time.Sleep(20 * time.Millisecond)
		}
		c.expect("! audio_too_long")
		c.send(commit)
		c.expect(". all", "thinking", "speaking", "> hi", "completed", "idle")
		if heard != 10*60*speech.Rate {
			t.Errorf("%d samples were heard, want %d", heard, 10*60*speech.Rate)
		}
	})
}

// Sent at three times the speed of speech, all that is more than a minute and twice the speed is dropped.
func TestAudioAtThreeTimesTheSpeedOfSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		c := connect(t, agentBacked(recogniser(func(_ context.Context, audio iter.Seq[[]int16], _ yieldTranscript) {
			for samples := range audio {
				heard += len(samples)
			}
		}), nil))
		second := silence(time.Second)
		began := time.Now()
		for range 300 { // 100 s
			c.send(second)
			time.Sleep(time.Second / 3)
		}
		c.expect("listening", "! rate_limited")
		got, passed := speech.Duration(heard, speech.Rate), time.Since(began)
		if most := time.Minute + 2*passed; got > most || got < most-2*time.Second {
			t.Errorf("%v of audio were taken in %v, want %v", got, passed, most)
		}
	})
}

// The first minute may come at any speed, then twice the speed of speech is fine for ever.
func TestAudioAtTwiceTheSpeedOfSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, agentBacked(counted(), says("hi")))
		second := silence(time.Second)
		for range 60 {
			c.send(second)
		}
		for range 400 {
			time.Sleep(time.Second / 2)
			c.send(second)
		}
		c.send(commit)
		c.expect("listening", ". 460", "thinking", "speaking", "> hi", "completed", "idle")
	})
}

// counted says how many pieces there were, once they have ended.
func counted() recogniser {
	return func(_ context.Context, audio iter.Seq[[]int16], yield yieldTranscript) {
		n := 0
		for range audio {
			n++
		}
		yield(speech.Transcript{Text: strconv.Itoa(n), Final: true}, nil)
	}
}

// An hour of silence at the speed of speech: ten minutes of it are taken, the client is told once, and after the commit,
// with which nothing was recognised, the next turn is as any other.
func TestAnHourOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := time.Duration(0)
		listens := recogniser(func(_ context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool) {
			for samples := range audio {
				heard += speech.Duration(len(samples), speech.Rate)
			}
			yield(speech.Transcript{Final: true}, nil)
		})
		c := connect(t, version2(agentBacked(listens, says("Yes."))))
		c.next()
		second := silence(time.Second)
		for range 3600 {
			c.send(second)
			time.Sleep(time.Second)
		}
		c.expect("listening", "! audio_too_long")
		c.send(commit)
		c.expect(". ", "idle")
		if heard != 10*time.Minute {
			t.Errorf("%v were heard", heard)
		}
		c.send(typed("are you there?"))
		c.expect(". are you there?", "thinking", "response.created", "speaking", "> Yes.", "completed", "turn.metrics", "idle")
	})
}
