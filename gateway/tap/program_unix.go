//go:build unix

package tap

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noticed are the signals that do not end this process: those that the program gets, and the one that says that nobody
// reads what we write, which is an error of the write as well.
var noticed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
}

func isOurs(s os.Signal) bool { return s == syscall.SIGPIPE }

// fromTerminal says whether a signal may come from the terminal, which has sent it to the program, too: passed on, it
// would arrive twice, and programs take two interrupts for an urgent wish.
func fromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}
