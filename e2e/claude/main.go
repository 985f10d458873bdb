// Command claude has the real Claude Code work in a project in which the built program has put its hooks, and sees that each
// of its steps becomes a signal and that the project's settings are as before at the end. Claude Code runs without network,
// against a model of our own that answers by rote. It prints what it saw, -results keeps it, and it fails if anything was
// not as it should be.
//
// Start at [drive.checks]. It needs npm, and is not part of the tests: make e2e-claude.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// claudeVersion is what is installed: no other has been tried.
const claudeVersion = "2.1.329"

func main() {
	cache := flag.String("cache", "claude/.cache", "folder where Claude Code is installed")
	program := flag.String("vela", "../bin/vela", "the program")
	results := flag.String("results", "", "file to keep what was seen in")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, *cache, *program, *results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// drive is everything that runs while the checks do.
type drive struct {
	program, claude string // both are programs
	home, project   string
	model           *model
	rows            []string
	bad             int
}

func run(ctx context.Context, cache, program, results string) error {
	d := &drive{}
	var err error
	if d.claude, err = install(ctx, cache); err != nil {
		return err
	}
	if d.program, err = filepath.Abs(program); err != nil {
		return err
	}
	if d.home, err = os.MkdirTemp("", "claude-e2e-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(d.home) }()
	d.project = filepath.Join(d.home, "it's a project") // whose name a shell has to be told with care
	if err := os.MkdirAll(filepath.Join(d.project, ".claude"), 0o755); err != nil {
		return err
	}
	if d.model, err = startModel(filepath.Join(d.project, "NOTES.md")); err != nil {
		return err
	}
	defer d.model.close()
	if err := d.checks(ctx); err != nil {
		return err
	}
	if d.bad > 0 {
		return errors.New("not everything held")
	}
	if results == "" {
		return nil
	}
	head := fmt.Sprintf("# The real Claude Code, with Vela's hooks\n\nWritten by `make e2e-claude` on %s: Claude Code %s, without network, its model a server of this folder that answers\nby rote.\n\n| what | what was seen |\n| --- | --- |\n", time.Now().UTC().Format(time.DateOnly), claudeVersion)
	return os.WriteFile(results, []byte(head+strings.Join(d.rows, "")), 0o644)
}

// install puts Claude Code into the folder, unless it is there, and returns its program. It takes 360 MB.
func install(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "node_modules", ".bin", "claude")
	about, err := os.ReadFile(filepath.Join(dir, "node_modules", "@anthropic-ai", "claude-code", "package.json"))
	if err == nil && bytes.Contains(about, []byte(`"version": "`+claudeVersion+`"`)) {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "@anthropic-ai/claude-code@"+claudeVersion)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install Claude Code: %w\n%s", err, out)
	}
	return program, nil
}

// hold notes whether something held, and what was seen.
func (d *drive) hold(what string, ok bool, format string, args ...any) {
	how, mark := fmt.Sprintf(format, args...), "ok  "
	if !ok {
		mark, d.bad = "FAIL", d.bad+1
	}
	fmt.Printf("%s %s: %s\n", mark, what, how)
	d.rows = append(d.rows, fmt.Sprintf("| %s | %s |\n", what, strings.ReplaceAll(how, "|", "\\|")))
}

// checks: hooks in, a session with a tool that reads a file and one that fails, hooks out.
func (d *drive) checks(ctx context.Context) error {
	const before = "{\n\t\"permissions\": {\"allow\": [\"Read\"]}\n}\n"
	settings := filepath.Join(d.project, ".claude", "settings.local.json")
	for name, text := range map[string]string{settings: before, filepath.Join(d.project, "NOTES.md"): "Hello from the notes.\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	vela, addr, err := d.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = vela.Process.Kill() }()
	if err := connected(ctx, addr); err != nil {
		return err
	}
	signals, err := follow(ctx, addr)
	if err != nil {
		return err
	}
	said, err := d.ask(ctx, "What do the notes say?")
	d.hold("a question to Claude Code", err == nil && strings.Contains(said, last), "%q", said)
	const begins = "agent_state_change idle→thinking" // by a command that nobody waits for: it may come at any time
	var seen []string
	begun, done := false, false
	for s := range signals {
		if s.String() == begins {
			begun = true
		} else {
			seen = append(seen, s.String())
		}
		if done = done || s.Payload.To == "done"; begun && done {
			break
		}
	}
	want := []string{"tool_call Read toolu_1", "tool_result Read toolu_1 true", "tool_call Read toolu_2", "error Read toolu_2", "agent_state_change acting→done"}
	d.hold("its signals", begun && strings.Join(seen, "|") == strings.Join(want, "|"), "%s, %s", begins, strings.Join(seen, ", "))
	if err := vela.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err = vela.Wait()
	after, readErr := os.ReadFile(settings)
	d.hold("Vela stopped", err == nil && readErr == nil && string(after) == before, "the settings are as before, to the byte")
	return nil
}

// serve starts the built program for the project.
func (d *drive) serve(ctx context.Context) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, d.program, "serve", "--addr", "127.0.0.1:0", "--claude-code", "--claude-project", d.project)
	cmd.Dir, cmd.Stderr = d.home, os.Stderr
	cmd.Env = append(os.Environ(), "VELA_LOG_LEVEL=warn")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("start Vela: %w; run make build", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, addr, ok := strings.Cut(strings.TrimSpace(line), "Vela is at http://")
	if !ok {
		_ = cmd.Process.Kill()
		return nil, "", fmt.Errorf("vela said %q (%w)", line, err)
	}
	return cmd, addr, nil
}

// connected waits until Claude Code is a connected source, and so the hooks are in.
func connected(ctx context.Context, addr string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		resp, err := http.Get("http://" + addr + "/api/sources")
		if err != nil {
			return err
		}
		var all struct {
			Sources []struct{ ID, State string }
		}
		err = json.NewDecoder(resp.Body).Decode(&all)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		for _, s := range all.Sources {
			if s.ID == "local:claude-code" && s.State == "connected" {
				return nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// heard is a signal, as far as it is looked at.
type heard struct {
	Type     string
	Metadata struct{ CallID, ToolName string }
	Payload  struct {
		ToolName, CallID, From, To string
		Success                    *bool
	}
}

func (h heard) String() string {
	text := h.Type
	for _, part := range []string{h.Payload.ToolName + h.Metadata.ToolName, h.Payload.CallID + h.Metadata.CallID} {
		if part != "" {
			text += " " + part
		}
	}
	if h.Payload.Success != nil {
		text += fmt.Sprintf(" %v", *h.Payload.Success)
	}
	if h.Payload.From != "" {
		text += " " + h.Payload.From + "→" + h.Payload.To
	}
	return text
}

// follow yields the gateway's signals from now on, until ctx is done.
func follow(ctx context.Context, addr string) (func(yield func(heard) bool), error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/__signals__/stream", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	return func(yield func(heard) bool) {
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 2<<20)
		for lines.Scan() {
			var s heard
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && (json.Unmarshal([]byte(text), &s) != nil || !yield(s)) {
				return
			}
		}
	}, nil
}

// ask asks Claude Code one question, and returns what it prints.
func (d *drive) ask(ctx context.Context, question string) (string, error) {
	cmd := exec.CommandContext(ctx, d.claude, "-p", question)
	cmd.Dir = d.project
	cmd.Env = []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + d.model.url, "ANTHROPIC_API_KEY=sk-local",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
