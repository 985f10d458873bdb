//go:build !unix

package processgroup

import (
	"os"
	"os/exec"
)

func own(*exec.Cmd) {}

func kill(leader *os.Process) error { return leader.Kill() }
