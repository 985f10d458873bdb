// Command vela is the voice-session gateway: it serves the page and the protocol, and brings the tools to try both.
// Each command is a file here, and a thin caller of the packages below gateway.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// cli is every command, flag and environment variable; the README's table is made from it.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the gateway and its page."`
	Say     sayCmd     `cmd:"" help:"Speak a WAV file to a gateway, and print what it recognised and answered."`
	Chat    chatCmd    `cmd:"" help:"Type to an agent, and read its answers as they come."`
	Hear    hearCmd    `cmd:"" help:"Show what every ear makes of WAV files."`
	Script  scriptCmd  `cmd:"" help:"Run scripted turns against a gateway, and say PASS or FAIL for each."`
	Respond respondCmd `cmd:"" help:"Answer what a gateway asks by files, with a command."`
	Emit    emitCmd    `cmd:"" help:"Send a signal to a gateway."`
	Tail    tailCmd    `cmd:"" help:"Follow the signals of a gateway: what agents and people do."`
	Tap     tapCmd     `cmd:"" help:"Run any program, and make signals of what it prints."`
	Hook    hookCmd    `cmd:"" hidden:"" help:"Tell the gateway what Claude Code tells a hook. The gateway has Claude Code call it."`
	Replay  replayCmd  `cmd:"" help:"Run a session's journal again, and say whether the same events come out."`
	Key     keyCmd     `cmd:"" help:"Make a server key for VELA_KEYS."`
	Livekit livekitCmd `cmd:"" help:"Set LiveKit up: check it, and try a room."`
	Engines enginesCmd `cmd:"" help:"Show every agent, MCP server and speech engine: whether it is there, and why not."`
}

const description = `A voice-session gateway: hold a button, talk to an agent.

New here? Start the gateway and open the address that it prints:

  vela serve --turns agent

Every flag of serve has an environment variable, shown behind it as $VELA_…`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, lastResort)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// lastResort keeps the promise that the process ends within 5 s of being told to, whatever hangs.
func lastResort() {
	time.Sleep(4800 * time.Millisecond)
	if unhurried.Load() {
		return
	}
	fmt.Fprintln(os.Stderr, "vela: something did not come to its end in time; what it was about to write may be missing")
	os.Exit(1)
}

// unhurried is set by a command that ends when a program of somebody else's does.
var unhurried atomic.Bool

// exit is what a command returns when it has said all there is to say: only its code is left.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }
