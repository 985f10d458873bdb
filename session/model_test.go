package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/turn"
	"vela/turn/deterministic"
)

// TestAgainstTheModel sends random events, many at once or with pauses between them, and holds what is shown against
// the model below. The events of an answer and of a recogniser may fall anywhere between the answers to what the client
// sent; the model accepts every order that the contract allows, and no other.
func TestAgainstTheModel(t *testing.T) {
	streams := 2000
	if testing.Short() {
		streams = 200
	}
	for seed := range streams {
		random := rand.New(rand.NewPCG(uint64(seed), 4))
		agent := seed%2 == 1
		cfg := session.Config{Mock: deterministic.Engine{Pace: pick(random, 0, 0, time.Millisecond, 120*time.Millisecond)}}
		if agent {
			cfg = agentBacked(recogniser(counts), moody(pick(random, 0, 0, time.Millisecond, 50*time.Millisecond)))
			cfg.Mock = deterministic.Engine{Pace: pick(random, 0, 120*time.Millisecond)}
		}
		synctest.Test(t, func(t *testing.T) { randomStream(t, random, cfg, agent, seed) })
		if t.Failed() {
			return
		}
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// moody is an agent that says back what it heard, and fails whenever that was a multiple of three.
func moody(pace time.Duration) engine {
	return func(ctx context.Context, req turn.Request, yield yieldSignal) {
		for _, step := range answerTo(req.Text) {
			if pace > 0 {
				select {
				case <-time.After(pace):
				case <-ctx.Done():
					return
				}
			}
			if !yield(step.payload, step.err) {
				return
			}
		}
	}
}

type step struct {
	payload signal.Payload
	err     error
}

func answerTo(text string) []step {
	n := 0
	if _, err := fmt.Sscanf(text, "heard %d", &n); err != nil || n%3 == 0 {
		return []step{{delta("Well"), nil}, {nil, errSecret}}
	}
	return []step{{delta("You said: "), nil}, {delta(text), nil}, {done, nil}}
}

// randomStream plays about sixty random events.
func randomStream(t *testing.T, random *rand.Rand, cfg session.Config, agent bool, seed int) {
	c := connect(t, cfg)
	var sent []string
	for range 40 + random.IntN(40) {
		what := pick(random, "append", "append", "append", "append", "commit", "commit", "trigger", "cancel", "start", "bad")
		sent = append(sent, what)
		switch what {
		case "append":
			c.send(piece)
		case "commit":
			c.send(commit)
		case "trigger":
			c.send(trigger)
		case "cancel":
			c.send(cancel)
		case "start":
			c.send(sessionStart)
		case "bad":
			c.frame("{")
		}
		switch random.IntN(10) {
		case 0:
			synctest.Wait()
		case 1, 2:
			time.Sleep(pick(random, time.Microsecond, time.Millisecond, 60*time.Millisecond, 120*time.Millisecond,
				121*time.Millisecond, 240*time.Millisecond, 360*time.Millisecond, time.Second))
		}
	}
	time.Sleep(10 * time.Second)
	shown := c.next()
	rules(t, c.shown)
	if reached := accepts(model{agent: agent}, sent, shown); reached < len(shown) || reached > len(shown) {
		t.Errorf("seed %d: the model does not accept what was shown, from event %d on", seed, reached+1)
	}
	if t.Failed() {
		t.Logf("seed %d, agent %t\nsent  %s\nshown %s", seed, agent, strings.Join(sent, " "), strings.Join(shown, " | "))
	}
	c.session.Leave(c)
	<-c.ended
}

// rules are what holds of any session, whatever was sent.
func rules(t *testing.T, shown []session.Event) {
	t.Helper()
	leads := map[protocol.State]string{ // to which phases each may lead
		protocol.Idle: "listening thinking idle", protocol.Listening: "listening thinking idle",
		protocol.Thinking: "speaking idle", protocol.Speaking: "idle",
	}
	state, seq, completed := protocol.Idle, uint64(0), 0
	for i, e := range shown {
		if e.Seq != 0 {
			if seq++; e.Seq != seq {
				t.Errorf("event %d has the number %d, want %d", i+1, e.Seq, seq)
			}
		}
		switch m := e.Message.(type) {
		case protocol.SessionState:
			if e.Seq == 0 { // it answers session.start
				if m.Value != state {
					t.Errorf("event %d says %s while %s", i+1, m.Value, state)
				}
				continue
			}
			if !strings.Contains(leads[state], string(m.Value)) {
				t.Errorf("event %d leads from %s to %s", i+1, state, m.Value)
			}
			if m.Value == protocol.Thinking {
				completed = 0
			}
			state = m.Value
		case protocol.ResponseTextDelta:
			if state != protocol.Speaking || completed > 0 {
				t.Errorf("event %d is part of an answer while %s", i+1, state)
			}
		case protocol.ResponseCompleted:
			if completed++; completed > 1 || state != protocol.Speaking {
				t.Errorf("event %d completes an answer while %s, for the %dth time", i+1, state, completed)
			}
		case protocol.TranscriptPartial:
			if state != protocol.Listening {
				t.Errorf("event %d is a partial transcript while %s", i+1, state)
			}
		}
	}
	if state != protocol.Idle && state != protocol.Listening {
		t.Errorf("long after the last event, the session is %s", state)
	}
}

// model is version 1 of the contract, once more: small, slow, and without a goroutine. It is a value that can be
// compared: what is the same has been tried.
type model struct {
	agent bool

	phase    phase
	appended int    // pieces of this turn
	partials int    // of them, whose transcript was shown; in agent-backed turns
	said     int    // steps of the answer that were shown
	text     string // that an agent answers; "" for the fixed turn
}

type phase int

const (
	idling phase = iota
	listens
	recognises
	answers
)

// answer is what is shown for each step of the answer that runs.
func (m model) answer() [][]string {
	if m.text == "" {
		return [][]string{{"speaking", first}, {second}, {"completed", "idle"}}
	}
	var n int
	if _, err := fmt.Sscanf(m.text, "heard %d", &n); err != nil || n%3 == 0 {
		return [][]string{{"speaking", "> Well"}, {"! agent_failed", "idle"}}
	}
	return [][]string{{"speaking", "> You said: "}, {"> " + m.text}, {"completed", "idle"}}
}

// byItself is the next thing that happens without a client; false when nothing does.
func (m model) byItself() (model, []string, bool) {
	switch {
	case m.phase == answers:
		steps := m.answer()
		shown := steps[m.said]
		if m.said++; m.said == len(steps) {
			m = model{agent: m.agent}
		}
		return m, shown, true
	case m.agent && m.partials < m.appended:
		m.partials++
		return m, []string{"? " + heardPieces(m.partials)}, true
	case m.phase == recognises:
		text := heardPieces(m.appended)
		return model{agent: m.agent, phase: answers, text: text}, []string{". " + text, "thinking"}, true
	}
	return m, nil, false
}

// sent is what a client's event does.
func (m model) sent(what string) (model, []string) {
	inFlight := m.phase == recognises || m.phase == answers
	switch {
	case what == "start":
		return m, []string{"ready", m.state()}
	case what == "bad":
		return m, []string{"! invalid_json"}
	case what == "cancel" && m.phase == idling:
		return m, nil
	case what == "cancel":
		return model{agent: m.agent}, []string{"idle"}
	case inFlight && m.phase == answers && m.text == "":
		return m, []string{"! mocked_turn_in_flight"}
	case inFlight:
		return m, []string{"! turn_in_flight"}
	case what == "trigger":
		return model{agent: m.agent, phase: answers}, []string{"listening", question, "thinking"}
	case what == "append":
		return m.append()
	}
	return m.commit()
}

func (m model) state() string {
	switch {
	case m.phase == idling:
		return "idle"
	case m.phase == answers && m.said == 0:
		return "thinking"
	case m.phase == answers:
		return "speaking"
	}
	return "listening"
}

func (m model) append() (model, []string) {
	var shown []string
	if m.phase == idling {
		m.phase = listens
		shown = append(shown, "listening")
	}
	m.appended++
	switch {
	case m.agent:
	case m.appended == 1:
		shown = append(shown, "? [mocked partial] Placeholder push-to-talk transcript in progress.")
	default:
		shown = append(shown, fmt.Sprintf("? [mocked partial] Placeholder push-to-talk transcript in progress (%d chunks).", m.appended))
	}
	return m, shown
}

func (m model) commit() (model, []string) {
	switch {
	case m.agent && m.phase == idling:
		return m, []string{". ", "idle"}
	case m.agent:
		m.phase = recognises
		return m, nil
	case m.appended == 0:
		return model{phase: answers}, []string{finalNone, "thinking"}
	}
	final := fmt.Sprintf(". [mocked final] Placeholder push-to-talk transcript completed from %d appended chunk(s).", m.appended)
	return model{phase: answers}, []string{final, "thinking"}
}

// accepts says how many of the events that were shown the model can explain: all of them, if what was shown is right.
func accepts(m model, sent, shown []string) int {
	type place struct {
		model
		in, out int
	}
	todo, seen, best := []place{{m, 0, 0}}, map[place]bool{}, 0
	visit := func(p place, words []string) {
		for _, w := range words {
			if p.out == len(shown) || shown[p.out] != w {
				best = max(best, p.out)
				return
			}
			p.out++
		}
		if !seen[p] {
			seen[p] = true
			todo = append(todo, p)
		}
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next, words, more := p.byItself()
		if !more && p.in == len(sent) && p.out == len(shown) {
			return len(shown)
		}
		if more {
			visit(place{next, p.in, p.out}, words)
		}
		if p.in < len(sent) {
			next, words := p.sent(sent[p.in])
			visit(place{next, p.in + 1, p.out}, words)
		}
	}
	return min(best, len(shown)-1)
}

// The model itself is no good if it accepts everything.
func TestTheModelRefuses(t *testing.T) {
	whole := append([]string(nil), fixedTurn...)
	for name, c := range map[string]struct {
		sent, shown []string
		want        bool
	}{
		"a turn":                       {[]string{"trigger"}, whole, true},
		"nothing":                      {nil, nil, true},
		"a turn cut short":             {[]string{"trigger"}, whole[:6], false},
		"a turn that nobody asked for": {nil, whole, false},
		"a cancelled turn":             {[]string{"trigger", "cancel"}, []string{"listening", question, "thinking", "idle"}, true},
		"an event after the idle":      {[]string{"trigger", "cancel"}, []string{"listening", question, "thinking", "idle", first}, false},
		"two turns at once":            {[]string{"trigger", "trigger"}, append([]string{"listening", question, "thinking"}, whole...), false},
		"an error that is late":        {[]string{"bad", "start"}, []string{"ready", "idle", "! invalid_json"}, false},
	} {
		if got := accepts(model{}, c.sent, c.shown) == len(c.shown); got != c.want {
			t.Errorf("%s: accepted is %t", name, got)
		}
	}
}
