package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheAnswerIsSpoken asks by voice, has the answer written as sound, and lets the recogniser hear that.
func TestTheAnswerIsSpoken(t *testing.T) {
	dir := t.TempDir()
	question, answer := filepath.Join(dir, "question.wav"), filepath.Join(dir, "answer.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", "what time is it", "-o", question).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	g := serve(t)
	if code, out, errs := run(t, nil, "say", "--fast", "--url", g.addr, "--out", answer, question); code != 0 || !strings.Contains(out, "agent: You said: what time is it") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := run(t, nil, "say", "--fast", "--url", g.addr, answer); code != 0 || !strings.Contains(out, "you: you said what time is it") {
		t.Errorf("the spoken answer was heard as: exit %d\n%s%s", code, out, errs)
	}
	if n := g.metric("vela_first_audio_seconds_count"); n != 1 {
		t.Errorf("%v answers were spoken", n)
	}
}

// TestOpusBothWays asks the same by Opus, and gets the answer so: what the built program encodes and decodes is recognised.
func TestOpusBothWays(t *testing.T) {
	dir := t.TempDir()
	question, answer := filepath.Join(dir, "question.wav"), filepath.Join(dir, "answer.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", "what time is it", "-o", question).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	journal := t.TempDir()
	g := serve(t, "--journal", journal)
	if code, out, errs := run(t, nil, "say", "--fast", "--encoding", "opus", "--url", g.addr, "--out", answer, question); code != 0 || !strings.Contains(out, "agent: You said: what time is it") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := run(t, nil, "say", "--fast", "--url", g.addr, answer); code != 0 || !strings.Contains(out, "you: you said what time is it") {
		t.Errorf("the spoken answer was heard as: exit %d\n%s%s", code, out, errs)
	}
	g.stop()
	journals, err := filepath.Glob(filepath.Join(journal, "*"))
	if err != nil || len(journals) != 2 {
		t.Fatalf("%q, %v", journals, err)
	}
	opus := 0
	for _, j := range journals {
		b, err := os.ReadFile(j)
		if err != nil {
			t.Fatal(err)
		}
		opus += strings.Count(string(b), `"encoding":"opus"`)
		if code, out, errs := run(t, nil, "replay", j); code != 0 || !strings.Contains(out, "SAME") {
			t.Errorf("replayed, it makes other packets: exit %d\n%s%s", code, out, errs)
		}
	}
	if opus == 0 {
		t.Error("it was not Opus that was spoken")
	}
}

// TestNoVoice: who wants to hear an answer of a gateway that cannot speak is told so.
func TestNoVoice(t *testing.T) {
	dir := t.TempDir()
	config, question := filepath.Join(dir, "vela.yaml"), filepath.Join(dir, "question.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", "what time is it", "-o", question).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	if err := os.WriteFile(config, []byte("voices:\n  - {kind: command, command: [no-such-voice]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serve(t, "--config", config)
	code, _, errs := run(t, nil, "say", "--fast", "--url", g.addr, "--out", filepath.Join(dir, "a.wav"), question)
	if code != 1 || !strings.Contains(errs, "it has no voice") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
