//go:build !unix

package tap

import "os"

// noticed are the signals that do not end this process. The terminal sends them to the program, too.
var noticed = []os.Signal{os.Interrupt}

func isOurs(os.Signal) bool { return true }

func fromTerminal(os.Signal) bool { return true }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
