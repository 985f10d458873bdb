package main

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

// process is a server under measurement.
type process struct {
	cmd  *exec.Cmd
	addr string
}

// start runs a server that prints "… is at http://HOST:PORT" when it is ready.
func start(name string, args ...string) (*process, error) {
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
			return &process{cmd, strings.TrimRight(addr, "/ ")}, nil
		}
	}
	_ = cmd.Process.Kill()
	return nil, fmt.Errorf("bench: %s ended before it was ready: %v", name, cmd.Wait())
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	done := time.AfterFunc(6*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	done.Stop()
}

// cpu is the processor time that the server has used, in user and system mode.
func (p *process) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11]) // fields 14 and 15 of proc_pid_stat(5), in ticks of 10 ms
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is how much memory the server has resident, in bytes.
func (p *process) resident() int {
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
