//go:build !unix

package wavcommand

import (
	"os"
	"os/exec"
)

// Where there are no process groups, only the command itself is ended.
func ownGroup(*exec.Cmd) {}

func killGroup(p *os.Process) { _ = p.Kill() }
