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

// TestRooms runs the tests of rooms/ with Node's own test runner: the built program in rooms of the real LiveKit server, and
// LiveKit's own client for Node as the phones. It builds nothing: make test-e2e does.
func TestRooms(t *testing.T) {
	if testing.Short() {
		t.Skip("a LiveKit server is slow to build")
	}
	vela, err := filepath.Abs(program(t))
	if err != nil {
		t.Fatal(err)
	}
	livekit := os.Getenv("LIVEKIT_BIN")
	if livekit == "" {
		livekit = filepath.Join(filepath.Dir(vela), "livekit-server")
	}
	for _, needed := range []string{"node_modules", livekit} {
		if _, err := os.Stat(needed); err != nil {
			t.Fatalf("%v: run make test-e2e, which builds and installs what this test needs", err)
		}
	}
	files, err := filepath.Glob("rooms/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in rooms: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := append([]string{"--test", "--test-reporter=spec", "--test-concurrency=1"}, files...)
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env = append(os.Environ(), "VELA_BIN="+vela, "LIVEKIT_BIN="+livekit)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v", err)
	}
}
