package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/dispatch"
)

func TestRespondIsCalledWrongly(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"respond"}, 2, "--exec"},
		{[]string{"respond", "--exec", ""}, 2, "--exec"},
		{[]string{"respond", "--exec", "cat", "--parallel", "0"}, 2, "from 1 to 64"},
		{[]string{"respond", "--exec", "cat", "--timeout", "1ms"}, 2, "at least 1s"},
		{[]string{"respond", "--exec", "cat", "--dir", filepath.Join(t.TempDir(), "none")}, 1, "no such file"},
	} {
		code, _, errs := vela(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit %d, want %d with %q\n%s", c.args, code, c.code, c.says, errs)
		}
	}
}

func TestRespond(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"respond", "--dir", dir, "--exec", `echo "$VELA_CASE: $(grep -c '^two words$')"`}, &errs, &errs)
	}()
	engine, err := dispatch.New(dispatch.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for p, err := range engine.Run(t.Context(), turn.Request{SessionID: "1", TurnID: "t1", Text: "two words"}) {
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := p.(signal.TextDelta); ok {
			text += p.Content
		}
	}
	stop()
	if got := <-code; got != 0 || text != "C1: 1" {
		t.Errorf("exit %d, answered %q", got, text)
	}
	for _, want := range []string{"waiting for questions below " + dir, "1/C1 F0_RECALL, dispatch 1: answering", "dispatch 1: answered in "} {
		if strings.Count(errs.String(), want) != 1 {
			t.Errorf("%q is not told once in\n%s", want, errs.String())
		}
	}
}
