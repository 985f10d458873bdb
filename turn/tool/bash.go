package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

var bashDefinition = Definition{
	Name: bash,
	Description: "Run a shell command, beginning in the folder. It is not confined to the folder: it can do whatever the gateway's user can. " +
		"Gives what the command writes, at most 64 KiB; there is no input, and what still runs when the command ends is killed.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {
			"command": {"type": "string", "description": "Such as go test ./..."},
			"timeout_ms": {"type": "integer", "minimum": 1, "maximum": 600000, "description": "How long it may take, in ms. Default: 120000, unless it is configured"}
		},
		"required": ["command"],
		"additionalProperties": false
	}`),
}

const (
	bashTimeout = 2 * time.Minute
	longestBash = 10 * time.Minute
	maxCommand  = 64 << 10 // bytes
	maxCommands = 8        // at once

	heldFor = 2 * time.Second // the longest that an output is read for once nothing of the command's group runs
)

// Bash makes the tool that runs shell commands, beginning in the root's folder. timeout is how long one may take unless
// the model asks for another time, which is at most 10 minutes; 0 stands for 2 minutes.
//
// Nothing confines a command to the folder: it runs as the user that the gateway runs as, who may read the gateway's
// own memory and keys. Its environment is PATH, HOME, LANG and TERM=dumb, so that keys are not simply there. Give an
// agent this tool only where the machine, a container or a virtual one, may be lost.
func Bash(root *os.Root, timeout time.Duration) Tool {
	return &shell{root.Name(), cmp.Or(max(0, timeout), bashTimeout), make(chan struct{}, maxCommands)}
}

type shell struct {
	dir     string
	timeout time.Duration
	running chan struct{} // a place for each command that runs
}

func (*shell) Definition() Definition { return bashDefinition }

type bashInput struct {
	Command string `json:"command"`
	Timeout *int   `json:"timeout_ms"`
}

func (s *shell) Run(ctx context.Context, input json.RawMessage) (Result, error) {
	var in bashInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	limit := s.timeout
	switch {
	case in.Command == "":
		return Result{}, missing("command")
	case len(in.Command) > maxCommand || strings.ContainsRune(in.Command, 0):
		return Result{}, say(nil, "The command is longer than %d KiB, or has a NUL in it.", maxCommand>>10)
	case in.Timeout != nil && (*in.Timeout < 1 || int64(*in.Timeout) > longestBash.Milliseconds()):
		return Result{}, say(nil, "timeout_ms must be from 1 to %d.", longestBash.Milliseconds())
	case in.Timeout != nil:
		limit = time.Duration(*in.Timeout) * time.Millisecond
	}
	return within(ctx, s.running, limit, bash, func(ctx context.Context) (Result, error) {
		return s.command(ctx, in.Command, limit)
	})
}

// command runs a command to its end. One that fails is an error, with what it wrote.
func (s *shell) command(ctx context.Context, line string, limit time.Duration) (Result, error) {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return Result{}, say(err, "The folder is gone.")
	}
	var out ends
	cmd := Command(ctx, dir, []string{"TERM=dumb"}, interpreter(), "-c", line)
	whole, err := run(ctx, cmd, &out)
	text := strings.ToValidUTF8(out.String(), "\uFFFD")
	if !whole {
		text += "\n[the output may be incomplete: something that the command started goes on, and holds it]\n"
	}
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Result{}, say(nil, "The command was stopped: it was not done after %v.\n%s", limit, text)
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case err == nil:
		return Result{Content: text, Output: encode(output{Content: text})}, nil
	case errors.As(err, &exit):
		return Result{}, say(nil, "The command ended with %v.\n%s", exit, text)
	default:
		return Result{}, say(err, "The command could not be started.")
	}
}

// run runs a command to its end, and ends what it left running. whole says that all of the output is in out: it is not where
// a process that has left the command's group holds it.
func run(ctx context.Context, cmd *exec.Cmd, out *ends) (whole bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return true, err
	}
	defer func() { _ = r.Close() }()
	cmd.Stdout, cmd.Stderr = w, w // the same: both come in the order that they were written in
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return true, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(out, r)
	}()
	err = cmd.Wait()
	// What it left running has a moment to end by itself, as a tee that still writes. Once the group is killed only the
	// output's reader can be late, which costs nothing of what was written.
	whole = closed(context.WithoutCancel(ctx), read, grace/2)
	EndGroup(cmd)
	if whole = whole || closed(ctx, read, heldFor); !whole {
		_ = r.Close()
		<-read
	}
	return whole, err
}

// closed says whether a channel is closed before the time is over and ctx is done.
func closed(ctx context.Context, c <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

func interpreter() string {
	if found, err := exec.LookPath("bash"); err == nil {
		return found
	}
	return "/bin/sh"
}

// maxEnd is how many bytes are kept of each end of an output.
const maxEnd = 32 << 10

// ends keeps the two ends of what is written to it. It belongs to the one goroutine that writes, until that has ended.
type ends struct {
	head, tail []byte
	lost       int
}

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	room := min(maxEnd-len(e.head), len(p))
	e.head = append(e.head, p[:room]...)
	p = p[room:]
	if extra := len(e.tail) + len(p) - maxEnd; extra > 0 {
		e.lost += extra
		fromTail := min(extra, len(e.tail))
		e.tail = append(e.tail[:0], e.tail[fromTail:]...)
		p = p[extra-fromTail:]
	}
	e.tail = append(e.tail, p...)
	return n, nil
}

func (e *ends) String() string {
	if e.lost == 0 {
		return string(e.head) + string(e.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes are left out here]\n%s", e.head, e.lost, e.tail)
}
