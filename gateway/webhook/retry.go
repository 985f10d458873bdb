package webhook

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// How often a signal is sent, and the pauses between: they double, and about the half of each is up to chance, so that the
// receivers of many do not wake up together. All of them together last at most about seven minutes.
const (
	tries      = 10
	firstPause = time.Second
	mostPause  = 3 * time.Minute
)

// pause is how long to wait after so many attempts. A receiver that says how long is heeded, within bounds.
func pause(tried int, asked time.Duration) time.Duration {
	long := min(firstPause<<min(tried-1, 30), mostPause)
	long = long/2 + rand.N(long/2+1)
	return min(max(long, asked), mostPause)
}

// retryAfter reads the header of that name: seconds, or a date (RFC 9110 section 10.2.3).
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// sleep is false when ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
