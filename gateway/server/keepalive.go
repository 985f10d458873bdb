package server

import (
	"context"
	"sync"
	"time"
)

// keepAlive pings a client and cuts the connection when no pong comes. Since a pong can only be read behind what the
// client sent before, and a ping only be written behind what waits, this bounds a stalled read and a stalled write as
// well. Between pings it is a timer, not a goroutine.
type keepAlive struct {
	mu    sync.Mutex
	timer *time.Timer
	done  bool
	wg    sync.WaitGroup // the ping under way
}

func (k *keepAlive) start(ctx context.Context, every time.Duration, ping func(context.Context) error, cut func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(every, func() {
		if !k.begin() {
			return
		}
		defer k.wg.Done()
		ctx, cancel := context.WithTimeout(ctx, every)
		defer cancel()
		if ping(ctx) != nil {
			cut()
			return
		}
		k.again(every)
	})
}

func (k *keepAlive) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.done {
		k.wg.Add(1)
	}
	return !k.done
}

func (k *keepAlive) again(every time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.done {
		k.timer.Reset(every)
	}
}

// stop ends the pings and waits for the one under way, whose context the caller has cancelled.
func (k *keepAlive) stop() {
	k.mu.Lock()
	k.done = true
	k.timer.Stop()
	k.mu.Unlock()
	k.wg.Wait()
}
