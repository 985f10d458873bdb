package tool

import (
	"context"
	"os"
	"os/exec"

	"vela/turn/processgroup"
)

// Command prepares a child process that is ended as a whole: when ctx is done it is killed, with all that it started.
// The exceptions are processes that left their parent's group (setsid), which nothing but the system's own means of
// confinement would catch. [EndGroup] does the same later, once the child itself has ended.
//
// Of this process's environment it gets PATH, HOME and LANG alone, since keys may be in the rest; env is what it gets
// beside them, as NAME=value. dir is where it runs; empty: where this process does.
func Command(ctx context.Context, dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{} // nil would be everything
	for _, inherited := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(inherited); ok {
			cmd.Env = append(cmd.Env, inherited+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	processgroup.Own(cmd)
	cmd.Cancel = func() error { return processgroup.Kill(cmd) }
	cmd.WaitDelay = grace / 2 // for what still holds its pipes
	return cmd
}

// EndGroup kills what a child that has ended left running. It is called once Wait has returned.
func EndGroup(cmd *exec.Cmd) {
	_ = processgroup.Kill(cmd) // there is nothing left of most
}
