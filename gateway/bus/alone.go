package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// gatewaySubject is where a gateway answers whoever asks whether there is one. Nothing keeps that, so that none is there
// any more once its connection is gone, however it ended.
const gatewaySubject = "vela.gateway"

// askTimes is how often it is asked for. One that has just ended is listed until the server has noticed.
const askTimes = 5

// occupy takes a server elsewhere for this bus alone, or returns [ErrInUse]: a second gateway would take up the conversations
// that the first one is having, and each would break off those of the other.
//
// It has a connection of its own, which does not hear itself. So a bus is there first, and asks then: of two that open at once
// at least one is refused.
func (b *Bus) occupy(ctx context.Context, url string) error {
	nc, err := b.dial(ctx, url, nats.NoEcho())
	if err != nil {
		return err
	}
	b.claim = nc
	if _, err := nc.Subscribe(gatewaySubject, func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
		return fmt.Errorf("bus: subscribe: %w", err)
	}
	for range askTimes {
		asked, cancel := context.WithTimeout(ctx, connectWait/askTimes)
		_, err = nc.RequestWithContext(asked, gatewaySubject, nil)
		cancel()
		switch {
		case err == nil:
			return fmt.Errorf("bus: the NATS server is %w, or an account of its own", ErrInUse)
		case errors.Is(err, nats.ErrNoResponders):
			return nil
		case ctx.Err() != nil:
			return ended(ctx, err)
		}
	}
	// One whose machine has died is listed for a while. It must not keep the next one from taking over.
	b.log.Warn("whether another gateway uses this NATS server could not be found out: each needs its own", "error", err)
	return nil
}
