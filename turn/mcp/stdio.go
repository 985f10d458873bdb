package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"vela/turn/tool"
)

// link is a way to a server.
type link interface {
	transport() sdk.Transport

	// cut ends whatever reads from the server or writes to it, at once. It may be called from anywhere, and again.
	cut()

	// end ends the link, after the session on it, and waits for all that it started.
	end()

	// why is why the connection was lost, in words for whoever runs the server, which say what to do. It is called after
	// end, with what the connection made of it.
	why(err error) error
}

func (s *Server) dial() (link, error) {
	if s.cfg.Command != "" {
		return start(s.cfg)
	}
	return reach(s.cfg)
}

// process is a server that we started. Its output is read here, line by line, before the SDK sees it: a line that is no
// message, as programs print when they start, is logged and left out, and one that is too long ends the link.
type process struct {
	cfg    Config
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}

	// Written before ended is closed.
	left  error  // how the program ended by itself; nil: in peace, or it was killed
	words string // the last line that it wrote to its standard error
}

func start(cfg Config) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := tool.Command(ctx, cfg.Dir, cfg.Env, cfg.Command, cfg.Args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, messages := io.Pipe()
	p := &process{cfg: cfg, cmd: cmd, in: in, out: out, cancel: cancel, ended: make(chan struct{})}
	f := &filter{to: messages, log: cfg.Log}
	cmd.Stdout = &lineWriter{max: maxMessage, take: f.line}
	words := &lineWriter{max: maxLogged, take: p.word}
	cmd.Stderr = words
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start the command: %w (is it installed, and the command right?)", err)
	}
	go func() {
		defer close(p.ended)
		err := cmd.Wait()
		tool.EndGroup(cmd)
		if len(words.line) > 0 {
			_ = p.word(words.line, false) // the last one need not end
		}
		switch {
		case f.err != nil:
			p.left = f.err
		case ctx.Err() == nil:
			p.left = err
		}
		if err == nil {
			err = errors.New("it ended")
		}
		_ = messages.CloseWithError(err)
	}()
	return p, nil
}

// word takes a line of the program's standard error.
func (p *process) word(line []byte, _ bool) error {
	if text := p.cfg.redact(printable(line)); strings.TrimSpace(text) != "" {
		p.words = text
		p.cfg.Log.Debug("stderr", "line", text)
	}
	return nil
}

// why prefers how the program ended: whether its output or its input is noticed first to be closed is chance.
func (p *process) why(err error) error {
	if p.left != nil {
		err = fmt.Errorf("the command ended: %w", p.left)
	}
	if p.words != "" {
		err = fmt.Errorf("%w; the last line that it wrote: %q", err, p.words)
	}
	if p.left != nil {
		err = fmt.Errorf("%w (run it by hand to see more)", err)
	}
	return err
}

func (p *process) transport() sdk.Transport {
	return &sdk.IOTransport{Reader: p.out, Writer: p.in, MaxLineLength: maxMessage + 1}
}

func (p *process) cut() { p.cancel() }

// end gives the program time to end by itself: the end of its input tells it to.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.out.Close()
	patience := time.NewTimer(p.cfg.grace)
	defer patience.Stop()
	select {
	case <-p.ended:
	case <-patience.C:
	}
	p.cancel()
	<-p.ended
}

// filter passes on messages. It belongs to the goroutine that reads the output; err may be read once that has ended.
type filter struct {
	to    *io.PipeWriter
	log   *slog.Logger
	since time.Time
	count int
	err   error
}

var (
	errLong  = fmt.Errorf("it wrote a message of more than %d MiB", maxMessage>>20)
	errFlood = fmt.Errorf("it wrote more than %d lines in a second", maxRate)
)

// line takes one line. An error ends the reading, and with it the program, which cannot write any more.
func (f *filter) line(line []byte, long bool) error {
	if now := time.Now(); now.Sub(f.since) >= time.Second {
		f.since, f.count = now, 0
	}
	f.count++
	switch text := bytes.TrimSpace(line); {
	case long:
		f.err = errLong
	case f.count > maxRate:
		f.err = errFlood
	case len(text) == 0:
		return nil
	case text[0] != '{' && text[0] != '[' || !json.Valid(text):
		f.log.Debug("no message", "line", printable(text))
		return nil
	default:
		// Nobody reads any more once it is to end. It may be writing still, of a call under way, and that is not to be its death.
		if _, err := f.to.Write(append(text, '\n')); !errors.Is(err, io.ErrClosedPipe) {
			return err
		}
		return nil
	}
	_ = f.to.CloseWithError(f.err)
	return f.err
}

// maxLogged is how many bytes of a line are logged.
const maxLogged = 500

func printable(line []byte) string {
	if len(line) > maxLogged {
		line = line[:maxLogged]
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}

// lineWriter makes lines of what is written to it. Of one that is longer than max, take gets the beginning.
type lineWriter struct {
	max  int
	take func(line []byte, long bool) error

	line []byte
	skip bool // the rest of a line that was too long
}

func (w *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		piece, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		if !w.skip {
			room := min(w.max-len(w.line), len(piece))
			w.line = append(w.line, piece[:room]...)
			if w.skip = room < len(piece); w.skip || whole {
				if err := w.take(w.line, w.skip); err != nil {
					return 0, err
				}
				w.line = w.line[:0]
			}
		}
		if whole {
			w.skip = false
		}
	}
	return len(p), nil
}
