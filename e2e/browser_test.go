package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestBrowser runs the tests of browser/ with Node's own test runner: the built program's page in a real Chromium. It builds nothing:
// make test-e2e does, and installs what the tests need.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser is slow to start")
	}
	vela, err := filepath.Abs(program(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatalf("%v: run make test-e2e, which installs what this test needs", err)
	}
	files, err := filepath.Glob("browser/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in browser: %v", err)
	}

	// Short of the twenty minutes that make gives go test, so that it is node that ends the browsers it has started.
	ctx, cancel := context.WithTimeout(t.Context(), 18*time.Minute)
	defer cancel()
	args := append([]string{"--test", "--test-reporter=spec", "--test-concurrency=2"}, files...)
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env = append(os.Environ(), "VELA_BIN="+vela)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v", err)
	}
}
