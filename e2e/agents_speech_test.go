package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpokenToAnAgent goes the whole way: flite's voice is recognised, the agent reads a file, and its answer is printed.
// A script sees every event on the way.
func TestSpokenToAnAgent(t *testing.T) {
	wav := filepath.Join(t.TempDir(), "said.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", "what time is it", "-o", wav).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	t.Setenv("E2E_MODEL_KEY", modelKey)
	server := models(t)
	g, _ := serveAgents(t, fmt.Sprintf(
		"agents:\n  model: {kind: anthropic, url: %q, model: m, key_env: E2E_MODEL_KEY, ponder: false, tools: {root: project}}\n", server.url))
	code, out, errs := run(t, nil, "say", "--fast", "--url", g.addr, wav)
	if code != 0 || strings.TrimSpace(out) != "you: what time is it\nagent: It is half past nine." {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	each(t, "scripts/agents/spoken/*.vela", 1, g.passes)
}
