//go:build unix

package dispatch

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command's cancel kill all that it has started.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
