package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// node runs the tests of a folder with Node's own test runner against the built program, so many files at a time. It
// builds nothing: make test-e2e does, and installs what the tests need. What else they are told in their environment
// comes after the program's path.
func node(t *testing.T, folder string, atOnce int, env ...string) {
	t.Helper()
	vela, err := filepath.Abs(program(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatalf("%v: run make test-e2e, which installs what this test needs", err)
	}
	files, err := filepath.Glob(folder + "/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", folder, err)
	}

	ctx := t.Context()
	if end, ok := t.Deadline(); ok { // short of it, so that it is node that ends what its tests have started
		short, cancel := context.WithDeadline(ctx, end.Add(-time.Minute))
		defer cancel()
		ctx = short
	}
	failed := filepath.Join(t.TempDir(), "failed")
	args := append([]string{
		"--test", "--test-concurrency=" + strconv.Itoa(atOnce),
		"--test-reporter=spec", "--test-reporter-destination=stdout",
		"--test-reporter=./failures.mjs", "--test-reporter-destination=" + failed,
	}, files...)
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env = append(append(os.Environ(), "VELA_BIN="+vela), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		why, _ := os.ReadFile(failed) // none where node was ended before it
		t.Fatalf("node: %v\n%s", err, why)
	}
}
