package deterministic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/deterministic"
	"vela/turn/enginetest"
)

func TestEngine(t *testing.T) {
	for name, e := range map[string]deterministic.Engine{
		"at once":   {},
		"pace":      {Pace: deterministic.DefaultPace},
		"long pace": {Pace: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Suite{
				New:      func(*testing.T) turn.Engine { return e },
				Request:  turn.Request{SessionID: "s", TurnID: "t", Text: "anything"},
				Bubble:   true,
				Patience: time.Nanosecond,
			}.Run(t)
		})
	}
	t.Run("outside a bubble", func(t *testing.T) {
		enginetest.Run(t, func(*testing.T) turn.Engine { return deterministic.Engine{Pace: time.Millisecond} }, turn.Request{})
	})
}

// The texts are the contract's, byte for byte; they are written out here so that a change of the code alone shows.
func TestTheTextsAreTheContracts(t *testing.T) {
	e := deterministic.Engine{}
	for _, c := range []struct{ got, want string }{
		{e.Question(), "[mocked user] What is the current mocked vertical slice?"},
		{e.Partial(1), "[mocked partial] Placeholder push-to-talk transcript in progress."},
		{e.Partial(2), "[mocked partial] Placeholder push-to-talk transcript in progress (2 chunks)."},
		{e.Partial(3), "[mocked partial] Placeholder push-to-talk transcript in progress (3 chunks)."},
		{e.Partial(30000), "[mocked partial] Placeholder push-to-talk transcript in progress (30000 chunks)."},
		{e.Final(0), "[mocked final] Placeholder push-to-talk transcript completed without appended audio."},
		{e.Final(1), "[mocked final] Placeholder push-to-talk transcript completed from 1 appended chunk(s)."},
		{e.Final(2), "[mocked final] Placeholder push-to-talk transcript completed from 2 appended chunk(s)."},
		{e.Final(30000), "[mocked final] Placeholder push-to-talk transcript completed from 30000 appended chunk(s)."},
	} {
		if c.got != c.want {
			t.Errorf(" got %q\nwant %q", c.got, c.want)
		}
	}
}

// Whatever is asked, the answer is the same, one pace before each of its signals.
func TestAnswer(t *testing.T) {
	for _, pace := range []time.Duration{0, deterministic.DefaultPace} {
		for _, req := range []turn.Request{
			{TurnID: "t"},
			{TurnID: "t", Text: "something else", History: []turn.Message{{Role: turn.User, Text: "before"}}},
		} {
			synctest.Test(t, func(t *testing.T) {
				want := []signal.Payload{
					signal.TextDelta{AgentID: "deterministic", Content: "[mocked assistant] "},
					signal.TextDelta{AgentID: "deterministic", Content: "This is a deterministic mocked response from the gateway vertical slice.", Index: 1},
					signal.Completion{TaskID: "t", AgentID: "deterministic", Success: true},
				}
				began, n := time.Now(), 0
				for p, err := range (deterministic.Engine{Pace: pace}).Run(context.Background(), req) {
					if n >= len(want) || err != nil || p != want[n] {
						t.Fatalf("signal %d is %+v, %v", n+1, p, err)
					}
					n++
					if passed := time.Since(began); passed != time.Duration(n)*pace {
						t.Errorf("signal %d came after %v", n, passed)
					}
				}
				if n != len(want) {
					t.Errorf("%d signals, want %d", n, len(want))
				}
			})
		}
	}
}
