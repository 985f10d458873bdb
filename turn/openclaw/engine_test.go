package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/enginetest"
)

var request1 = turn.Request{SessionID: "s1", TurnID: "t1", Text: "please use the tool now"}

func TestEngineContract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) turn.Engine { return engineOf(t, play(t, "tool")) }, request1)
}

func TestEngineContractOfAFailure(t *testing.T) {
	enginetest.Suite{New: func(t *testing.T) turn.Engine { return engineOf(t, play(t, "failed")) }, Request: request1, Fails: true}.Run(t)
}

// heard drives one turn and writes down what it yields.
func heard(ctx context.Context, e turn.Engine, req turn.Request) (string, error) {
	var b strings.Builder
	for p, err := range e.Run(ctx, req) {
		if err != nil {
			return b.String(), err
		}
		body, err := json.Marshal(p)
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintf(&b, "%s %s\n", p.SignalType(), body)
	}
	return b.String(), nil
}

// code is the error code that a client is told.
func code(err error) protocol.Code {
	var coded interface{ Code() protocol.Code }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

func TestATurnIsWhatItsRunSaid(t *testing.T) {
	for _, name := range []string{"turn", "tool", "tool-streamed", "tool-failed", "command", "command-of-chat", "thinking"} {
		t.Run(name, func(t *testing.T) {
			c := play(t, name)
			e := engineOf(t, c)
			got, err := heard(t.Context(), e, request1)
			if err != nil {
				t.Fatal(err)
			}
			q := c.next(t, "chat.send")
			if q.param("message") != request1.Text || q.param("sessionKey") != "agent:main:vela-s1" || q.param("queueMode") != "interrupt" {
				t.Errorf("asked %v", q.Params)
			}
			if want := goldenOf(t, name, c.runID, q.param("idempotencyKey")); got != want {
				t.Errorf("yielded\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// goldenOf are the signals of the first run of a recording, as a turn yields them.
func goldenOf(t *testing.T, name, recorded, now string) string {
	t.Helper()
	var tr Translator
	var b strings.Builder
	for _, message := range received(t, name) {
		for _, s := range tr.Translate(message) {
			if s.RunID != recorded {
				continue
			}
			body, err := json.Marshal(s.Payload)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s\n", s.Payload.SignalType(), strings.ReplaceAll(string(body), recorded, now))
		}
	}
	return b.String()
}

func TestTwoTurnsHaveTwoRuns(t *testing.T) {
	c := play(t, "turn")
	e := engineOf(t, c)
	ids := map[string]bool{}
	for range 2 {
		if _, err := heard(t.Context(), e, request1); err != nil {
			t.Fatal(err)
		}
		ids[c.next(t, "chat.send").param("idempotencyKey")] = true
	}
	if len(ids) != 2 {
		t.Error("the same turn, asked twice, was one run: OpenClaw would not answer it again")
	}
}

func TestAFailedRunIsOneError(t *testing.T) {
	log, told := logTo()
	c := play(t, "failed")
	e := engine(t, started(t, Config{URL: c.listen(t), Log: log}))
	got, err := heard(t.Context(), e, request1)
	if code(err) != protocol.CodeAgentFailed || strings.Contains(err.Error(), "schema") {
		t.Errorf("error %v of code %s, want words of our own", err, code(err))
	}
	if strings.Contains(got, "completion") {
		t.Errorf("yielded\n%s", got)
	}
	if !strings.Contains(told.String(), "provider rejected the request schema") {
		t.Errorf("the log does not say why:\n%s", told)
	}
}

func TestARunStoppedElsewhereIsAnError(t *testing.T) {
	c := play(t, "stopped")
	c.asked = func(n *conn, q call) {
		n.write(append(c.answers(q), renamed(c.onStop, c.runID, q.param("idempotencyKey"))...)...)
	}
	_, err := heard(t.Context(), engineOf(t, c), request1)
	if !errors.Is(err, errStopped) {
		t.Errorf("error %v", err)
	}
}

func TestWhyARunFailed(t *testing.T) {
	for reason, want := range map[string]*failure{
		"auth": errModelKey, "auth_permanent": errModelKey, "billing": errModelKey,
		"rate_limit": errModelBusy, "overloaded": errModelBusy, "timeout": errModelLate,
		"model_not_found": errModelGone, "context_overflow": errTooLong, "format": errRunFailed, "": errRunFailed,
	} {
		cause := errors.New("in /srv: key sk-1 refused")
		if got := runFailure(reason, cause); got.words != want.words || got.code != want.code || got.Unwrap() != cause {
			t.Errorf("%q: %v", reason, got)
		}
	}
}

func TestACancelledTurnIsStoppedAtOpenClaw(t *testing.T) {
	for name, end := range map[string]func(cancel context.CancelFunc) bool{
		"cancelled":       func(cancel context.CancelFunc) bool { cancel(); return true },
		"its reader left": func(context.CancelFunc) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			c := play(t, "stopped") // its answer goes on until it is stopped
			e := engineOf(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := false
			for p, err := range e.Run(ctx, request1) {
				if err != nil || over {
					t.Fatalf("yielded %v, %v", p, err)
				}
				if _, is := p.(signal.TextDelta); is {
					over = true
					if !end(cancel) {
						break
					}
				}
			}
			q, s := c.next(t, "chat.send"), c.next(t, "chat.abort")
			if s.param("runId") != q.param("idempotencyKey") || s.param("sessionKey") != "agent:main:vela-s1" {
				t.Errorf("stopped %v, want the run %v", s.Params, q.Params)
			}
		})
	}
}

func TestATurnThatEndedIsNotStopped(t *testing.T) {
	c := play(t, "turn")
	e := engineOf(t, c)
	for range 2 {
		if _, err := heard(t.Context(), e, request1); err != nil {
			t.Fatal(err)
		}
	}
	for len(c.calls) > 0 {
		if q := <-c.calls; q.Method != "chat.send" {
			t.Errorf("a %s was sent", q.Method)
		}
	}
}

func TestARefusedQuestion(t *testing.T) {
	for response, want := range map[string]*failure{
		`{"code":"FORBIDDEN","message":"missing scope: operator.write","details":{"code":"MISSING_SCOPE"}}`: errNoRights,
		`{"code":"UNAVAILABLE","message":"Previous run is still shutting down.","retryable":true}`:          errStillBusy,
		`{"code":"INVALID_REQUEST","message":"invalid chat.send params: at /x"}`:                            errNotSent,
	} {
		c := play(t, "turn")
		c.asked = func(n *conn, q call) {
			n.write([]byte(`{"type":"res","id":"` + q.ID + `","ok":false,"error":` + response + `}`))
		}
		got, err := heard(t.Context(), engineOf(t, c), request1)
		var f *failure
		if !errors.As(err, &f) || f.words != want.words || got != "" {
			t.Errorf("%s: %q, %v", response, got, err)
		}
	}
}

func TestNamesOfASessionKey(t *testing.T) {
	c, err := New(Config{Token: func() (string, error) { return "", nil }})
	if err != nil {
		t.Fatal(err)
	}
	for cfg, ok := range map[EngineConfig]bool{
		{}: true, {Agent: "ops", Prefix: "phone-"}: true,
		{Agent: "a:b"}: false, {Agent: "Main"}: false, {Agent: strings.Repeat("a", 65)}: false, {Prefix: "x:y"}: false, {Prefix: " "}: false,
	} {
		if _, err := NewEngine(c, cfg); (err == nil) != ok {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
