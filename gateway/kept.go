package gateway

import (
	"context"
	"fmt"

	"vela/gateway/bus"
	"vela/gateway/server"
	"vela/session"
)

// openBus opens the bus, with the log of signals. Without a folder and a server it is in memory.
func (g *Gateway) openBus(ctx context.Context) error {
	b, err := bus.Open(ctx, bus.Config{
		Dir: g.cfg.Data, URL: g.cfg.NATS, Metrics: g.flow, Log: g.cfg.Log.With("component", "bus"),
	})
	switch {
	case err == nil:
	case g.cfg.NATS != "":
		return fmt.Errorf("gateway: --nats: %w", err)
	case g.cfg.Data != "":
		return fmt.Errorf("gateway: --data: %w", err)
	default:
		return fmt.Errorf("gateway: %w", err)
	}
	g.bus, g.signals.run.bus = b, b
	if err := g.signals.open(ctx, b); err != nil {
		g.closeBus()
		return err
	}
	return nil
}

// keeps says whether conversations outlive the process.
func (g *Gateway) keeps() bool { return g.cfg.Data != "" || g.cfg.NATS != "" }

func (g *Gateway) closeBus() {
	if err := g.bus.Close(); err != nil {
		g.log.Error("the bus did not close well", "error", err)
	}
}

// store is a session's place on the bus; nil where sessions end with the process, and in version 1, where they end
// with their connection.
func (g *Gateway) store(id string, version int) session.Store {
	if !g.keeps() || version < 2 {
		return nil
	}
	return g.bus.Session(id)
}

// restore takes up what another process has kept. A conversation that cannot be restored is logged and left as it is:
// a later version may read it.
func (g *Gateway) restore(ctx context.Context) error {
	if !g.keeps() {
		return nil
	}
	restored := 0
	for kept, err := range g.bus.Sessions(ctx) {
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		if g.restoreOne(kept) {
			restored++
		}
	}
	g.log.Info("conversations restored", "count", restored)
	return nil
}

func (g *Gateway) restoreOne(kept bus.Stored) bool {
	id := kept.Session.ID()
	cfg := g.sessionConfig(server.NewSession{Version: 2, Follows: true, Emits: true}, id)
	cfg.Store = kept.Session
	sess, hash, err := session.Restore(cfg, session.Stored{ID: id, State: kept.State, Events: kept.Events})
	if err != nil {
		g.log.Error("a conversation could not be restored", "session", id, "error", err)
		return false
	}
	if !g.server.Adopt(sess, hash) {
		g.log.Error("a conversation could not be restored", "session", id, "error", "as many sessions as may run do")
		return false
	}
	return true
}
