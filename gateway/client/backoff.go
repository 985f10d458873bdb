package client

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"vela/protocol"
)

// Backoff is how long to wait before one more attempt: anything from nothing to First, doubled with every attempt that
// failed, up to Most. That the whole of it is drawn by lot keeps a thousand clients of one gateway from coming back at
// once. Its zero value works.
type Backoff struct {
	First time.Duration // default 250 ms
	Most  time.Duration // default 10 s
}

// wait draws how long to wait after so many attempts failed.
func (b Backoff) wait(failed int) time.Duration {
	return rand.N(b.longest(failed)) + 1
}

// longest is the most that wait may return.
func (b Backoff) longest(failed int) time.Duration {
	first, most := cmp.Or(b.First, 250*time.Millisecond), cmp.Or(b.Most, 10*time.Second)
	for ; failed > 0 && first < most; failed-- {
		first *= 2
	}
	return min(first, most)
}

// sleep is false when ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// again says whether one more attempt makes sense after a connection, or an attempt at one, ended so.
func again(err error) bool {
	var told *EventError
	var closed *CloseError
	var dial *DialError
	switch {
	case errors.As(err, &told):
		return told.Event.Retryable && told.Event.Code != protocol.CodeSessionLimit
	case errors.As(err, &closed):
		return closed.Code == CloseAbnormal || comesBack(closed.Code)
	case errors.As(err, &dial):
		return slices.Contains([]int{0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, dial.Status)
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// comesBack is what the contract's table says of a close code; one that it does not have does not ask to come back.
func comesBack(code protocol.CloseCode) bool {
	return slices.ContainsFunc(protocol.Closes(), func(i protocol.CloseInfo) bool { return i.Code == code && i.Reconnect })
}
