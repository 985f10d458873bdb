package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"vela/gateway/room"
	"vela/session/opus"
)

// livekitCmd is for whoever sets LiveKit up. Where it is, and its key, come from vela.yaml and the environment, as for
// serve.
type livekitCmd struct {
	Check checkCmd `cmd:"" help:"Look whether LiveKit's rooms can work: address, clock, key, permissions, and the agent in a room."`
	Join  joinCmd  `cmd:"" help:"Join a room as a phone does, say a WAV file there, and print what comes of it."`
}

var errNoLiveKit = errors.New("LiveKit is not configured: set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET, or livekit in vela.yaml")

// liveKit is where LiveKit is.
func liveKit(c configFile) (room.Config, error) {
	file, err := c.read()
	if err != nil {
		return room.Config{}, err
	}
	at, err := file.LiveKit()
	if err == nil && at.URL == "" {
		err = errNoLiveKit
	}
	codec, _ := opus.New() // check says so where there is none, and join its reason
	return room.Config{URL: at.URL, Key: at.Key, Secret: at.Secret, Agent: at.Agent, Codec: codec}, err
}

type checkCmd struct {
	Room   string     `arg:"" optional:"" help:"Room in which an agent should be."`
	Config configFile `help:"File that says where LiveKit is; vela.yaml in this folder, where there is one, unless given." placeholder:"FILE" env:"VELA_CONFIG"`
}

// Run prints a line for each thing that was looked at, and what to do about what is wrong.
func (c *checkCmd) Run(ctx context.Context, io streams) error {
	cfg, err := liveKit(c.Config)
	if err != nil {
		return err
	}
	wrong := 0
	for _, f := range room.Check(ctx, cfg, c.Room) {
		mark := "ok   "
		if f.Do != "" {
			mark = "wrong"
			wrong++
		}
		fmt.Fprintf(io.out, "%s  %-12s %s\n", mark, f.What, f.Says)
		if f.Do != "" {
			fmt.Fprintf(io.out, "       %-12s %s\n", "", f.Do)
		}
	}
	if wrong > 0 {
		return exit(1)
	}
	return nil
}

type joinCmd struct {
	Room   string     `arg:"" help:"Room to join."`
	File   string     `help:"WAV file to say, PCM of any rate and up to 8 channels; - reads standard input." required:"" placeholder:"FILE.wav"`
	As     string     `help:"Identity to join with; made up unless given." placeholder:"NAME"`
	Config configFile `help:"File that says where LiveKit is; vela.yaml in this folder, where there is one, unless given." placeholder:"FILE" env:"VELA_CONFIG"`
}

// Run says one thing. What was recognised and answered goes to standard output, everything else to standard error.
func (c *joinCmd) Run(ctx context.Context, io streams) error {
	cfg, err := liveKit(c.Config)
	if err != nil {
		return err
	}
	samples, err := readSpeech(c.File)
	if err != nil {
		return err
	}
	if _, err := opus.New(); err != nil {
		return err
	}
	url, token, err := room.New(cfg).Token(c.Room, c.As, "", "", nil, nil)
	if err != nil {
		return err
	}
	return room.Phone{URL: url, Token: token, Codec: cfg.Codec, On: func(h room.Heard) {
		switch {
		case h.State != "":
			fmt.Fprintf(io.err, "the agent: %s\n", h.State)
		case h.Event != nil:
			fmt.Fprintf(io.err, "event: %s\n", bytes.TrimSpace(h.Event))
		case h.Final && h.Text != "":
			fmt.Fprintf(io.out, "%s: %s\n", h.Who, h.Text)
		case h.Text != "":
			fmt.Fprintf(io.err, "… %s\n", h.Text)
		}
	}}.Say(ctx, samples)
}
