package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRooms runs the tests of rooms/: the built program in rooms of the real LiveKit server, and LiveKit's own client for
// Node as the phones.
func TestRooms(t *testing.T) {
	if testing.Short() {
		t.Skip("a LiveKit server is slow to build")
	}
	t.Parallel()
	livekit := os.Getenv("LIVEKIT_BIN")
	if livekit == "" {
		built, err := filepath.Abs(filepath.Join(filepath.Dir(program(t)), "livekit-server"))
		if err != nil {
			t.Fatal(err)
		}
		livekit = built
	}
	if _, err := os.Stat(livekit); err != nil {
		t.Fatalf("%v: run make test-e2e, which builds what this test needs", err)
	}
	node(t, "rooms", 1, "LIVEKIT_BIN="+livekit)
}
