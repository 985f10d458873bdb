package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMCP has an agent use the tools of two MCP servers of another make. One dies in the middle of a call, comes back,
// and the session notices no more of it than a tool that failed.
func TestMCP(t *testing.T) {
	t.Setenv("E2E_MODEL_KEY", modelKey)
	t.Setenv("E2E_FOR_THINGS", "a word for the server")
	server := models(t)
	modules, err := filepath.Abs("node_modules/@modelcontextprotocol")
	if err != nil {
		t.Fatal(err)
	}
	// Each server leaves the number of its process in a file.
	data, journals := t.TempDir(), t.TempDir()
	g, dir := serveAgents(t, fmt.Sprintf(`
agents:
  model: {kind: openai, url: %[1]q, model: m, key_env: E2E_MODEL_KEY, ponder: false, tools: {mcp: [shared, things], rules: {"shared_*": allow, "things_*": allow}}}
mcp:
  shared: {command: [sh, -c, 'echo $$ >> shared.pid; exec node %[2]s/server-filesystem/dist/index.js "$PWD/project"']}
  things: {command: [sh, -c, 'echo $$ >> things.pid; exec node %[2]s/server-everything/dist/index.js stdio'], env: [E2E_FOR_THINGS]}
`, server.url+"/v1", modules), "--data", data, "--journal", journals, "--log-level", "debug", "--speech-model", t.TempDir())
	g.eventually("has the tools of both", func() bool {
		_, report := g.get("/api/agents")
		return strings.Contains(report, `"shared_read_text_file"`) && strings.Contains(report, `"things_echo"`)
	})
	d := g.talk(t, `{"turns":"agent"}`)

	read := d.answers("What is in the shared list?", "There is milk on it.")
	if r := read.result("shared1").Payload; !r.Success || !strings.Contains(string(r.Output), "Anna does") {
		t.Errorf("it gave %s", r.Output)
	}
	refused := d.answers("Read what is not yours.", "It is not mine.")
	if r := refused.result("shared2").Payload; r.Success || strings.Contains(string(r.Output), "root:") {
		t.Errorf("it gave %s", r.Output)
	}
	known := d.answers("What do you know of this machine?", "Where its programs are.")
	if r := known.result("things1").Payload; !r.Success || !strings.Contains(string(r.Output), "a word for the server") || strings.Contains(string(r.Output), "E2E_MODEL_KEY") {
		t.Errorf("its environment is %s", r.Output)
	}

	pipe := filepath.Join(dir, "project", "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	d.say("Read what nobody writes.")
	d.until(func(e event) bool { return e.Type == "tool.call" })
	g.eventually("in the middle of the call", func() bool {
		w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0) // it fails while nobody reads
		if err == nil {
			t.Cleanup(func() { _ = w.Close() }) // open until then, so that the reader waits
		}
		return err == nil
	})
	kill(t, filepath.Join(dir, "shared.pid"))
	lost := d.end()
	if r := lost.result("shared3").Payload; r.Success || !strings.Contains(string(r.Output), "was lost during the call") || lost.text != "It was lost." {
		t.Errorf("it was lost as\n%s", lost)
	}
	d.answers("Say ahoy.", "Ahoy.") // the other server is there as before
	g.eventually("there again", func() bool { return d.ask("What is in the shared list?").text == "There is milk on it." })
	if text, _ := os.ReadFile(filepath.Join(dir, "shared.pid")); strings.Count(string(text), "\n") != 2 {
		t.Errorf("it was started as %q", text)
	}

	d.close()
	_, report := g.get("/api/agents")
	_, metrics := g.get("/metrics")
	noKey(t, data, map[string]string{"/api/agents": report, "/metrics": metrics, "the log": g.stop(), "the events": d.frames.String()})
	noKey(t, journals, nil)
	for _, file := range []string{"shared.pid", "things.pid"} {
		if !gone(t, filepath.Join(dir, file)) {
			t.Errorf("a server outlives the gateway: %s", file)
		}
	}
}

// kill ends the process whose number a file ends with, as a crash would.
func kill(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}
