// Package closedport gives tests an address at which nobody listens, and at which nobody else will. A port that a test
// frees after it was given it by the system may be given to the next that asks, in this process or another.
package closedport

import "testing"

// New returns an address, 127.0.0.1 and a port, to which no connection is made until the test listens there itself,
// which it may do again and again. It is the test's until the test ends.
func New(t testing.TB) string {
	t.Helper()
	address, free, err := hold()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	return address
}
