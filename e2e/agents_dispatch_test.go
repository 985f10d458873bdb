package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// steps are the seven of the Signal Protocol, and what each is answered in.
var steps = []struct{ step, prompt, artifact string }{
	{"F0_RECALL", "prompt-recall.md", "recall-result.json"},
	{"F1_TRIAGE", "prompt-triage.md", "triage-result.json"},
	{"F2_RESOLVE", "prompt-resolve.md", "resolve-result.json"},
	{"F3_INVESTIGATE", "prompt-investigate.md", "artifact.json"},
	{"F4_CORRELATE", "prompt-correlate.md", "correlate-result.json"},
	{"F5_REVIEW", "prompt-review.md", "review-decision.json"},
	{"F6_REPORT", "prompt-report.md", "jira-draft.json"},
}

// signalFile is signal.json.
type signalFile struct {
	Status       string `json:"status"`
	DispatchID   int    `json:"dispatch_id"`
	CaseID       string `json:"case_id"`
	Step         string `json:"step"`
	PromptPath   string `json:"prompt_path"`
	ArtifactPath string `json:"artifact_path"`
	Error        string `json:"error"`
}

// signalIn reads the signal.json of a case.
func signalIn(t *testing.T, folder string) signalFile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "signal.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s signalFile
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// respond starts a responder, which ends with the test.
func respond(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.Command(program(t), "respond", "--dir", dir, "--exec", command, "--timeout", "20s")
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("vela respond: %v\n%s", err, told.String())
		}
		if !strings.Contains(told.String(), "answer") {
			t.Errorf("it told nobody what it did: %q", told.String())
		}
	})
}

// caseOf is the folder of a session's case.
func (d *dialogue) caseOf(dir, name string) string {
	return filepath.Join(dir, ".asterisk", "calibrate", d.session, name)
}

// TestDispatch runs turns through all seven steps, answered by vela respond and a command.
func TestDispatch(t *testing.T) {
	dispatch := t.TempDir()
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.step
	}
	g, _ := serveAgents(t, fmt.Sprintf("agents:\n  files: {kind: dispatch, dir: %q, steps: [%s], ponder: false}\n", dispatch, strings.Join(names, ", ")),
		"--speech-model", t.TempDir())
	// It answers with the colour that it is asked about, fails where it is asked to, and leaves its process in a file
	// before it waits for ever.
	respond(t, dispatch, `
		now=$(sed -n '/^## What the user says now/,/^## [^W]/p')
		case "$now" in
		*"Fail."*) echo "no idea at /etc/passwd" >&2; exit 3 ;;
		*"Wait."*) echo $$ > "`+dispatch+`/pid"; exec sleep 600 ;;
		esac
		colour=$(printf %s "$now" | grep -o "about [a-z]*" | head -1)
		case $VELA_STEP in
		F6_REPORT) echo "{\"summary\": \"Done.\", \"answer\": \"It was $colour.\"}" ;;
		*) echo "{\"match\": true, \"reasoning\": \"$VELA_STEP of $VELA_CASE, $colour\"}" ;;
		esac`)

	t.Run("two sessions at once", func(t *testing.T) {
		for _, colour := range []string{"red", "blue"} {
			t.Run(colour, func(t *testing.T) {
				t.Parallel()
				d := g.talk(t, `{"turns":"agent"}`)
				for n := 1; n <= 2; n++ {
					d.sevenSteps(d.answers(fmt.Sprintf("Tell me about %s.", colour), "It was about "+colour+"."), dispatch, n, colour)
				}
			})
		}
	})

	t.Run("a responder that fails", func(t *testing.T) {
		d := g.talk(t, `{"turns":"agent"}`)
		failed := d.fails("Fail.", "agent_failed", "The agent reported an error")
		if r := failed.of("tool.result"); len(r) != 1 || r[0].Payload.Success || strings.Contains(failed.String(), "passwd") {
			t.Errorf("it failed as\n%s", failed)
		}
		if s := signalIn(t, d.caseOf(dispatch, "C1")); s.Status != "error" || !strings.Contains(s.Error, "no idea") {
			t.Errorf("the signal is %+v", s)
		}
		d.answers("Tell me about green.", "It was about green.")
	})

	t.Run("a cancel", func(t *testing.T) {
		d := g.talk(t, `{"turns":"agent"}`)
		d.say("Wait.")
		d.until(func(e event) bool { return e.Type == "tool.call" })
		pid := filepath.Join(dispatch, "pid")
		g.eventually("answering", func() bool { text, _ := os.ReadFile(pid); return len(text) > 0 })
		d.send(`{"type":"response.cancel","payload":{}}`)
		if ends := d.end().of("response.cancelled"); len(ends) != 1 || ends[0].Payload.Reason != "client" {
			t.Errorf("it ended with %+v", ends)
		}
		g.eventually("without the command", func() bool { return gone(t, pid) })
		g.eventually("told so in signal.json", func() bool {
			s := signalIn(t, d.caseOf(dispatch, "C1"))
			return s.Status == "error" && s.Error == "cancelled"
		})
		d.answers("Tell me about green.", "It was about green.")
	})
}

// sevenSteps looks at what a turn has shown and left behind.
func (d *dialogue) sevenSteps(turn turn, dir string, n int, colour string) {
	d.Helper()
	calls, results := turn.of("tool.call"), turn.of("tool.result")
	if len(calls) != len(steps) || len(results) != len(steps) {
		d.Errorf("%d calls and %d results:\n%s", len(calls), len(results), turn)
		return
	}
	folder := d.caseOf(dir, fmt.Sprintf("C%d", n))
	for i, s := range steps {
		if calls[i].Payload.Name != s.step || results[i].Payload.CallID != calls[i].Payload.CallID || !results[i].Payload.Success {
			d.Errorf("step %d is %s and %s, want %s", i, calls[i].raw, results[i].raw, s.step)
		}
		prompt, err := os.ReadFile(filepath.Join(folder, s.prompt))
		if err != nil || !strings.Contains(string(prompt), "Tell me about "+colour+".") {
			d.Errorf("%v: %.200s", err, prompt)
		}
		if i > 0 && !strings.Contains(string(prompt), fmt.Sprintf("%s of C%d, about %s", steps[i-1].step, n, colour)) {
			d.Errorf("the prompt of %s does not have what the step before it found", s.step)
		}
		var artifact struct {
			DispatchID int             `json:"dispatch_id"`
			Data       json.RawMessage `json:"data"`
		}
		text, err := os.ReadFile(filepath.Join(folder, s.artifact))
		if err == nil {
			err = json.Unmarshal(text, &artifact)
		}
		if want := (n-1)*len(steps) + i + 1; err != nil || artifact.DispatchID != want || !strings.Contains(string(artifact.Data), colour) {
			d.Errorf("%s: %v, %s; want dispatch %d", s.artifact, err, text, want)
		}
	}
	last := signalIn(d.T, folder)
	if last.Status != "done" || last.DispatchID != n*len(steps) || last.CaseID != fmt.Sprintf("C%d", n) || last.Step != "F6_REPORT" || last.Error != "" ||
		!filepath.IsAbs(last.PromptPath) || !filepath.IsAbs(last.ArtifactPath) {
		d.Errorf("the signal is %+v", last)
	}
}

// TestDispatchByHand: nobody answers; somebody writes half an artifact, one of another dispatch, and one that is
// whole only at the second try. A turn ends with a clear error or an answer, and the session goes on.
func TestDispatchByHand(t *testing.T) {
	type wrote struct {
		write      []string // one after the other; ID stands for the dispatch
		code, what string   // an error and its words, or an answer
	}
	patient, hasty := t.TempDir(), t.TempDir()
	g, _ := serveAgents(t, fmt.Sprintf(`agents:
  patient: {kind: dispatch, dir: %q, ponder: false}
  hasty: {kind: dispatch, dir: %q, timeout: 2s, ponder: false}
`, patient, hasty), "--speech-model", t.TempDir())
	play := func(agent, dir string, all []wrote) {
		d := g.talk(t, fmt.Sprintf(`{"turns":"agent","agent":%q}`, agent))
		for n, c := range all {
			d.say("What is known?")
			d.until(func(e event) bool { return e.Type == "tool.call" })
			folder := d.caseOf(dir, fmt.Sprintf("C%d", n+1))
			g.eventually("asked in a file", func() bool { _, err := os.Stat(filepath.Join(folder, "signal.json")); return err == nil })
			s := signalIn(t, folder)
			if agent == "patient" && s.Status != "waiting" || s.Step != "F0_RECALL" {
				t.Errorf("the signal is %+v", s)
			}
			texts := make([]string, len(c.write)) // the files are ready before the first takes its place, whose time is short
			for i, text := range c.write {
				texts[i] = filepath.Join(t.TempDir(), "artifact.json")
				text = strings.ReplaceAll(text, "ID", fmt.Sprint(s.DispatchID))
				if err := os.WriteFile(texts[i], []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range texts {
				if err := os.Rename(text, s.ArtifactPath); err != nil {
					t.Fatal(err)
				}
			}
			turn := d.end()
			if c.code != "" {
				d.failed(turn, c.code, c.what)
				if s := signalIn(t, folder); s.Status != "error" || s.Error == "" {
					t.Errorf("the signal is %+v", s)
				}
			} else if turn.text != c.what {
				t.Errorf("the answer is %q, want %q:\n%s", turn.text, c.what, turn)
			}
		}
	}
	play("patient", patient, []wrote{
		{[]string{`{"dispatch_id": ID, "data": {"answer": "Half of`}, "agent_failed", "could not be read"},
		{[]string{`{"dispatch_id": ID, "da`, `{"dispatch_id": ID, "data": {"answer": "All of it."}}`}, "", "All of it."},
		{[]string{`{"dispatch_id": 1, "data": {"answer": "Old."}}`, `{"dispatch_id": ID, "data": {"answer": "New."}}`}, "", "New."},
	})
	play("hasty", hasty, []wrote{
		{nil, "agent_timeout", "did not answer in time"},
		{[]string{`{"dispatch_id": 99, "data": {"answer": "Of another turn."}}`}, "agent_timeout", "did not answer in time"},
	})
}
