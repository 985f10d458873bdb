// Package processgroup ends a command together with all that it has started: a shell that is killed alone leaves its
// children running.
//
// [Own] gives a command a process group of its own before it starts; [Kill] kills every member of that group, while the
// command runs or after it has ended. A process that has left the group (setsid) is not found: only the system's own
// means of confinement would catch that. Where a system has no process groups, only the command itself is killed.
//
// It is a package of its own since the shell of package turn/tool, the commands of turn/dispatch and the voices of
// session/wavcommand all need it, and none of them should import another. It imports nothing of ours.
package processgroup

import (
	"os"
	"os/exec"
)

// Own has a command begin a group of its own. It is called before Start.
func Own(cmd *exec.Cmd) { own(cmd) }

// Kill kills what there is of a command's group, and waits for nothing. The error is [os.ErrProcessDone] where there is
// nothing left, as the Cancel of a command wants it, or where the command was never started. It may be called until
// shortly after Wait has returned: the group's number is given to nobody else as long as it has a member, and not soon
// after.
func Kill(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return kill(cmd.Process)
}
