package main

import (
	"context"
	"log/slog"
	"net"

	"vela/gateway"
	"vela/gateway/script"
	"vela/turn/deterministic"
)

type scriptCmd struct {
	Files []string `arg:"" help:"Scripts, or folders of them. gateway/script/README.md describes the format."`
	URL   string   `help:"Gateway to run them against; one is started for them unless given." placeholder:"URL" env:"VELA_URL"`
}

// Run runs the scripts and ends with 1 when one failed.
func (c *scriptCmd) Run(ctx context.Context, io streams) error {
	if c.URL != "" {
		return c.against(ctx, io, c.URL)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, err := gateway.New(gateway.Config{
		Addr: "127.0.0.1:0",
		Pace: deterministic.DefaultPace,
		Log:  slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	select {
	case err := <-ended:
		return err
	case addr := <-ready:
		err := c.against(ctx, io, addr)
		stop()
		if ended := <-ended; err == nil {
			err = ended
		}
		return err
	}
}

func (c *scriptCmd) against(ctx context.Context, io streams, url string) error {
	failed, err := script.RunFiles(ctx, io.out, script.Gateway{Address: url, Token: token()}, c.Files)
	if err != nil {
		return err
	}
	if failed > 0 {
		return exit(1)
	}
	return nil
}
