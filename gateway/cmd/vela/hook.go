package main

import (
	"context"
	"os"

	"vela/gateway/tap"
)

type hookCmd struct {
	Settings string `arg:"" help:"Claude Code's file of settings, in which the gateway's address and its token stand."`
}

// Run tells the gateway what comes on standard input. It prints nothing: Claude Code would give that to its model.
func (c *hookCmd) Run(ctx context.Context) error { return tap.Post(ctx, c.Settings, os.Stdin) }
