package openclaw

import "time"

// How a lost connection is tried again: after 1 s, then twice as long each time up to 30 s, ten times.
const (
	firstWait = time.Second
	longWait  = 30 * time.Second
	mostTries = 10
)

// backoff counts tries in a row that did not connect.
type backoff int

// next is how long to wait before the next try; false when there is to be none.
func (b *backoff) next() (time.Duration, bool) {
	if *b >= mostTries {
		return 0, false
	}
	wait := min(firstWait<<*b, longWait)
	*b++
	return wait, true
}
