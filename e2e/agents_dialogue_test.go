package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

// event is one message of version 2.
type event struct {
	Type    string `json:"type"`
	Seq     uint64 `json:"seq"`
	Payload struct {
		Value     string          `json:"value"`
		Text      string          `json:"text"`
		Code      string          `json:"code"`
		Message   string          `json:"message"`
		Reason    string          `json:"reason"`
		HeardText string          `json:"heardText"`
		CallID    string          `json:"callId"`
		Name      string          `json:"name"`
		Success   bool            `json:"success"`
		Output    json.RawMessage `json:"output"`
		SessionID string          `json:"sessionId"`
		Action    string          `json:"action"`
		Kind      string          `json:"artifact_type"`
	} `json:"payload"`
	raw string
}

// dialogue is a client of version 2 that types.
type dialogue struct {
	*testing.T
	ctx     context.Context
	ws      *websocket.Conn
	session string // its id
	seq     uint64
	frames  strings.Builder // all that the gateway has sent
}

// talk begins a session with the given settings, which are JSON.
func (g *gateway) talk(t *testing.T, settings string) *dialogue {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ws, _, err := websocket.Dial(ctx, "ws://"+g.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{"vela.v2"}})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(4 << 20)
	t.Cleanup(func() { _ = ws.CloseNow(); cancel() })
	d := &dialogue{T: t, ctx: ctx, ws: ws}
	d.settings(settings)
	return d
}

func (d *dialogue) settings(settings string) {
	d.Helper()
	d.send(`{"type":"session.start","payload":` + settings + `}`)
	ready := d.until(func(e event) bool { return e.Type == "session.state" && e.Payload.Value == "idle" })
	d.session = ready[0].Payload.SessionID
}

// close ends the session, and reads what still comes.
func (d *dialogue) close() {
	d.Helper()
	d.send(`{"type":"session.close","payload":{}}`)
	for {
		if _, frame, err := d.ws.Read(d.ctx); err != nil {
			return
		} else {
			d.frames.Write(append(frame, '\n'))
		}
	}
}

func (d *dialogue) send(text string) {
	d.Helper()
	if err := d.ws.Write(d.ctx, websocket.MessageText, []byte(text)); err != nil {
		d.Fatal(err)
	}
}

// next is the next message. Its number follows the one before.
func (d *dialogue) next() event {
	d.Helper()
	_, frame, err := d.ws.Read(d.ctx)
	if err != nil {
		d.Fatalf("%v, after\n%s", err, d.frames.String())
	}
	d.frames.Write(append(frame, '\n'))
	e := event{raw: string(frame)}
	if err := json.Unmarshal(frame, &e); err != nil {
		d.Fatalf("%v: %s", err, frame)
	}
	if e.Seq != 0 {
		if e.Seq != d.seq+1 {
			d.Errorf("number %d follows %d: %s", e.Seq, d.seq, frame)
		}
		d.seq = e.Seq
	}
	return e
}

// until reads up to a message that fits, and returns all of them.
func (d *dialogue) until(fits func(event) bool) []event {
	d.Helper()
	var all []event
	for {
		e := d.next()
		all = append(all, e)
		if fits(e) {
			return all
		}
	}
}

// say types, and waits for nothing.
func (d *dialogue) say(text string) {
	d.Helper()
	body, _ := json.Marshal(text) // a string always has a JSON
	d.send(`{"type":"input_text.submit","payload":{"text":` + string(body) + `}}`)
}

// turn is what came of one turn.
type turn struct {
	events []event
	text   string // of the answer
}

// end reads a turn to its end: the session is idle, after exactly one end of the answer.
func (d *dialogue) end() turn {
	d.Helper()
	t := turn{events: d.until(func(e event) bool { return e.Type == "session.state" && e.Payload.Value == "idle" })}
	ends := 0
	for _, e := range t.events {
		switch e.Type {
		case "response.text.delta":
			t.text += e.Payload.Text
		case "response.completed", "response.cancelled":
			ends++
		}
	}
	if ends != 1 {
		d.Errorf("%d ends of an answer:\n%s", ends, t)
	}
	return t
}

// ask types, and reads the turn to its end.
func (d *dialogue) ask(text string) turn {
	d.Helper()
	d.say(text)
	return d.end()
}

func (t turn) String() string {
	var b strings.Builder
	for _, e := range t.events {
		b.WriteString(e.raw + "\n")
	}
	return b.String()
}

// of is the events of one type.
func (t turn) of(kind string) []event {
	return slices.DeleteFunc(slices.Clone(t.events), func(e event) bool { return e.Type != kind })
}

// result is the result of one call.
func (t turn) result(callID string) event {
	for _, e := range t.of("tool.result") {
		if e.Payload.CallID == callID {
			return e
		}
	}
	return event{}
}

// answers checks that a turn has the given answer.
func (d *dialogue) answers(question, answer string) turn {
	d.Helper()
	t := d.ask(question)
	if t.text != answer || len(t.of("response.completed")) != 1 || len(t.of("error")) != 0 {
		d.Errorf("%q is not answered with %q:\n%s", question, answer, t)
	}
	return t
}

// fails checks that a turn ends with one error of the given code, in words that name nothing of the machine.
func (d *dialogue) fails(question, code, words string) turn {
	d.Helper()
	t := d.ask(question)
	d.failed(t, code, words)
	return t
}

func (d *dialogue) failed(t turn, code, words string) {
	d.Helper()
	errs, ends := t.of("error"), t.of("response.cancelled")
	if len(errs) != 1 || len(ends) != 1 || ends[0].Payload.Reason != "error" || ends[0].Payload.HeardText != t.text {
		d.Errorf("it has not failed as it should:\n%s", t)
		return
	}
	e := errs[0].Payload
	if e.Code != code || !strings.Contains(e.Message, words) {
		d.Errorf("the error is %s %q, want %s %q", e.Code, e.Message, code, words)
	}
	for _, leak := range []string{"127.0.0.1", "localhost", "http", "/tmp", modelKey} {
		if strings.Contains(e.Message, leak) {
			d.Errorf("the error names %q: %s", leak, e.Message)
		}
	}
}
