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
	"vela/protocol/ganglia"
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

// isTerminal says whether a person looks at a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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

// mode is what the last thing written to the output was.
type mode int

const (
	fresh    mode = iota // nothing: a new line
	prompted             // the prompt
	thinking
	answering
)

// happening is one thing for run: an event, the end of the conversation, or a change of its connection.
type happening struct {
	event  protocol.Envelope
	status *client.Status
	err    error
}

// patience is how long a gateway may take to answer at first.
const patience = 15 * time.Second

const chatHelp = "/new begins a new conversation, /history shows this one, /quit leaves. Ctrl-C stops an answer, twice leaves."

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

// input is a line, or why there is none any more.
type input struct {
	text string
	err  error
}

// readLines reads until the input ends or nobody takes a line any more. A read of a terminal cannot be interrupted: it
// ends with the program, or with the next line.
func readLines(ctx context.Context, in io.Reader) <-chan input {
	lines := make(chan input)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, protocol.MaxText+1)
		for more := true; more; {
			var next input
			if more = scan.Scan(); more {
				next.text = scan.Text()
			} else if next.err = scan.Err(); next.err == nil {
				return
			}
			select {
			case lines <- next:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// line takes what was typed. In a pipe every line waits for the answer to the one before.
func (c *chat) line(ctx context.Context, line string) {
	line = strings.TrimSpace(line)
	c.shown = fresh // the terminal has echoed the end of the line
	switch {
	case line == "":
		c.prompt()
	case !c.typed && (c.occupied() || len(c.lines) > 0):
		c.lines = append(c.lines, line)
	default:
		c.do(ctx, line)
	}
}

// occupied says whether something is still to be answered.
func (c *chat) occupied() bool { return c.busy || c.asked || c.pending != "" }

// do does what a line says.
func (c *chat) do(ctx context.Context, line string) {
	switch {
	case line == "/quit":
		c.quit = true
	case line == "/new":
		c.asked = c.send(ctx, protocol.HistoryClear{})
	case line == "/history":
		c.asked = c.send(ctx, protocol.HistoryGet{})
	case strings.HasPrefix(line, "/"):
		c.note(chatHelp)
		c.prompt()
	case len(c.questions) > 0:
		c.answered(ctx, line)
	default:
		c.submit(ctx, line)
	}
}

// submit sends a typed turn, and keeps it until the session shows that it took it.
func (c *chat) submit(ctx context.Context, line string) {
	c.pending, c.back = line, false
	heard := c.speaker.cut()
	c.send(ctx, protocol.InputTextSubmit{Text: line})
	if heard.ResponseID != "" && c.busy { // which that has ended
		c.send(ctx, heard)
	}
}

// send sends a message, and says whether it may have arrived. A typed turn that was lost goes out again when the
// connection is back; whoever typed a command is told.
func (c *chat) send(ctx context.Context, m protocol.Message) bool {
	_, err := c.conv.Send(ctx, m)
	if err != nil && c.pending == "" {
		c.note(err.Error())
		c.prompt()
	}
	return err == nil
}

// interrupt is Ctrl-C: it stops an answer, or says how to leave. It says whether to leave.
func (c *chat) interrupt(ctx context.Context) (leave bool) {
	const twice = 2 * time.Second
	if time.Since(c.lastStop) < twice {
		return true
	}
	c.lastStop = time.Now()
	if c.busy {
		heard := c.speaker.cut()
		c.send(ctx, protocol.ResponseCancel{ResponseID: heard.ResponseID, PlayedMs: heard.PlayedMs})
		return false
	}
	c.endLine()
	c.note("Ctrl-C once more leaves")
	c.prompt()
	return false
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

// connection says what became of the connection.
func (c *chat) connection(s client.Status) {
	switch s.Phase {
	case client.Away:
		c.note(fmt.Sprintf("%v; trying again in %.1f s", s.Err, s.Wait.Seconds()))
	case client.Back:
		c.note("connected again")
	case client.Missed:
		c.note("connected again, but some of what happened meanwhile is missing")
	}
}

// show writes an event, and lets it be heard.
func (c *chat) show(m protocol.Message) {
	c.speaker.hear(m)
	switch m := m.(type) {
	case protocol.SessionReady:
		c.ready(m)
	case protocol.SessionState:
		c.busy = m.Value != protocol.Idle
		if !c.busy {
			c.endLine()
			c.prompt()
		}
	case protocol.TranscriptFinal:
		c.pending, c.busy = "", true
	case protocol.ThinkingDelta:
		c.write(thinking, m.Text)
	case protocol.ResponseTextDelta:
		c.write(answering, m.Text)
	case protocol.ToolCall:
		c.called(m)
	case protocol.ToolResult:
		c.returned(m)
	case ganglia.Artifact:
		c.artifact(m)
	case protocol.ApprovalRequest:
		c.asks(m)
	case protocol.ResponseCompleted:
		c.withdraw(all)
	case protocol.ResponseCancelled:
		c.withdraw(all)
		if m.Reason != protocol.CancelError {
			c.write(c.shown, " …")
		}
	case protocol.History:
		c.history(m)
	case protocol.Error:
		c.failed, c.asked, c.pending = true, false, ""
		c.note(m.Message)
	}
}

func (c *chat) ready(m protocol.SessionReady) {
	switch {
	case m.Terms == nil:
	case m.Resumed:
		c.back, c.known = true, m.LastSeq
		c.asked = false // its answer, if it came, was lost with the connection
	case c.typed:
		c.note(fmt.Sprintf("talking to %s. %s", who(m), chatHelp))
	}
}

func who(m protocol.SessionReady) string {
	if m.Turns == "deterministic" || m.Agent == "" {
		return "the fixed turns"
	}
	return m.Agent
}

func (c *chat) history(h protocol.History) {
	c.endLine()
	c.asked = false
	if len(h.Items) == 0 {
		c.note("a new conversation")
	}
	for _, item := range h.Items {
		fmt.Fprintf(c.out, "%s: %s\n", item.Role, clean(item.Text))
	}
	c.prompt()
}

// write writes a piece of what is being said or thought; what changes begins a new line.
func (c *chat) write(as mode, text string) {
	if as != c.shown {
		c.endLine()
	}
	c.shown = as
	text = clean(text)
	if as == thinking {
		text = c.dimmed(text)
	}
	fmt.Fprint(c.out, text)
}

// aside is a line of its own beside the answer.
func (c *chat) aside(text string) {
	c.endLine()
	fmt.Fprintln(c.out, c.dimmed(clean(text)))
}

func (c *chat) dimmed(text string) string {
	if !c.colour {
		return text
	}
	return "\x1b[2m" + text + "\x1b[22m"
}

// note is a line about the conversation, which is no part of it.
func (c *chat) note(text string) {
	c.endLine()
	fmt.Fprintf(c.err, "— %s\n", clean(text))
}

func (c *chat) endLine() {
	if c.shown != fresh {
		fmt.Fprintln(c.out)
	}
	c.shown = fresh
}

func (c *chat) prompt() {
	if c.typed && !c.eof && c.shown != prompted {
		fmt.Fprint(c.out, "> ")
		c.shown = prompted
	}
}
