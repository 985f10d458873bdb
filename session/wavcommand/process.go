package wavcommand

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"vela/session/speech"
	"vela/turn/processgroup"
)

// patience is how long a process that was killed may keep its pipes open, through one that has left its group, before they are closed.
const patience = time.Second

// run speaks text with one process, and returns when that has ended.
func (s *Synthesizer) run(ctx context.Context, text string, yield func(speech.Chunk) bool) error {
	cmd := exec.Command(s.cfg.Argv[0], s.cfg.Argv[1:]...)
	processgroup.Own(cmd)
	cmd.WaitDelay = patience
	cmd.Stdin = strings.NewReader(text)
	var said beginning
	cmd.Stderr = &said
	defer func() {
		if words := said.String(); words != "" {
			s.log.Warn("the command complains", "stderr", words)
		}
	}()
	var err error
	if s.cfg.Seekable {
		err = toFile(ctx, cmd, yield)
	} else {
		err = toPipe(ctx, cmd, yield)
	}
	if err != nil && ctx.Err() != nil {
		err = failed(context.Cause(ctx))
	}
	return err
}

// toPipe hears a command while it writes.
func toPipe(ctx context.Context, cmd *exec.Cmd, yield func(speech.Chunk) bool) error {
	out, in, err := os.Pipe()
	if err != nil {
		return unavailable(err)
	}
	defer out.Close()
	cmd.Stdout = in
	p, err := start(ctx, cmd)
	in.Close()
	if err != nil {
		return err
	}
	// A process that has left the group may hold the pipe: what ends the reading is its close.
	unwatch := context.AfterFunc(ctx, func() { out.Close() })
	defer unwatch()
	left, err := hear(out, yield)
	if left {
		p.kill()
		return nil
	}
	// What follows the sound, such as a title, is nothing to die of.
	_, _ = io.CopyN(io.Discard, out, mostBehind)
	out.Close()
	return why(p.wait(), err)
}

// mostBehind is how much a command may write behind its sound, in bytes.
const mostBehind = 1 << 20

// why is why a sentence failed: what became of the process says more than that it was not understood.
func why(ended, heard error) error {
	if ended != nil {
		return failed(errors.Join(ended, heard))
	}
	if heard != nil {
		return failed(heard)
	}
	return nil
}

// toFile hears a command that has ended.
func toFile(ctx context.Context, cmd *exec.Cmd, yield func(speech.Chunk) bool) error {
	out, err := nameless()
	if err != nil {
		return unavailable(err)
	}
	defer out.Close()
	cmd.Stdout = out
	p, err := start(ctx, cmd)
	if err != nil {
		return err
	}
	if err := p.wait(); err != nil {
		return failed(err)
	}
	_, err = hear(io.NewSectionReader(out, 0, math.MaxInt64), yield)
	return why(nil, err)
}

// nameless is a file that ends with the last who has it open.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "vela-speech-*.wav")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// hear passes the sound on until it ends or nobody wants more of it.
func hear(r io.Reader, yield func(speech.Chunk) bool) (left bool, err error) {
	for chunk, err := range speech.StreamWAV(r, longestSpeech) {
		if err != nil {
			return false, err
		}
		if !yield(chunk) {
			return true, nil
		}
	}
	return false, nil
}

// process is a command that runs, with its group.
type process struct {
	cmd  *exec.Cmd
	stop func() bool // ends the watch over the context
}

// start runs a command until it ends or ctx does.
func start(ctx context.Context, cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, unavailable(err)
	}
	return &process{cmd, context.AfterFunc(ctx, func() { _ = processgroup.Kill(cmd) })}, nil
}

// kill ends the group and waits for the process.
func (p *process) kill() {
	p.stop()
	_ = processgroup.Kill(p.cmd)
	_ = p.cmd.Wait() // it was killed, and says so
}

// wait is for a process that ends by itself; what is left of its group is killed.
func (p *process) wait() error {
	err := p.cmd.Wait()
	p.stop()
	_ = processgroup.Kill(p.cmd) // of most there is nothing left
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, exec.ErrWaitDelay) {
		return nil // it did not read all of the text, or a child of it lives: neither is wrong with what was heard
	}
	return err
}

// mostWords is what is kept of standard error, in bytes: the beginning, where the reason stands.
const mostWords = 4 << 10

// beginning keeps the beginning of what is written to it.
type beginning struct {
	mu   sync.Mutex
	kept []byte
}

func (t *beginning) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[:min(len(b), mostWords-len(t.kept))]...)
	return len(b), nil
}

func (t *beginning) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "\uFFFD")
}
