//go:build unix

package processgroup_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"vela/turn/processgroup"
)

// family runs a command of sh, whose child lives until its input ends, and returns when both are there: what comes out
// of the pipe ends with the last of them. The input ends with the test, so that a failing one leaves nothing behind.
func family(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, said, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hold.Close(); out.Close() })
	cmd.Stdin, cmd.Stdout = in, said
	processgroup.Own(cmd)
	err = cmd.Start()
	in.Close()
	said.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	words := bufio.NewReader(out)
	if line, err := words.ReadString('\n'); line != "started\n" {
		t.Fatal(line, err)
	}
	return words
}

// gone fails unless nobody holds the pipe any more.
func gone(t *testing.T, out io.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("the child lives: %q, %v", rest, err)
	}
}

const lives = `exec 3<&0; cat <&3 & echo started; `

func TestKillTakesTheChildrenOfACommandThatRuns(t *testing.T) {
	cmd := exec.Command("sh", "-c", lives+"wait")
	out := family(t, cmd)
	if err := processgroup.Kill(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the command was not killed")
	}
	gone(t, out)
}

func TestKillTakesTheChildrenOfACommandThatHasEnded(t *testing.T) {
	cmd := exec.Command("sh", "-c", lives)
	out := family(t, cmd)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := processgroup.Kill(cmd); err != nil {
		t.Fatal(err)
	}
	gone(t, out)
}

func TestKillIsTheCancelOfACommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", "-c", lives+"wait")
	cmd.Cancel = func() error { return processgroup.Kill(cmd) }
	out := family(t, cmd)
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the command was not killed")
	}
	gone(t, out)
}

func TestKillOfNothing(t *testing.T) {
	cmd := exec.Command("true")
	if err := processgroup.Kill(cmd); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("never started: %v", err)
	}
	processgroup.Own(cmd)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := processgroup.Kill(cmd); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("it has ended: %v", err)
	}
}
