// Package proc runs a server as a process of its own, and says what it uses.
package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a server under measurement.
type Process struct {
	Addr string // host:port
	cmd  *exec.Cmd
}

// Start runs a server that prints "… is at http://HOST:PORT" when it is ready.
func Start(name string, args ...string) (*Process, error) {
	cmd := exec.Command(name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "http://"); ok {
			return &Process{strings.TrimRight(addr, "/ "), cmd}, nil
		}
	}
	_ = cmd.Process.Kill()
	return nil, fmt.Errorf("bench: %s ended before it was ready: %v", name, cmd.Wait())
}

// Stop ends it, and waits for that.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	done := time.AfterFunc(6*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	done.Stop()
}

// CPU is the processor time that the server has used, in user and system mode.
func (p *Process) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11]) // fields 14 and 15 of proc_pid_stat(5), in ticks of 10 ms
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Resident is how much memory the server has resident, in bytes.
func (p *Process) Resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb << 10
		}
	}
	return 0
}
