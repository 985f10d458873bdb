package e2e

import "testing"

// TestBrowser runs the tests of browser/: the built program's page in a real Chromium.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser is slow to start")
	}
	t.Parallel() // beside TestRooms, which waits for most of its time
	node(t, "browser", 2)
}
