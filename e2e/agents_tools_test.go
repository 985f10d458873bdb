package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// gone says whether the processes whose numbers a file holds have ended. One that has and that nobody asked how, as where
// the first process of a container asks for no orphan, has ended too.
func gone(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s holds %q", file, text)
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // where there is one
		if syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ") {
			return false
		}
	}
	return true
}

// TestTools: tools that run at once, that hang, that are cancelled, and that are asked for what they may not touch.
func TestTools(t *testing.T) {
	t.Setenv("E2E_MODEL_KEY", modelKey)
	for _, format := range formats {
		t.Run(format.kind, func(t *testing.T) { t.Parallel(); useTools(t, format.kind, format.path) })
	}
}

// useTools is TestTools in one wire format.
func useTools(t *testing.T, kind, path string) {
	server := models(t)
	data, journals := t.TempDir(), t.TempDir()
	g, dir := serveAgents(t, fmt.Sprintf(
		"agents:\n  model: {kind: %s, url: %q, model: m, key_env: E2E_MODEL_KEY, tools: {root: project, bash: true, rules: {bash: allow}}}\n", kind, server.url+path),
		"--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
	project := filepath.Join(dir, "project")
	d := g.talk(t, `{"turns":"agent"}`)

	t.Run("two at once", func(t *testing.T) { // each waits for a file that the other makes
		d.T = t
		both := d.answers("Do both at once.", "Both are done.")
		if calls, results := both.of("tool.call"), both.of("tool.result"); len(calls) != 2 || len(results) != 2 {
			t.Errorf("%d calls and %d results", len(calls), len(results))
		}
		for id, want := range map[string]string{"both1": `{"content":"first\n"}`, "both2": `{"content":"second\n"}`} {
			if r := both.result(id).Payload; !r.Success || string(r.Output) != want {
				t.Errorf("%s gave %s, want %s", id, r.Output, want)
			}
		}
		asked := server.requests("Do both at once.")
		want := []string{"tool both1: first\n", "tool both2: second\n"}
		if got := outline(asked[len(asked)-1]); len(got) != 4 || got[2] != want[0] || got[3] != want[1] {
			t.Errorf("the model was given %q, want %q at the end", got, want)
		}
	})

	t.Run("one that hangs", func(t *testing.T) {
		d.T = t
		hung := d.answers("Wait for ever.", "It took too long.")
		if r := hung.result("hang1").Payload; r.Success || !strings.Contains(string(r.Output), "was stopped") {
			t.Errorf("it gave %s", r.Output)
		}
		g.eventually("ended with all it has started", func() bool { return gone(t, filepath.Join(project, "pids")) })
	})

	t.Run("one that is cancelled", func(t *testing.T) {
		d.T = t
		d.say("Wait until I cancel.")
		d.until(func(e event) bool { return e.Type == "tool.call" })
		g.eventually("started", func() bool {
			text, _ := os.ReadFile(filepath.Join(project, "pids"))
			return strings.Count(string(text), "\n") == 2
		})
		d.send(`{"type":"response.cancel","payload":{}}`)
		cancelled := d.end()
		if ends := cancelled.of("response.cancelled"); len(ends) != 1 || ends[0].Payload.Reason != "client" || len(cancelled.of("tool.result")) != 0 {
			t.Errorf("it was not just cancelled:\n%s", cancelled)
		}
		g.eventually("ended with its turn", func() bool { return gone(t, filepath.Join(project, "pids")) })
		d.answers("And now?", "Now I am whole.")
		outlined := outline(server.requests("And now?")[0])
		if last := outlined[len(outlined)-2]; !strings.Contains(last, "interrupted") && !strings.Contains(last, "not finished") {
			t.Errorf("the next turn was asked with %q", outlined)
		}
	})

	t.Run("what they may not touch", func(t *testing.T) {
		d.T = t
		if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("a treasure\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../secret.txt", filepath.Join(project, "link")); err != nil {
			t.Fatal(err)
		}
		sparse(t, filepath.Join(project, "huge.bin"), "")
		before := g.metric("process_resident_memory_bytes")
		refused := d.answers("Look where you may not.", "I may not.")
		for id, words := range map[string]string{
			"out1": "leads out of the folder", "out2": "leads out of the folder", "out3": "leads out of the folder",
			"out4": "is binary", "out5": "There is no", "out6": "There is no tool",
		} {
			r := refused.result(id).Payload
			if r.Success || !strings.Contains(string(r.Output), words) {
				t.Errorf("%s gave %s, want %q", id, r.Output, words)
			}
		}
		if n := len(refused.of("artifact")); n != 6 {
			t.Errorf("%d artifacts, want an error for each", n)
		}
		for _, leak := range []string{"treasure", dir, "root:"} {
			if strings.Contains(refused.String(), leak) {
				t.Errorf("%q was shown", leak)
			}
		}
		if after := g.metric("process_resident_memory_bytes"); after > before+64e6 {
			t.Errorf("%.0f MB before, %.0f MB after a file of 1 GB", before/1e6, after/1e6)
		}
	})

	t.Run("a text of 1 GB", func(t *testing.T) {
		d.T = t
		sparse(t, filepath.Join(project, "huge.txt"), strings.Repeat("all work and no play\n", 20_000))
		before := g.metric("process_resident_memory_bytes")
		read := d.answers("Read all of it.", "That is a lot.")
		r := read.result("huge1").Payload
		if !r.Success || len(r.Output) < 64<<10 || len(r.Output) > 96<<10 { // as much as the tool reads at once
			t.Errorf("%t, %d bytes were shown: %.200s", r.Success, len(r.Output), r.Output)
		}
		if after := g.metric("process_resident_memory_bytes"); after > before+64e6 {
			t.Errorf("%.0f MB before, %.0f MB after a file of 1 GB", before/1e6, after/1e6)
		}
	})

	t.Run("the environment", func(t *testing.T) {
		d.T = t
		shown := d.answers("What is in your environment?", "Nothing much.")
		if r := shown.result("env1").Payload; !r.Success || !strings.Contains(string(r.Output), "PATH=") || strings.Contains(string(r.Output), "E2E_MODEL_KEY") {
			t.Errorf("it gave %s", r.Output)
		}
	})

	d.T = t
	d.close()
	log := g.stop()
	noKey(t, data, map[string]string{"the log": log, "the events": d.frames.String()})
	noKey(t, journals, nil)
	asked, _ := json.Marshal(server.requests("Look where you may not."))
	noKey(t, project, map[string]string{"the model's prompts": string(asked)})
}

// sparse makes a file of 1 GB that takes hardly any room, and begins with the text.
func sparse(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 1<<30); err != nil {
		t.Fatal(err)
	}
}
