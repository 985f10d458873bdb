//go:build unix

package dispatch_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vela/turn/dispatch"
)

func TestShell(t *testing.T) {
	task := dispatch.Task{Case: "C7", Step: dispatch.Triage, DispatchID: 12, Prompt: []byte("# the prompt\n")}
	for _, c := range []struct{ command, want, err string }{
		{`cat`, `{"answer":"# the prompt"}`, ""},
		{`echo "$VELA_STEP $VELA_CASE $VELA_DISPATCH_ID"`, `{"answer":"F1_TRIAGE C7 12"}`, ""},
		{`echo '{"category": "question"}'`, `{"category": "question"}`, ""},
		{`echo '{"dispatch_id": 12, "data": {"category": "question"}}'`, `{"category": "question"}`, ""},
		{`echo '[1]'`, `{"answer":"[1]"}`, ""},
		{`printf 'a\377b'`, `{"answer":"a�b"}`, ""},
		{`echo fine; echo noise >&2`, `{"answer":"fine"}`, ""},
		{`true`, "", "wrote nothing"},
		{`echo ' '`, "", "wrote nothing"},
		{`echo one >&2; echo two >&2; exit 3`, "", "exit status 3: two"},
		{`exit 4`, "", "exit status 4"},
		{`head -c 5000000 /dev/zero`, "", "more than"},
	} {
		got, err := dispatch.Shell(c.command)(t.Context(), task)
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %.100s, %v", c.command, got, err)
		}
	}
}

// The shell's children die with it: the pipe that all of them hold comes to its end.
func TestShellIsKilledWithAllItHasStarted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := dispatch.Shell(`exec 3>`+pipe+`; sleep 1000 & echo up >&3; sleep 1000`)(ctx, dispatch.Task{})
		ended <- err
	}()
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if line, err := r.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	why := errors.New("no more")
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("it ended with %v", err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}
