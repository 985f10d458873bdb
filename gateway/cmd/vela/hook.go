package main

import (
	"context"
	"errors"
	"os"

	"vela/gateway/tap"
)

type hookCmd struct {
	Settings string `arg:"" optional:"" help:"Claude Code's file of settings, in which the gateway's address and its token stand."`
}

// Validate is called by kong after parsing.
func (c *hookCmd) Validate() error {
	if c.Settings == "" {
		return errors.New("Claude Code calls this by itself, once it is connected: by Connect on the page, a POST to /api/tap/connect, or vela serve --claude-code. " +
			"By hand it wants the settings that the hooks are in, such as .claude/settings.local.json, and what a hook is told on standard input")
	}
	return nil
}

// Run tells the gateway what comes on standard input. It prints nothing: Claude Code would give that to its model.
func (c *hookCmd) Run(ctx context.Context) error { return tap.Post(ctx, c.Settings, os.Stdin) }
