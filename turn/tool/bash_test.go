package tool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vela/turn/tool"
)

func newShell(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	root, err := os.OpenRoot(p.dir)
	p.must(err)
	t.Cleanup(func() { p.must(root.Close()) })
	p.tools = set(t, tool.Bash(root, 0))
	return p
}

func TestBash(t *testing.T) {
	p := newShell(t)
	p.file("a.txt", "hello")
	for command, want := range map[string]string{
		"cat a.txt":                   "hello",
		"pwd":                         p.dir + "\n",
		"echo one; echo two >&2":      "one\ntwo\n",
		"cat":                         "",
		`printf 'caf\351'`:            "caf\uFFFD",
		"exit 0; echo not reached":    "",
		"echo x > b.txt && cat b.txt": "x\n",
	} {
		r := p.gives("bash", in{"command": command})
		if r.Content != want || p.output(r).Content != want {
			t.Errorf("%s: %q", command, r.Content)
		}
	}
	p.refuses("bash", in{"command": "echo oh; exit 3"}, "The command ended with exit status 3.\noh\n")
	p.refuses("bash", in{"command": "kill -9 $$"}, "The command ended with signal: killed.")
	p.refuses("bash", in{"command": ""}, `needs "command"`)
	p.refuses("bash", in{"command": "echo \x00"}, "NUL")
	p.refuses("bash", in{"command": "true", "timeout_ms": 0}, "from 1 to 600000")
	p.refuses("bash", in{"command": "true", "timeout_ms": 600001}, "from 1 to 600000")
}

// Keys are in the gateway's environment, not in a command's.
func TestBashEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"VELA_KEYS": "key", "OPENAI_API_KEY": "key", "AWS_SECRET_ACCESS_KEY": "key", "HOME": "/home/x", "LANG": "C.UTF-8", "TERM": "xterm",
	} {
		t.Setenv(name, value)
	}
	p := newShell(t)
	got := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(p.gives("bash", in{"command": "env"}).Content), "\n") {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	for _, own := range []string{"PWD", "OLDPWD", "SHLVL", "_"} { // the shell's
		delete(got, own)
	}
	if len(got) != 4 || got["HOME"] != "/home/x" || got["LANG"] != "C.UTF-8" || got["TERM"] != "dumb" || got["PATH"] != os.Getenv("PATH") {
		t.Errorf("the environment is %v", got)
	}
}

func TestBashOutputIsBounded(t *testing.T) {
	p := newShell(t)
	got := p.gives("bash", in{"command": "echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end"}).Content
	if len(got) > 64<<10+100 || !strings.HasPrefix(got, "begin\nxxx") || !strings.HasSuffix(got, "xxx\nend\n") || !strings.Contains(got, "\n[4934475 bytes are left out here]\n") {
		t.Errorf("%d bytes: %.20q … %q", len(got), got, got[len(got)-20:])
	}
	exact := p.gives("bash", in{"command": "head -c 65536 /dev/zero | tr '\\0' x"}).Content
	if exact != strings.Repeat("x", 64<<10) {
		t.Errorf("%d bytes", len(exact))
	}
}

// Whoever has left the command's group is not found, and holds its output: that is said.
func TestBashSaysWhatMayBeIncomplete(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	p := newShell(t)
	p.must(syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o666))
	got := p.gives("bash", in{"command": `setsid sh -c 'echo > pipe; exec sleep 1000' & read line < pipe; echo $!`}).Content
	number, rest, _ := strings.Cut(got, "\n")
	pid, err := strconv.Atoi(number)
	p.must(err)
	p.must(syscall.Kill(pid, syscall.SIGKILL))
	if !strings.Contains(rest, "[the output may be incomplete") {
		t.Errorf("it gave %q", got)
	}
}

// alive says whether there is a process with this id. What was killed may wait for its parent to notice.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return errors.Is(syscall.Kill(pid, 0), nil) && !errors.Is(err, os.ErrNotExist)
	}
	state := string(stat[strings.LastIndexByte(string(stat), ')')+2])
	return state != "Z" && state != "X"
}

// A grandchild that ignores every signal it may, and keeps the output open, ends with the command, whichever way that
// ends.
func TestBashEndsWhatItStarted(t *testing.T) {
	const stubborn = `(trap '' HUP INT TERM; echo $BASHPID > pipe; while :; do sleep 1000; done) & `
	const late = "it was not done after"
	for name, c := range map[string]struct {
		rest    string
		timeout int
		cancel  bool
		err     string
	}{
		"the command ends": {rest: "cat hold; echo done", timeout: 60_000},
		"it fails":         {rest: "cat hold; exit 4", timeout: 60_000, err: "exit status 4"},
		"its time is over": {rest: "wait", timeout: 500, err: late},
		"it is cancelled":  {rest: "wait", timeout: 60_000, cancel: true, err: "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := c.timeout
			pid, err := familyOf(t, stubborn+c.rest, timeout, c.cancel)
			for pid == 0 && timeout < 60_000 { // on a slow machine its time was over before the grandchild was there
				timeout *= 2
				pid, err = familyOf(t, stubborn+c.rest, timeout, c.cancel)
			}
			if pid == 0 {
				t.Fatalf("there was no grandchild: %v", err)
			}
			want := c.err
			if want == late {
				want = fmt.Sprintf("it was not done after %v.\n", time.Duration(timeout)*time.Millisecond)
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("the error is %v", err)
			}
			// The kernel takes a moment to end what was killed; nothing but looking tells when it has.
			for limit := time.Now().Add(10 * time.Second); alive(pid); {
				if time.Now().After(limit) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					t.Fatal("the grandchild lives")
				}
			}
		})
	}
}

// familyOf runs a command whose grandchild writes its number into pipe, lets it go on or cancels it once that is there, and
// returns the number, or 0 where the command ended before, and the error that the command ended with.
func familyOf(t *testing.T, command string, timeout int, stop bool) (pid int, err error) {
	t.Helper()
	p := newShell(t)
	p.must(syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o666))
	p.must(syscall.Mkfifo(filepath.Join(p.dir, "hold"), 0o666))
	pipe, err := os.OpenFile(filepath.Join(p.dir, "pipe"), os.O_RDWR, 0) // as its reader and its writer: nobody waits for the other
	p.must(err)
	defer func() { p.must(pipe.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		b, _ := json.Marshal(in{"command": command, "timeout_ms": timeout})
		_, err := p.tools.Call(ctx, tool.Call{Name: "bash", Input: b})
		_, _ = pipe.WriteString("0\n") // nobody else writes any more
		done <- err
	}()
	line, err := bufio.NewReader(pipe).ReadString('\n')
	p.must(err)
	pid, err = strconv.Atoi(strings.TrimSpace(line))
	p.must(err)
	holds := strings.Contains(command, "cat hold")
	if pid != 0 && (stop || holds) && !alive(pid) {
		t.Error("there is no grandchild")
	}
	switch {
	case pid == 0:
	case stop:
		cancel()
	case holds:
		p.must(os.WriteFile(filepath.Join(p.dir, "hold"), nil, 0))
	}
	return pid, <-done
}
