package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
	"vela/turn"
)

// item is one thing that an engine yielded.
type item struct {
	payload signal.Payload
	err     error
	at      time.Time
}

func (it item) String() string {
	if it.err != nil {
		return fmt.Sprintf("the error %q", it.err)
	}
	return fmt.Sprintf("%T%+v", it.payload, it.payload)
}

// run is one loop over an engine's signals, in a goroutine of its own. The loop is an explicit yield function instead
// of a range statement, which would panic where the suite wants to say what is wrong.
type run struct {
	label string        // of the loop's goroutine, and so of every goroutine that the engine starts
	ended chan struct{} // closed when the sequence has returned
	quit  atomic.Bool   // the suite has given up and lets go of the engine, so that a broken one may end
	stop  context.CancelFunc

	mu      sync.Mutex // a broken engine yields from anywhere
	yielded []item
	faults  []string
	left    bool // the reader has left the loop
	over    bool // the sequence has returned
}

// loops numbers them, for their labels.
var loops atomic.Int64

const labelKey = "enginetest"

// start loops over the engine's answer. body is called with the number of each signal, from 1, and says whether to go
// on; nil goes on.
func (x *trial) start(ctx context.Context, req turn.Request, body func(n int) bool) *run {
	ctx, stop := context.WithCancel(ctx)
	r := &run{label: strconv.FormatInt(loops.Add(1), 10), ended: make(chan struct{}), stop: stop}
	go pprof.Do(ctx, pprof.Labels(labelKey, r.label), func(ctx context.Context) {
		defer close(r.ended)
		defer func() {
			if p := recover(); p != nil {
				r.fault("panicked: %v\n%s", p, debug.Stack())
			}
		}()
		home := goroutineID()
		x.engine.Run(ctx, req)(func(p signal.Payload, err error) bool {
			return r.yield(home, item{p, err, time.Now()}, body)
		})
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
	})
	return r
}

// yield is what the engine calls.
func (r *run) yield(home string, it item, body func(n int) bool) bool {
	r.mu.Lock()
	switch {
	case r.over:
		r.faults = append(r.faults, "yielded after its sequence had returned")
	case r.left:
		r.faults = append(r.faults, "yielded again after its reader had left the loop")
	case goroutineID() != home:
		r.faults = append(r.faults, "yielded from another goroutine than the one that loops over it")
	}
	if r.over || r.left || r.quit.Load() {
		r.mu.Unlock()
		return false
	}
	r.yielded = append(r.yielded, it)
	n := len(r.yielded)
	r.mu.Unlock()
	if body != nil && !body(n) {
		r.mu.Lock()
		r.left = true
		r.mu.Unlock()
		return false
	}
	return true
}

func (r *run) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// drive loops over one whole answer and returns what was yielded.
func (x *trial) drive(when string, req turn.Request) []item {
	x.Helper()
	r := x.start(context.Background(), req, nil)
	x.await(r, x.longest, when)
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.yielded)
}

// awaitAfter waits for the end of a loop that has to come promptly after something has happened to it.
func (x *trial) awaitAfter(r *run, happened <-chan struct{}, when string) bool {
	x.Helper()
	timer := time.NewTimer(x.longest)
	defer timer.Stop()
	select {
	case <-happened:
		return x.await(r, x.patience, when)
	case <-r.ended: // this answer was shorter
		return x.await(r, x.patience, when)
	case <-timer.C:
		return x.await(r, 0, when)
	}
}

// await waits for the end of a loop and reports what was wrong with it, goroutines left behind included. It returns
// whether nothing was; what was yielded can be read then.
func (x *trial) await(r *run, within time.Duration, when string) bool {
	x.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		r.fault("did not end within %v", within)
		r.quit.Store(true)
	}
	select {
	case <-r.ended:
		for _, stack := range x.leftovers(r.label) {
			r.fault("left a goroutine behind:\n%s", stack)
		}
	default:
	}
	r.stop() // only now: a goroutine that is left behind until its context ends is one too many
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		x.failed(when, "%s", fault)
	}
	return len(r.faults) == 0
}

// leftovers are the stacks of the goroutines that a loop has started and that do not end.
func (x *trial) leftovers(label string) []string {
	for deadline := time.Now().Add(x.patience); ; runtime.Gosched() {
		if x.bubble {
			synctest.Wait()
		}
		stacks := labelled(label)
		if len(stacks) == 0 || x.bubble || time.Now().After(deadline) {
			return stacks
		}
	}
}

// pooled are the goroutines of connections that net/http keeps; they are its own, not the engine's.
var pooled = []string{"net/http.(*persistConn)", "net/http.(*Transport)", "http2ClientConn", "http2clientConnReadLoop"}

// labelled are the stacks of all goroutines with the label: a goroutine inherits it from the one that starts it.
func labelled(label string) []string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return []string{err.Error()}
	}
	var stacks []string
	for record := range strings.SplitSeq(b.String(), "\n\n") {
		mine := strings.Contains(record, strconv.Quote(labelKey)+":"+strconv.Quote(label))
		if mine && !slices.ContainsFunc(pooled, func(of string) bool { return strings.Contains(record, of) }) {
			stacks = append(stacks, record)
		}
	}
	return stacks
}

// goroutineID tells goroutines apart, from the first line of their stack.
func goroutineID() string {
	var b [64]byte
	line := string(b[:runtime.Stack(b[:], false)])
	id, _, _ := strings.Cut(strings.TrimPrefix(line, "goroutine "), " ")
	return id
}
