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
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
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
	p := &process{cmd: cmd, in: in, out: out, cancel: cancel, ended: make(chan struct{})}
	f := &filter{to: messages, log: cfg.Log}
	cmd.Stdout = &lineWriter{max: maxMessage, take: f.line}
	cmd.Stderr = &lineWriter{max: maxLogged, take: func(line []byte, _ bool) error {
		cfg.Log.Debug("stderr", "line", printable(line))
		return nil
	}}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("mcp: start the command: %w", err)
	}
	go func() {
		defer close(p.ended)
		err := cmd.Wait()
		tool.EndGroup(cmd)
		if f.err != nil {
			err = f.err
		}
		if err == nil {
			err = errors.New("it ended")
		}
		_ = messages.CloseWithError(fmt.Errorf("mcp: the command: %w", err))
	}()
	return p, nil
}

func (p *process) transport() sdk.Transport {
	return &sdk.IOTransport{Reader: p.out, Writer: p.in, MaxLineLength: maxMessage + 1}
}

func (p *process) cut() { p.cancel() }

// end gives the program time to end by itself: the end of its input, or that of its output, tells it to.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.out.Close()
	patience := time.NewTimer(grace)
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
		_, err := f.to.Write(append(text, '\n'))
		return err
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
