package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What one source may send. The rest is dropped and counted, and a source that goes on is not even read faster.
const (
	maxSignals = 1000    // a second, and twice that at once
	maxBytes   = 8 << 20 // a second, and twice that at once

	skipped      = 1000    // dropped messages, or
	skippedBytes = 4 << 20 // bytes of them, after which reading pauses
	skipPause    = 100 * time.Millisecond

	told = 10 * time.Second // for how long it is said that something was dropped, or was no signal
)

// gate is what a source's signals go through. Its methods may be called from several goroutines.
type gate struct {
	mu      sync.Mutex
	signals *rate.Limiter
	bytes   *rate.Limiter

	taken, dropped, bad uint64 // so far
	droppedAt, badAt    time.Time
	skips, skipBytes    int // since the last pause
}

func newGate() *gate {
	return &gate{signals: rate.NewLimiter(maxSignals, 2*maxSignals), bytes: rate.NewLimiter(maxBytes, 2*maxBytes)}
}

// admit says whether a message of so many bytes may pass, and how long its reader is to rest before the next.
func (g *gate) admit(size int) (passes bool, rest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.bytes.AllowN(now, size) && g.signals.AllowN(now, 1) {
		return true, 0
	}
	g.dropped++
	g.droppedAt = now
	g.skips++
	if g.skipBytes += size; g.skips >= skipped || g.skipBytes >= skippedBytes {
		g.skips, g.skipBytes = 0, 0
		rest = skipPause
	}
	return false, rest
}

// await is for signals that nobody pushes: their reader waits instead of losing some.
func (g *gate) await(ctx context.Context) error { return g.signals.Wait(ctx) }

// count notes a signal that passed.
func (g *gate) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken++
}

// blame notes a message that was no signal, or was not written in UTF-8.
func (g *gate) blame() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bad++
	g.badAt = time.Now()
}

// tallies are taken and dropped signals so far.
func (g *gate) tallies() (taken, dropped uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, g.dropped
}

// complaint says what is wrong with what the source sends; nothing if all is well.
func (g *gate) complaint(now time.Time) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.dropped > 0 && now.Sub(g.droppedAt) < told:
		return fmt.Sprintf("It sends more than %d signals or %d MiB a second; %d were dropped.", maxSignals, maxBytes>>20, g.dropped)
	case g.bad > 0 && now.Sub(g.badAt) < told:
		return fmt.Sprintf("%d of its messages were no signals, or not in UTF-8. The log of signals shows them.", g.bad)
	}
	return ""
}
