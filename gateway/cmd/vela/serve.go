package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"vela/gateway"
	"vela/session"
	"vela/session/silero"
)

type serveCmd struct {
	Addr           string        `help:"Address to listen on. One that others can reach needs --auth keys and --tls." default:"127.0.0.1:8080" env:"VELA_ADDR"`
	Auth           string        `help:"Who may come in: none asks nobody, keys wants a token, or a server key of VELA_KEYS." enum:"none,keys" default:"none" env:"VELA_AUTH"`
	TLS            tlsFlag       `name:"tls" help:"Speak https: self with a certificate that this machine makes and keeps, or CERT KEY with that of two PEM files; CERT,KEY in the variable." placeholder:"self|CERT KEY" env:"VELA_TLS"`
	Invite         string        `help:"Print links that sign a phone in, also drawn with qr: none, link or qr. They hold a token." enum:"none,link,qr" default:"none" env:"VELA_INVITE"`
	Config         configFile    `help:"File that says which agents there are; vela.yaml in this folder, where there is one, unless given." placeholder:"FILE" env:"VELA_CONFIG"`
	Turns          string        `help:"What a client gets that does not ask: deterministic or agent turns." enum:"deterministic,agent" default:"deterministic" env:"VELA_TURNS"`
	Pace           time.Duration `help:"Pause between the events of a deterministic answer; 0s answers at once." default:"120ms" env:"VELA_PACE"`
	Origin         []string      `help:"Origin of another page that may connect, such as https://example.org. May be repeated." placeholder:"ORIGIN" env:"VELA_ORIGIN"`
	MaxSessions    int           `help:"How many sessions may run at once." default:"1000" env:"VELA_MAX_SESSIONS"`
	Idle           time.Duration `help:"How long a session may last without a word." default:"10m" env:"VELA_IDLE"`
	Resume         time.Duration `help:"How long a session of version 2 is kept after its connection is lost." default:"2m" env:"VELA_RESUME"`
	Data           string        `help:"Folder where conversations are kept, so that they survive a restart or a crash, and the certificate of --tls self; without it conversations end with the process." placeholder:"DIR" env:"VELA_DATA"`
	Nats           string        `help:"NATS server with JetStream that keeps them instead, such as nats://127.0.0.1:4222; a second gateway is refused there." placeholder:"URL" env:"VELA_NATS"`
	Wiring         string        `help:"File that says what signals set off, wiring.json; it is read again when it changes." type:"path" placeholder:"FILE" env:"VELA_WIRING"`
	ClaudeCode     bool          `help:"Connect to Claude Code by itself where this folder or one above has .claude: hooks are put into its settings there, and taken out at the end." env:"VELA_CLAUDE_CODE"`
	ClaudeProject  string        `help:"Folder of the project whose Claude Code that is; this one, or the nearest above it with .claude, unless given." type:"path" placeholder:"DIR" env:"VELA_CLAUDE_PROJECT"`
	MIDI           string        `name:"midi" help:"Folder in which MIDI devices appear as files midi…; where Linux has them, unless given." type:"path" placeholder:"DIR" env:"VELA_MIDI"`
	Webhook        string        `help:"Address that is told of what people do, by a signed POST; its secret, whsec_…, is in VELA_WEBHOOK_SECRET." placeholder:"URL" env:"VELA_WEBHOOK"`
	WebhookTypes   []string      `help:"Types of signals that it is told of; a star at the end stands for anything. May be repeated." default:"user.*" placeholder:"TYPE" env:"VELA_WEBHOOK_TYPES"`
	Journal        string        `help:"Folder where every session writes what reached it, for vela replay. What was said stands in it." placeholder:"DIR" env:"VELA_JOURNAL"`
	SpeechModel    string        `help:"Folder of PocketSphinx's model; where the system keeps it, unless given." placeholder:"DIR" env:"VELA_SPEECH_MODEL"`
	SpeechDecoders int           `help:"How many may speak at once, at about 100 MB each; 0 is one a CPU, at least 2." default:"0" env:"VELA_SPEECH_DECODERS"`
	ONNXRuntime    string        `name:"onnxruntime" help:"Library of ONNX Runtime, which detects speech for hands-free turns; beside the program, or where the system keeps libraries, unless given." placeholder:"FILE" env:"VELA_ONNXRUNTIME"`
	Silero         string        `help:"Silero's model for it; beside the program, unless given." placeholder:"FILE" env:"VELA_SILERO"`
	LogLevel       string        `help:"How much to log: debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"VELA_LOG_LEVEL"`
	LogFormat      string        `help:"How to log: text or json." enum:"text,json" default:"text" env:"VELA_LOG_FORMAT"`
}

// Validate is called by kong after parsing.
func (c *serveCmd) Validate() error {
	switch {
	case c.Pace < 0:
		return fmt.Errorf("--pace must not be negative")
	case c.MaxSessions < 1:
		return fmt.Errorf("--max-sessions must be at least 1")
	case c.Idle < time.Second:
		return fmt.Errorf("--idle must be at least 1s")
	case c.Data != "" && c.Nats != "":
		return fmt.Errorf("--data and --nats exclude each other: leave one of them out")
	case c.Resume < time.Second:
		return fmt.Errorf("--resume must be at least 1s")
	case c.SpeechDecoders < 0:
		return fmt.Errorf("--speech-decoders must not be negative")
	case c.Invite != "none" && c.Auth != "keys":
		return fmt.Errorf("--invite needs --auth keys: there is nothing to sign in to")
	}
	return nil
}

// Run serves until the process is told to stop.
func (c *serveCmd) Run(ctx context.Context, io streams) error {
	cfg := c.config(io)
	var err error
	if cfg.Keys, err = c.keys(io); err != nil {
		return err
	}
	if cfg.Webhook, err = c.webhook(io); err != nil {
		return err
	}
	if cfg.Agents, err = c.Config.read(); err != nil {
		return err
	}
	g, err := gateway.New(cfg)
	if err != nil {
		return err
	}
	return g.Run(ctx, func(addr net.Addr) {
		fmt.Fprintf(io.out, "Vela is at %s\n", g.URL(addr))
		if print := g.Fingerprint(); print != "" {
			fmt.Fprintf(io.out, "The certificate's SHA-256 fingerprint is %s\n", print)
		}
		if c.Invite != "none" {
			if err := c.invite(io.out, g, addr); err != nil {
				fmt.Fprintln(io.err, "vela:", err)
			}
		}
	})
}

func (c *serveCmd) config(io streams) gateway.Config {
	return gateway.Config{
		Addr:        c.Addr,
		TLS:         c.tls(),
		Turns:       session.Turns(c.Turns),
		Pace:        c.Pace,
		Origins:     c.Origin,
		MaxSessions: c.MaxSessions,
		Idle:        c.Idle,
		Resume:      c.Resume,
		Data:        c.Data,
		NATS:        c.Nats,
		Wiring:      c.Wiring,
		ClaudeCode:  c.ClaudeCode,
		Project:     c.ClaudeProject,
		MIDI:        c.MIDI,
		Journal:     c.Journal,
		Speech:      gateway.Speech{Model: c.SpeechModel, Decoders: c.SpeechDecoders, Silero: silero.Files{Library: c.ONNXRuntime, Model: c.Silero}},
		Log:         c.logger(io),
	}
}

func (c *serveCmd) logger(io streams) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // kong has checked it
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(io.err, opts))
	}
	return slog.New(slog.NewTextHandler(io.err, opts))
}
