//go:build !unix

package tool

import (
	"os"
	"os/exec"
)

// Where there are no process groups, only the child itself is ended.
func ownGroup(*exec.Cmd) {}

func killGroup(p *os.Process) error { return p.Kill() }
