package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"vela/protocol"
)

// isTerminal says whether a person looks at a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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

const chatHelp = "/new begins a new conversation, /history shows this one, /quit leaves. Ctrl-C stops an answer, twice leaves."

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
