package tool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
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
	for name, c := range map[string]struct {
		rest    string
		timeout int
		cancel  bool
		err     string
	}{
		"the command ends": {rest: "cat hold; echo done", timeout: 60_000},
		"it fails":         {rest: "cat hold; exit 4", timeout: 60_000, err: "exit status 4"},
		"its time is over": {rest: "wait", timeout: 500, err: "it was not done after 500ms.\n"},
		"it is cancelled":  {rest: "wait", timeout: 60_000, cancel: true, err: "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newShell(t)
			p.must(syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o666))
			p.must(syscall.Mkfifo(filepath.Join(p.dir, "hold"), 0o666))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				b, _ := json.Marshal(in{"command": stubborn + c.rest, "timeout_ms": c.timeout})
				_, err := p.tools.Call(ctx, tool.Call{Name: "bash", Input: b})
				done <- err
			}()
			pid := read(t, filepath.Join(p.dir, "pipe"))
			if !alive(pid) {
				t.Fatal("there is no grandchild")
			}
			if c.cancel {
				cancel()
			} else if strings.HasPrefix(c.rest, "cat hold") {
				p.must(os.WriteFile(filepath.Join(p.dir, "hold"), nil, 0))
			}
			err := <-done
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
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

// read waits for the number that a process writes into a pipe.
func read(t *testing.T, pipe string) int {
	t.Helper()
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
