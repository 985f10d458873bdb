package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"vela/gateway/client"
	"vela/protocol"
	"vela/session/speech"
)

type chatCmd struct {
	URL   string `help:"Gateway to talk to; VELA_TOKEN says who you are, where it asks." default:"127.0.0.1:8080" env:"VELA_URL"`
	Turns string `help:"What answers: agent or deterministic." enum:"agent,deterministic" default:"agent"`
	Agent string `help:"Which agent, by its name in the gateway's vela.yaml; the gateway's first, unless given." placeholder:"NAME"`
	Voice bool   `help:"Speak the answers, through paplay, aplay, play (SoX) or ffplay."`
	Out   string `help:"Have the answers spoken into a WAV file, one behind the other, instead." placeholder:"FILE.wav"`
}

// sink is nil where nothing is to be heard.
func (c *chatCmd) sink() (sink, error) {
	if !c.Voice && c.Out == "" {
		return nil, nil
	}
	return newSink(c.Out)
}

// Run talks until the input ends, or whoever types leaves. Ctrl-C has a meaning of its own here, so the context that it
// cancels does not count; what else ends the program does.
func (c *chatCmd) Run(ctx context.Context, out streams) (err error) {
	to, err := c.sink()
	if err != nil {
		return err
	}
	if to != nil {
		defer func() { err = cmp.Or(err, to.close()) }()
	}
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	chat := &chat{
		url: c.URL, turns: c.Turns, agent: c.Agent, sink: to, in: os.Stdin, interrupts: interrupts, streams: out,
		typed: isTerminal(os.Stdin), colour: isTerminal(out.out) && os.Getenv("NO_COLOR") == "",
	}
	return chat.run(ctx)
}

// chat is a conversation in a terminal, or in a pipe. All of it is owned by run: a goroutine each reads lines, receives
// events and watches the connection, and hands over what comes.
type chat struct {
	streams
	url, turns string
	agent      string // empty: the gateway's first
	sink       sink   // nil: the answers are text alone
	in         io.Reader
	interrupts <-chan os.Signal
	typed      bool // somebody types: there is a prompt, and a line interrupts an answer
	colour     bool

	conv     *client.Conversation
	speaker  *speaker // nil where there is no sink
	lines    []string // of a pipe, that wait for the answer before
	eof      bool
	unread   error  // why there is no more to read, unless it is the end
	pending  string // sent, and no sign yet that it arrived
	back     bool   // there was a resume since it was sent
	known    uint64 // what the session had done by then
	seq      uint64
	busy     bool // a turn runs
	asked    bool // for the history, or a new one
	quit     bool
	shown    mode // what stands in the present line
	failed   bool
	lastStop time.Time // when Ctrl-C was last pressed

	questions []protocol.ApprovalRequest // of the agent's, that nobody has answered; the first has been shown
}

// happening is one thing for run: an event, the end of the conversation, or a change of its connection.
type happening struct {
	event  protocol.Envelope
	status *client.Status
	err    error
}

// patience is how long a gateway may take to answer at first.
const patience = 15 * time.Second

func (c *chat) run(ctx context.Context) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	lines := readLines(live, c.in)
	for {
		err := c.talk(ctx, live, lines)
		if !gone(err) {
			return err
		}
		c.note("that session is gone; here is a new one")
	}
}

// gone says whether only the session is lost.
func gone(err error) bool {
	var told *client.EventError
	var closed *client.CloseError
	return errors.As(err, &told) && told.Event.Code == protocol.CodeSessionGone ||
		errors.As(err, &closed) && closed.Code == protocol.CloseSessionGone
}

// talk holds one conversation to its end. It joins what it starts.
func (c *chat) talk(ctx, live context.Context, lines <-chan input) error {
	happenings := make(chan happening)
	over := make(chan struct{})
	hand := func(h happening) {
		select {
		case happenings <- h:
		case <-over:
		}
	}
	first, cancel := context.WithTimeout(live, patience)
	defer cancel()
	settings := protocol.SessionStart{Turns: c.turns, Agent: c.agent, Approvals: &c.typed} // a pipe answers no question
	if c.sink != nil {
		settings.Audio = &protocol.AudioFormats{Output: spoken("pcm16")}
	}
	conv, err := client.Converse(first, c.url, client.ConversationOptions{
		Options:  client.Options{Token: token()},
		Settings: settings,
		Watch:    func(s client.Status) { hand(happening{status: &s}) },
	})
	if err != nil {
		return err
	}
	c.conv, c.seq, c.busy, c.asked, c.pending, c.back, c.questions = conv, 0, false, false, "", false, nil
	if c.sink != nil {
		c.speaker = newSpeaker(c.sink, speech.Samples, func(ack protocol.PlaybackAck) bool { _, err := conv.Send(live, ack); return err == nil })
		defer c.speaker.close()
	}
	var receiver sync.WaitGroup
	receiver.Go(func() {
		var err error
		for err == nil {
			var e protocol.Envelope
			e, err = conv.Receive(live)
			hand(happening{event: e, err: err})
		}
	})
	defer receiver.Wait()
	defer func() { _ = conv.Close() }()
	defer close(over)
	return c.loop(ctx, live, lines, happenings)
}

func (c *chat) loop(ctx, live context.Context, lines <-chan input, happenings <-chan happening) error {
	done := ctx.Done()
	for {
		if c.quit {
			c.speaker.cut()
		}
		if c.quit || c.eof && !c.occupied() && len(c.lines) == 0 {
			return c.result()
		}
		from := lines
		if c.eof || c.seq == 0 {
			from = nil
		}
		select {
		case line, ok := <-from:
			if !ok {
				c.eof = true
				break
			}
			if line.err != nil {
				c.eof, c.unread = true, line.err
				break
			}
			c.line(live, line.text)
		case h := <-happenings:
			if err := c.happened(live, h); err != nil {
				c.endLine()
				return err
			}
		case note := <-c.speaker.notice():
			c.note(note)
			c.prompt()
		case <-c.interrupts:
			if c.interrupt(live) {
				c.speaker.cut()
				return c.result()
			}
		case <-done:
			done = nil
			if why := context.Cause(ctx); !strings.Contains(why.Error(), os.Interrupt.String()) {
				c.speaker.cut()
				c.endLine()
				return nil // told to stop
			}
		}
	}
}

// result is how the command ends: in a pipe, a turn that failed is a failure.
func (c *chat) result() error {
	c.endLine()
	switch {
	case errors.Is(c.unread, bufio.ErrTooLong):
		return fmt.Errorf("a line is longer than %d KiB: send it in parts", protocol.MaxText>>10)
	case c.unread != nil:
		return fmt.Errorf("the input cannot be read: %w", c.unread)
	case c.failed && !c.typed:
		return exit(1)
	}
	return nil
}

// happened shows what came. Its error is the conversation's end.
func (c *chat) happened(ctx context.Context, h happening) error {
	switch {
	case h.err != nil:
		return h.err
	case h.status != nil:
		c.connection(*h.status)
		return nil
	}
	c.seq = max(c.seq, h.event.Seq)
	c.show(h.event.Message)
	if c.back && c.pending != "" && c.seq >= c.known {
		c.submit(ctx, c.pending) // what was typed did not arrive
	}
	for len(c.lines) > 0 && !c.occupied() {
		next := c.lines[0]
		c.lines = c.lines[1:]
		c.do(ctx, next)
	}
	return nil
}
