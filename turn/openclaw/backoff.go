package openclaw

import "time"

// How a lost connection is tried again: after 1 s, then twice as long each time up to 30 s, ten times.
const (
	firstWait = time.Second
	longWait  = 30 * time.Second
	mostTries = 10
)

// Backoff counts tries in a row that did not connect. Its zero value begins; a connection sets it back to that. Whoever
// keeps a connection to somebody's agent tries again in this way, package source of the gateway too.
type Backoff int

// Next is how long to wait before the next try; false when there is to be none.
func (b *Backoff) Next() (time.Duration, bool) {
	if *b >= mostTries {
		return 0, false
	}
	wait := min(firstWait<<*b, longWait)
	*b++
	return wait, true
}
