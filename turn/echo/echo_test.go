package echo_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/echo"
	"vela/turn/enginetest"
)

func TestEngine(t *testing.T) {
	for name, text := range map[string]string{
		"one word":  "hello",
		"words":     "what time is it",
		"white":     " \t\n ",
		"no text":   "",
		"not ASCII": "der Kapitän grüßt 👋🏽 höflich",
		"long":      strings.Repeat("word ", 200),
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Suite{
				New:     func(*testing.T) turn.Engine { return echo.Engine{} },
				Request: turn.Request{SessionID: "s", TurnID: "t", Text: text},
				Bubble:  true,
			}.Run(t)
		})
	}
}

func TestItSaysWhatItHeard(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      {"You said:"},
		"hello":                 {"You said:", " hello"},
		"what time is it":       {"You said:", " what", " time", " is", " it"},
		"  two\n\tspaces  end ": {"You said:", " two", " spaces", " end"},
	} {
		var got []string
		for p, err := range (echo.Engine{}).Run(context.Background(), turn.Request{TurnID: "t", Text: text}) {
			if err != nil {
				t.Fatal(err)
			}
			switch p := p.(type) {
			case signal.TextDelta:
				if p.AgentID != echo.AgentID || p.Index != len(got) {
					t.Errorf("%q: piece %d is %+v", text, len(got), p)
				}
				got = append(got, p.Content)
			case signal.Completion:
				if p != (signal.Completion{TaskID: "t", AgentID: echo.AgentID, Success: true}) {
					t.Errorf("%q: completed with %+v", text, p)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: said %q, want %q", text, got, want)
		}
	}
}
