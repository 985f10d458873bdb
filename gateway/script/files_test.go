package script_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vela/gateway/script"
	"vela/session/speech"
)

// folder is a directory with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRunFiles(t *testing.T) {
	dir := folder(t, map[string]string{"b.vela": "> 1\n< 1", "a.vela": "> 1\n< 2", "notes.txt": "no script", "extra": "> 3\n< 3"})
	var out bytes.Buffer
	failed, err := script.RunFiles(t.Context(), &out, script.Gateway{Address: puppet(t)}, []string{dir, filepath.Join(dir, "extra")})
	if failed != 1 || err != nil {
		t.Errorf("%d failed, and the error %v", failed, err)
	}
	got := regexp.MustCompile(`\(\d+ ms\)`).ReplaceAllString(strings.ReplaceAll(out.String(), dir, "DIR"), "(N ms)")
	want := `FAIL DIR/a.vela: line 2
  < 2
  expected  2
  got       1
  at the top: expected 2, got 1
  before it
    connected
    > 1
PASS DIR/b.vela (N ms)
PASS DIR/extra (N ms)
2 passed, 1 failed (N ms)
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What is wrong with the scripts is all said before anything runs.
func TestRunFilesReadsFirst(t *testing.T) {
	dir := folder(t, map[string]string{"a.vela": "> 1\n< 1", "b.vela": "x", "c.vela": "> 1\n\ny"})
	empty := t.TempDir()
	for name, c := range map[string]struct {
		paths []string
		says  []string
	}{
		"wrong scripts": {[]string{dir}, []string{`b.vela:1: "x" is no step`, `c.vela:3: "y" is no step`}},
		"no file":       {[]string{filepath.Join(dir, "a.vela"), filepath.Join(dir, "d.vela")}, []string{"d.vela: no such file"}},
		"no scripts":    {[]string{empty}, []string{"there is no script here: name files or directories with *.vela in them"}},
		"no paths":      {nil, []string{"there is no script here"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			_, err := script.RunFiles(t.Context(), &out, script.Gateway{Address: "127.0.0.1:1"}, c.paths)
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("the error is %v, want one that says %q", err, says)
				}
			}
			if out.Len() > 0 {
				t.Errorf("wrote %s", out.String())
			}
		})
	}
}

func TestRunFilesStops(t *testing.T) {
	dir := folder(t, map[string]string{"a.vela": "> 1\n< 1", "b.vela": "> 1\n< 1"})
	var out bytes.Buffer
	_, err := script.RunFiles(t.Context(), &out, script.Gateway{Address: "127.0.0.1:1"}, []string{dir})
	if err == nil || out.Len() > 0 || !strings.HasPrefix(err.Error(), "no gateway listens at 127.0.0.1:1: start one") {
		t.Errorf("nobody there: wrote %q, and the error %v", out.String(), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := script.RunFiles(ctx, &out, script.Gateway{Address: puppet(t)}, []string{dir}); !errors.Is(err, why) {
		t.Errorf("stopped: the error is %v", err)
	}
	if _, err := script.RunFiles(t.Context(), full{}, script.Gateway{Address: puppet(t)}, []string{dir}); !errors.Is(err, errFull) {
		t.Errorf("nowhere to write: the error is %v", err)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A WAV file lies beside its script, and goes out in chunks of 40 ms.
func TestRunSendsWAV(t *testing.T) {
	var wav bytes.Buffer
	if err := speech.WriteWAV(&wav, 16000, make([]int16, 1000)); err != nil {
		t.Fatal(err)
	}
	chunk := func(samples int) string {
		return `< {"type":"input_audio.append","payload":{"chunk":"<~` + strings.Repeat("A", samples*2/3*4) + `>"}}`
	}
	text := strings.Join([]string{">wav x.wav fast", chunk(640), chunk(360), "silent 10ms", ">wav x.wav", chunk(640), chunk(360)}, "\n")
	dir := folder(t, map[string]string{"x.wav": wav.String(), "s.vela": text})
	var out bytes.Buffer
	if failed, err := script.RunFiles(t.Context(), &out, script.Gateway{Address: puppet(t)}, []string{dir}); failed != 0 || err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
