package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"vela/turn/processgroup"
)

// Shell answers tasks with a command, run by sh -c. It reads the prompt from its standard input, and finds VELA_STEP,
// VELA_CASE and VELA_DISPATCH_ID in its environment. What it writes to standard output is the data if it is a JSON
// object, and else the text of the answer. An exit code other than 0 is an error, told with the last line of its
// standard error. When ctx is done it is killed, with every process of its group.
func Shell(command string) func(ctx context.Context, t Task) (json.RawMessage, error) {
	return func(ctx context.Context, t Task) (json.RawMessage, error) {
		out, problem := &atMost{most: maxArtifact - 1024}, &lastBytes{most: 4 << 10} // the wrapper needs its room too
		c := exec.CommandContext(ctx, "sh", "-c", command)
		c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(t.Prompt), out, problem
		c.Env = append(os.Environ(), "VELA_STEP="+string(t.Step), "VELA_CASE="+t.Case, "VELA_DISPATCH_ID="+strconv.FormatInt(t.DispatchID, 10))
		processgroup.Own(c)
		c.Cancel = func() error { return processgroup.Kill(c) }
		c.WaitDelay = time.Second // for whoever has left the group, and holds the output
		err := c.Run()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case out.full:
			return nil, fmt.Errorf("the command wrote more than %d bytes", out.most)
		case errors.Is(err, exec.ErrWaitDelay):
			return nil, errors.New("the command ended, but a process that it started holds its output")
		case err != nil:
			return nil, errors.New(strings.TrimSuffix("the command failed: "+err.Error()+": "+problem.line(), ": "))
		}
		return dataOf(out.kept, t.DispatchID)
	}
}

// dataOf makes the data of an artifact of what a command wrote. The prompt shows the wrapper, so the wrapper is taken
// too: without it, data would lie in data.
func dataOf(out []byte, id int64) (json.RawMessage, error) {
	if data, err := unwrap(out, id); err == nil {
		return data, nil
	}
	out = bytes.ToValidUTF8(bytes.TrimSpace(out), []byte("�"))
	switch {
	case len(out) == 0:
		return nil, errors.New("the command wrote nothing")
	case isObject(out):
		return out, nil
	}
	return json.Marshal(map[string]string{"answer": string(out)})
}

// atMost keeps what is written to it, and fails at more. A bytes.Buffer within it would be read into past Write.
type atMost struct {
	kept []byte
	most int
	full bool
}

func (b *atMost) Write(p []byte) (int, error) {
	if len(b.kept)+len(p) > b.most {
		b.full = true
		return 0, errors.New("too much output")
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	kept []byte
	most int
}

func (b *lastBytes) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p...)
	b.kept = bytes.Clone(b.kept[max(0, len(b.kept)-b.most):])
	return len(p), nil
}

// line is the last one with anything in it.
func (b *lastBytes) line() string {
	text := strings.TrimSpace(string(b.kept))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
