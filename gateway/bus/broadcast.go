package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
)

// commandSubject is where commands go. Nothing keeps them: whoever does not listen has missed them.
const commandSubject = "vela.command"

// What may wait for one listener.
const (
	maxUnheard      = 4096
	maxUnheardBytes = 16 << 20
)

// Broadcast sends a command to all who listen now. It does not wait for any of them.
func (b *Bus) Broadcast(command []byte) error {
	if b.answers.closed() {
		return ErrClosed
	}
	if err := b.nc.Publish(commandSubject, command); err != nil {
		return fmt.Errorf("bus: broadcast: %w", sendError(err))
	}
	return nil
}

// Commands yields what is broadcast from now on, until ctx is done or the bus is closed. Now is when the call returns,
// not when reading begins. A listener that is too slow ends with [ErrBehind], and disturbs nobody. The sequence is read
// once.
func (b *Bus) Commands(ctx context.Context) (iter.Seq2[[]byte, error], error) {
	if b.answers.closed() {
		return nil, ErrClosed
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("bus: listen: %w", cause)
	}
	sub, err := b.nc.SubscribeSync(commandSubject)
	if err != nil {
		return nil, fmt.Errorf("bus: listen: %w", err)
	}
	err = sub.SetPendingLimits(maxUnheard, maxUnheardBytes)
	if err == nil {
		flush, cancel := context.WithTimeout(ctx, ackWait)
		err = b.nc.FlushWithContext(flush) // then the server knows of it
		cancel()
	}
	if err != nil {
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("bus: listen: %w", ended(ctx, err))
	}
	return func(yield func([]byte, error) bool) {
		defer func() { _ = sub.Unsubscribe() }() // at the latest Close does it
		for {
			m, err := sub.NextMsgWithContext(ctx)
			switch {
			case err == nil:
				if !yield(m.Data, nil) {
					return
				}
				continue
			case b.answers.closed():
				err = ErrClosed
			case errors.Is(err, nats.ErrSlowConsumer):
				err = ErrBehind
			default:
				err = fmt.Errorf("bus: listen: %w", ended(ctx, err))
			}
			yield(nil, err)
			return
		}
	}, nil
}
