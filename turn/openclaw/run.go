package openclaw

import (
	"sync/atomic"

	"vela/protocol/signal"
)

// run is one turn on its way through OpenClaw. The goroutine of [Engine.Run] makes it and reads what comes; the client's
// owner writes.
type run struct {
	key      string // session key
	text     string
	thinking string // level; empty leaves it to OpenClaw

	out    chan sign     // never closed
	queued atomic.Int64  // bytes in out
	failed chan struct{} // closed once err is set
	err    error

	// Owned by the owner.
	id    string // OpenClaw's run id, which is the idempotency key that we choose; empty until it is sent
	taken bool   // OpenClaw has taken the question
	heard bool   // there was a first sign
	again bool   // it was asked a second time
}

// sign is what the owner tells the engine of a run.
type sign struct {
	payload signal.Payload // nil: taken or heard, see below
	heard   bool           // the first sign of the run; otherwise OpenClaw has only taken the question
	size    int64          // bytes
}

// Bounds of what waits for a slow engine. A run that goes beyond fails, so that it neither holds up the others nor grows.
const (
	maxSigns  = 1024
	maxQueued = 8 << 20 // bytes
)

func newRun(key, text, thinking string) *run {
	return &run{key: key, text: text, thinking: thinking, out: make(chan sign, maxSigns), failed: make(chan struct{})}
}

// give hands a sign over; false when the engine is too far behind.
func (r *run) give(s sign) bool {
	if r.queued.Add(s.size) > maxQueued {
		return false
	}
	select {
	case r.out <- s:
		return true
	default:
		return false
	}
}

// fail ends the run with an error. It is called once.
func (r *run) fail(err error) {
	r.err = err
	close(r.failed)
}

// sizeOf is about how many bytes a payload holds.
func sizeOf(p signal.Payload) int64 {
	switch p := p.(type) {
	case signal.TextDelta:
		return int64(len(p.Content))
	case signal.Thinking:
		return int64(len(p.Content))
	case signal.ToolCall:
		return int64(len(p.Input))
	case signal.ToolResult:
		return int64(len(p.Output))
	}
	return 0
}
