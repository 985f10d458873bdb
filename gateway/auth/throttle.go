package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	throttleBurst = 10              // failures that an address may have at once
	throttleEvery = 6 * time.Second // and then one more in this time
	throttleMost  = 4096            // addresses that are remembered
)

// Throttle slows down whoever guesses server keys, by address. Its zero value is ready.
type Throttle struct {
	mu       sync.Mutex
	failures map[netip.Prefix]failures
}

// failures are a leaking bucket.
type failures struct {
	level float64 // at that time; it drains by one every throttleEvery
	at    time.Time
}

func (f failures) now(now time.Time) float64 {
	return max(0, f.level-float64(now.Sub(f.at))/float64(throttleEvery))
}

// Wait is how long an address has to wait before it may try again; 0 is not at all.
func (t *Throttle) Wait(from netip.Addr) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := t.failures[t.place(from)].now(time.Now()) - (throttleBurst - 1)
	if over <= 0 {
		return 0
	}
	return time.Duration(over * float64(throttleEvery))
}

// Failed counts a failure.
func (t *Throttle) Failed(from netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.failures == nil {
		t.failures = map[netip.Prefix]failures{}
	}
	p := t.place(from)
	t.failures[p] = failures{t.failures[p].now(now) + 1, now}
}

// place is where an address is counted: by its network, since whoever has one IPv6 address has 2⁶⁴ of them. When there
// are too many, those that are new are counted together.
func (t *Throttle) place(from netip.Addr) netip.Prefix {
	from = from.Unmap().WithZone("")
	bits := 32
	if from.Is6() {
		bits = 64
	}
	p, _ := from.Prefix(bits)
	if _, known := t.failures[p]; known || len(t.failures) < throttleMost {
		return p
	}
	now := time.Now()
	for q, f := range t.failures {
		if f.now(now) == 0 {
			delete(t.failures, q)
		}
	}
	if len(t.failures) < throttleMost {
		return p
	}
	return netip.Prefix{}
}
