package openclaw

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// line is one line of a recording.
type line struct {
	Dir   string          `json:"dir"` // send, recv or close
	Frame json.RawMessage `json:"frame"`
	Code  int             `json:"code"` // of a close
}

func recording(t testing.TB, name string) []line {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []line
	s := bufio.NewScanner(f)
	s.Buffer(nil, maxMessage)
	for s.Scan() {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil || len(lines) == 0 {
		t.Fatalf("%s: %d lines, %v", name, len(lines), err)
	}
	return lines
}

// received are the frames of a recording that came from OpenClaw.
func received(t testing.TB, name string) [][]byte {
	t.Helper()
	var frames [][]byte
	for _, l := range recording(t, name) {
		if l.Dir == "recv" {
			frames = append(frames, l.Frame)
		}
	}
	return frames
}

// runs are the recordings of what runs say.
var recordedRuns = []string{
	"turn", "tool", "tool-streamed", "tool-failed", "command", "command-of-chat", "thinking", "stopped", "interrupted", "failed", "queued",
	"observed", "observed-tools", "failed-v3",
}

func TestRecordedRunsAsSignals(t *testing.T) {
	for _, name := range recordedRuns {
		t.Run(name, func(t *testing.T) {
			var tr Translator
			var got strings.Builder
			for _, message := range received(t, name) {
				for _, s := range tr.Translate(message) {
					body, err := json.Marshal(s.Payload)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&got, "%s %s %s %s\n", s.RunID[max(0, len(s.RunID)-4):], s.SessionKey, s.Payload.SignalType(), body)
				}
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("signals:\n%s\nwant:\n%s", got.String(), want)
			}
		})
	}
}
