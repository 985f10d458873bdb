package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/dispatch"
	"vela/turn/enginetest"
)

func TestEngine(t *testing.T) {
	for name, steps := range map[string][]dispatch.Step{"one step": nil, "two steps": {dispatch.Triage, dispatch.Report}} {
		t.Run(name+", polled", func(t *testing.T) {
			enginetest.Suite{
				New: func(t *testing.T) turn.Engine {
					dir := t.TempDir()
					respond(t, dispatch.Responder{Dir: dir, Answer: always(`{"answer": "It is known."}`), Parallel: 8}.PollOnly())
					return newEngine(t, dispatch.Config{Dir: dir, Steps: steps})
				},
				Request: request, Bubble: true,
			}.Run(t)
		})
	}
	t.Run("nobody answers", func(t *testing.T) {
		enginetest.Suite{
			New:     func(t *testing.T) turn.Engine { return newEngine(t, dispatch.Config{Dir: t.TempDir()}) },
			Request: request, Bubble: true, Fails: true,
		}.Run(t)
	})
	t.Run("watched", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T) turn.Engine {
			dir := t.TempDir()
			respond(t, dispatch.Responder{Dir: dir, Answer: always(`{"answer": "It is known."}`), Poll: time.Hour})
			e, err := dispatch.New(dispatch.Config{Dir: dir, Poll: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}, request)
	})
}

// The order of the signal's states, looked at where each is sure to stand: the responder is asked while it waits, the
// result is shown while it is processed, and what follows finds it done.
func TestSevenStepsThroughBothHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var seen []string
		see := func(where string) {
			s := signalOf(t, dir, "C1")
			seen = append(seen, fmt.Sprintf("%s: %s %d %s", where, s.Status, s.DispatchID, s.Step))
		}
		respond(t, dispatch.Responder{Dir: dir, Answer: func(_ context.Context, task dispatch.Task) (json.RawMessage, error) {
			see("answering")
			return json.Marshal(map[string]string{"reasoning": "found in " + string(task.Step)})
		}}.PollOnly())
		o := ask(t.Context(), newEngine(t, dispatch.Config{Dir: dir, Steps: dispatch.Steps()}), request, func(p signal.Payload) {
			switch p := p.(type) {
			case signal.ToolCall:
				if p.CallID != "C1-1" {
					see("calling")
				}
			case signal.ToolResult:
				see("shown")
			case signal.Completion:
				see("over")
			}
		})
		if o.err != nil || !o.ended || o.text != "found in F6_REPORT" {
			t.Fatalf("%q, ended %v, %v", o.text, o.ended, o.err)
		}
		var want []string
		files := []string{"recall-result.json", "triage-result.json", "resolve-result.json", "artifact.json", "correlate-result.json", "review-decision.json", "jira-draft.json"}
		for i, step := range []string{"F0_RECALL", "F1_TRIAGE", "F2_RESOLVE", "F3_INVESTIGATE", "F4_CORRELATE", "F5_REVIEW", "F6_REPORT"} {
			want = append(want, fmt.Sprintf("answering: waiting %d %s", i+1, step), fmt.Sprintf("shown: processing %d %s", i+1, step), fmt.Sprintf("calling: done %d %s", i+1, step))
			b, err := os.ReadFile(filepath.Join(folder(dir, suite, "C1"), files[i]))
			if err != nil || string(b) != fmt.Sprintf(`{"dispatch_id":%d,"data":{"reasoning":"found in %s"}}`, i+1, step) {
				t.Errorf("%s: %s, %v", files[i], b, err)
			}
			if r := o.tools[i]; r.ToolName != step || !r.Success || r.CallID != fmt.Sprintf("C1-%d", i+1) || string(r.Output) != `{"reasoning":"found in `+step+`"}` {
				t.Errorf("shown as %+v, %s", r, r.Output)
			}
		}
		want[len(want)-1] = "over: done 7 F6_REPORT"
		if !slices.Equal(seen, want) {
			t.Errorf("seen\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The file as the Signal Protocol has it: each field, absolute paths, nobody else's eyes.
func TestTheSignalToTheLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		out := asking(ctx, newEngine(t, dispatch.Config{Dir: dir}), request)
		at := folder(dir, suite, "C1")
		b, err := os.ReadFile(filepath.Join(at, "signal.json"))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{
  "status": "waiting",
  "dispatch_id": 1,
  "case_id": "C1",
  "step": "F0_RECALL",
  "prompt_path": "%[1]s/prompt-recall.md",
  "artifact_path": "%[1]s/recall-result.json",
  "timestamp": "2000-01-01T00:00:00Z",
  "error": ""
}
`, at)
		if string(b) != want || !filepath.IsAbs(at) {
			t.Errorf("got\n%s\nwant\n%s", b, want)
		}
		modes := map[string]os.FileMode{}
		if err := filepath.Walk(filepath.Join(dir, ".asterisk"), func(path string, info os.FileInfo, err error) error {
			modes[strings.TrimPrefix(path, dir)] = info.Mode().Perm()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for path, mode := range modes {
			if want := map[bool]os.FileMode{true: 0o600, false: 0o700}[strings.Contains(path, "/C1/")]; mode != want {
				t.Errorf("%s has the mode %o, want %o", path, mode, want)
			}
		}
		if len(modes) != 6 { // three folders above the case, the case, and two files
			t.Errorf("there are %v", modes)
		}
		stop()
		<-out
	})
}

// What the protocol's part "Error handling" says, line by line, and what else may lie where the artifact belongs.
func TestWhatEndsADispatch(t *testing.T) {
	responder := func(id int64, status dispatch.Status) func(*testing.T, string) {
		return func(t *testing.T, at string) {
			s := signalIn(t, at)
			s.Status, s.DispatchID, s.Error = status, id, "cannot read /home/me/prompt-recall.md"
			putSignal(t, at, s)
		}
	}
	file := func(content string) func(*testing.T, string) {
		return func(t *testing.T, at string) { put(t, filepath.Join(at, "recall-result.json"), content) }
	}
	both := func(all ...func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, at string) {
			for _, do := range all {
				do(t, at)
			}
		}
	}
	const minutes10, soon, retried = 10 * time.Minute, time.Second, 500 * time.Millisecond
	for name, c := range map[string]struct {
		do     func(t *testing.T, folder string)
		code   protocol.Code   // none: it is answered
		status dispatch.Status // in the end
		says   string          // the file's error
		least  time.Duration   // from what was done
		most   time.Duration
	}{
		"no artifact":                 {nil, protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"an artifact":                 {file(wrapped(1, `{"text":"known"}`)), "", dispatch.Done, "", 0, soon},
		"invalid JSON":                {file(`{"dispatch_id": 1, "data": {"text"`), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"an empty file":               {file(""), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"two values":                  {file(wrapped(1, `{"text":"a"}`) + "{}"), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"not UTF-8":                   {file(wrapped(1, "{\"text\":\"\xff\"}")), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"no dispatch_id":              {file(`{"data": {"text":"known"}}`), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"an older dispatch_id":        {file(wrapped(0, `{"text":"known"}`)), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"a newer dispatch_id":         {file(wrapped(2, `{"text":"known"}`)), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"a dispatch_id in quotes":     {file(`{"dispatch_id": "1", "data": {"text":"known"}}`), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"not an object":               {file(`[1]`), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"no data":                     {file(`{"dispatch_id": 1}`), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"data that is a text":         {file(wrapped(1, `"known"`)), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"data without what we expect": {file(wrapped(1, `{}`)), "", dispatch.Done, "", 0, soon},
		"too long":                    {file(wrapped(1, `{"text":"known"}`) + strings.Repeat(" ", dispatch.MaxArtifact)), protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
		"the responder's error":       {responder(1, dispatch.Failed), protocol.CodeAgentFailed, dispatch.Failed, "cannot read /home", 0, soon},
		"its error and an artifact": {both(file(wrapped(1, `{"text":"known"}`)), responder(1, dispatch.Failed)),
			protocol.CodeAgentFailed, dispatch.Failed, "cannot read /home", 0, soon},
		"an error of few words": {func(t *testing.T, at string) {
			put(t, filepath.Join(at, "signal.json"), `{"status": "error", "error": "no idea"}`)
		}, protocol.CodeAgentFailed, dispatch.Failed, "no idea", 0, soon},
		"an error of one word": {func(t *testing.T, at string) { put(t, filepath.Join(at, "signal.json"), `{"status": "error"}`) },
			protocol.CodeAgentFailed, dispatch.Failed, "no reason", 0, soon},
		"its error about an earlier dispatch": {responder(0, dispatch.Failed), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"a status of its own":                 {responder(1, dispatch.Processing), protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"half a signal": {func(t *testing.T, at string) { put(t, filepath.Join(at, "signal.json"), `{"status": "err`) },
			protocol.CodeAgentTimeout, dispatch.Failed, "timeout", minutes10, minutes10},
		"a link that leads out": {func(t *testing.T, at string) {
			outside := filepath.Join(t.TempDir(), "recall-result.json")
			put(t, outside, wrapped(1, `{"text":"secret"}`))
			if err := os.Symlink(outside, filepath.Join(at, "recall-result.json")); err != nil {
				t.Fatal(err)
			}
		}, protocol.CodeAgentFailed, dispatch.Failed, "invalid", retried, retried + soon},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				out := asking(t.Context(), newEngine(t, dispatch.Config{Dir: dir, Poll: 100 * time.Millisecond}), request)
				start := time.Now()
				if c.do != nil {
					c.do(t, folder(dir, suite, "C1"))
				}
				o := <-out
				took := time.Since(start)
				if o.code() != c.code || (o.err == nil) != (c.code == "") || took < c.least || took > c.most {
					t.Errorf("%q, %v after %v, want %q", o.code(), o.err, took, c.code)
				}
				s := signalOf(t, dir, "C1")
				if s.Status != c.status || !strings.Contains(s.Error, c.says) || s.DispatchID != 1 || (s.Error == "") != (s.Status != dispatch.Failed) {
					t.Errorf("signal.json ends as %+v", s)
				}
				if o.err != nil && (strings.ContainsAny(o.err.Error(), "/\\") || len(o.tools) != 1 || o.tools[0].Success || strings.Contains(string(o.tools[0].Output), "/")) {
					t.Errorf("a client is told %q and %+v", o.err, o.tools)
				}
			})
		})
	}
}

func TestAHalfWrittenArtifactIsGivenAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		out := asking(t.Context(), newEngine(t, dispatch.Config{Dir: dir, Poll: 10 * time.Millisecond}), request)
		file := filepath.Join(folder(dir, suite, "C1"), "recall-result.json")
		whole := wrapped(1, `{"text":"known"}`)
		put(t, file, whole[:20])
		time.Sleep(400 * time.Millisecond) // many polls, all within the moment
		put(t, file, whole)
		if o := <-out; o.text != "known" || o.err != nil {
			t.Errorf("%q, %v", o.text, o.err)
		}
	})
}

// The moment belongs to each half file: one that was completed, as somebody else's, does not use it up for the next.
func TestAStaleArtifactBetweenTwoHalfOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		out := asking(t.Context(), newEngine(t, dispatch.Config{Dir: dir, Poll: 10 * time.Millisecond}), request)
		file := filepath.Join(folder(dir, suite, "C1"), "recall-result.json")
		for _, content := range []string{"{", wrapped(7, `{"text":"of another"}`), "{", wrapped(1, `{"text":"known"}`)} {
			put(t, file, content)
			time.Sleep(300 * time.Millisecond) // within the moment of a half one; two of them are past it
		}
		if o := <-out; o.text != "known" || o.err != nil {
			t.Errorf("%q, %v", o.text, o.err)
		}
	})
}

// The artifact was taken: an error that comes while it is shown, or when all is over, is too late.
func TestALateErrorUndoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := folder(dir, suite, "C1")
		respond(t, dispatch.Responder{Dir: dir, Answer: always(`{"text":"known"}`)}.PollOnly())
		o := ask(t.Context(), newEngine(t, dispatch.Config{Dir: dir}), request, func(p signal.Payload) {
			switch p.(type) {
			case signal.ToolResult:
				late := signalIn(t, at)
				late.Status, late.Error = dispatch.Failed, "changed my mind"
				putSignal(t, at, late)
			case signal.TextDelta:
				if now := signalIn(t, at); now.Status != dispatch.Done || now.Error != "" {
					t.Errorf("after the result signal.json says %+v", now)
				}
			}
		})
		if o.text != "known" || o.err != nil {
			t.Errorf("%q, %v", o.text, o.err)
		}
	})
}

func TestASignalThatIsNotOursAnyMoreIsPutBack(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, at string){
		"replaced by a late error": func(t *testing.T, at string) {
			putSignal(t, at, dispatch.Signal{Status: dispatch.Failed, DispatchID: 41, CaseID: "C1", Error: "too late"})
		},
		"deleted": func(t *testing.T, at string) {
			if err := os.Remove(filepath.Join(at, "signal.json")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				ctx, stop := context.WithCancel(t.Context())
				out := asking(ctx, newEngine(t, dispatch.Config{Dir: dir}), request)
				before := signalOf(t, dir, "C1")
				spoil(t, folder(dir, suite, "C1"))
				time.Sleep(time.Second)
				if after := signalOf(t, dir, "C1"); after != before {
					t.Errorf("it says %+v", after)
				}
				stop()
				<-out
			})
		})
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e := newEngine(t, dispatch.Config{Dir: dir})
		ctx, stop := context.WithCancel(t.Context())
		out := asking(ctx, e, request)
		start := time.Now()
		stop()
		o := <-out
		if time.Since(start) != 0 || o.err != nil || o.ended {
			t.Errorf("after %v: %+v", time.Since(start), o)
		}
		if s := signalOf(t, dir, "C1"); s.Status != dispatch.Failed || s.Error != "cancelled" {
			t.Errorf("signal.json ends as %+v", s)
		}
		ask(ctx, e, request, nil) // cancelled before it starts: not even a folder
		if _, err := os.Stat(folder(dir, suite, "C2")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a cancelled turn leaves a folder: %v", err)
		}
		if e.Suites() != 0 {
			t.Errorf("%d suites are remembered", e.Suites())
		}
	})
}

// A session gives an agent up that is silent for two minutes; a dispatch may take ten.
func TestItSaysThatItStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, dispatch.Config{Dir: t.TempDir()})
		last, longest := time.Now(), time.Duration(0)
		o := ask(t.Context(), e, request, func(signal.Payload) {
			longest, last = max(longest, time.Since(last)), time.Now()
		})
		if o.code() != protocol.CodeAgentTimeout || longest > 30*time.Second {
			t.Errorf("silent for %v, then %v", longest, o.err)
		}
	})
}

func TestTwoSessionsAtOnceAndTwoTurnsOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e := newEngine(t, dispatch.Config{Dir: dir, Steps: []dispatch.Step{dispatch.Recall, dispatch.Report}})
		other := request
		other.SessionID = "0b0c7d5e-5a3f-4c8e-9d3f-2f0a1b2c3d4e"
		both := make(chan struct{}, 2) // both are asked before either is answered
		respond(t, dispatch.Responder{Dir: dir, Answer: func(ctx context.Context, task dispatch.Task) (json.RawMessage, error) {
			if task.DispatchID == 1 {
				if both <- struct{}{}; len(both) < 2 {
					time.Sleep(time.Minute)
				}
				if len(both) < 2 {
					return nil, errors.New("the other one was not asked")
				}
			}
			return json.Marshal(map[string]any{"answer": fmt.Sprintf("%s %d", task.Case, task.DispatchID)})
		}}.PollOnly())
		first, second := asking(t.Context(), e, request), asking(t.Context(), e, other)
		for _, out := range []<-chan told{first, second} {
			if o := <-out; o.text != "C1 2" || o.err != nil {
				t.Errorf("%q, %v", o.text, o.err)
			}
		}
		if o := ask(t.Context(), e, request, nil); o.text != "C2 4" || o.err != nil {
			t.Errorf("the next turn: %q, %v", o.text, o.err)
		}
		if s := signalIn(t, folder(dir, other.SessionID, "C1")); s.DispatchID != 2 {
			t.Errorf("the other session's signal is %+v", s)
		}
	})
}

// The process was killed while a step waited. Its numbers are not used again, and what it left is no answer.
func TestRestartInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		putSignal(t, folder(dir, suite, "C2"), dispatch.Signal{Status: dispatch.Done, DispatchID: 16, CaseID: "C2"})
		putSignal(t, folder(dir, suite, "C10"), dispatch.Signal{Status: dispatch.Waiting, DispatchID: 17, CaseID: "C10", Step: dispatch.Recall})
		put(t, filepath.Join(folder(dir, suite, "C10"), "recall-result.json"), wrapped(18, `{"text":"stale"}`))
		putSignal(t, folder(dir, suite, "C3"), dispatch.Signal{Status: dispatch.Done, DispatchID: 1 << 60, CaseID: "C3"}) // forged
		put(t, filepath.Join(folder(dir, suite, "C4"), "signal.json"), `{"status": "wai`)
		put(t, filepath.Join(folder(dir, suite, "C9223372036854775807"), "x"), "")
		putSignal(t, folder(dir, "2", "C1"), dispatch.Signal{Status: dispatch.Waiting, DispatchID: 99, CaseID: "C1"})
		out := asking(t.Context(), newEngine(t, dispatch.Config{Dir: dir}), request)
		if s := signalOf(t, dir, "C10"); s.Status != dispatch.Failed || s.DispatchID != 17 || !strings.Contains(s.Error, "restarted") {
			t.Errorf("what was left waiting is %+v", s)
		}
		if s := signalIn(t, folder(dir, "2", "C1")); s.Status != dispatch.Waiting {
			t.Errorf("another suite was touched: %+v", s)
		}
		respond(t, dispatch.Responder{Dir: dir, Answer: func(_ context.Context, task dispatch.Task) (json.RawMessage, error) {
			return json.Marshal(map[string]any{"text": fmt.Sprintf("%s %d", task.Case, task.DispatchID)})
		}}.PollOnly())
		if o := <-out; o.text != "C11 18" || o.err != nil {
			t.Errorf("%q, %v", o.text, o.err)
		}
	})
}

// A turn that starts beside another one of its session finds that one waiting, and leaves it alone.
func TestATurnLeavesTheOneBesideItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e := newEngine(t, dispatch.Config{Dir: dir})
		ctx, stop := context.WithCancel(t.Context())
		first, second := asking(ctx, e, request), asking(ctx, e, request)
		for i, id := range []string{"C1", "C2"} {
			if s := signalOf(t, dir, id); s.Status != dispatch.Waiting || s.DispatchID != int64(i+1) {
				t.Errorf("%s: %+v", id, s)
			}
		}
		stop()
		<-first
		<-second
	})
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"not there": os.Remove,
		"a file":    func(dir string) error { return os.WriteFile(filepath.Join(dir, ".asterisk"), nil, 0o600) },
		"a way out": func(dir string) error { return os.Symlink(os.TempDir(), filepath.Join(dir, ".asterisk")) },
		"a suite of outside": func(dir string) error {
			if err := os.MkdirAll(filepath.Join(dir, ".asterisk", "calibrate"), 0o700); err != nil {
				return err
			}
			return os.Symlink(os.TempDir(), filepath.Join(dir, ".asterisk", "calibrate", suite))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			e := newEngine(t, dispatch.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
			o := ask(t.Context(), e, request, nil)
			if o.code() != protocol.CodeAgentUnavailable || strings.Contains(o.err.Error(), dir) {
				t.Errorf("%q, %v", o.code(), o.err)
			}
			if !strings.Contains(log.String(), "cause=") || strings.Contains(log.String(), filepath.Dir(dir)) {
				t.Errorf("the log has no cause, or where it lies: %s", &log)
			}
			if err := e.Check(); (err == nil) != (name == "a suite of outside") {
				t.Errorf("checked: %v", err)
			}
		})
	}
	dir := t.TempDir()
	if err := newEngine(t, dispatch.Config{Dir: dir}).Check(); err != nil {
		t.Errorf("a good folder: %v", err)
	}
}

func TestSettingsThatAreNone(t *testing.T) {
	for says, cfg := range map[string]dispatch.Config{
		"F7_NOTHING": {Steps: []dispatch.Step{"F7_NOTHING"}},
		"twice":      {Steps: []dispatch.Step{dispatch.Recall, dispatch.Triage, dispatch.Recall}},
		"a..b":       {Answer: "a..b"},
	} {
		if _, err := dispatch.New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestSuiteIDs(t *testing.T) {
	for id, want := range map[string]string{
		"1":                                    "1",
		"0b0c7d5e-5a3f-4c8e-9d3f-2f0a1b2c3d4e": "0b0c7d5e-5a3f-4c8e-9d3f-2f0a1b2c3d4e",
	} {
		if got := dispatch.SuiteID(id); got != want {
			t.Errorf("%q: %q", id, got)
		}
	}
	names := map[string]string{}
	for _, id := range []string{"", ".", "..", "../../etc", "a/b", `a\b`, "A", "a", "ä", "a\x00", "_a", "-a", strings.Repeat("a", 65), strings.Repeat("a", 64), "C:"} {
		name := dispatch.SuiteID(id)
		if before, taken := names[strings.ToLower(name)]; taken {
			t.Errorf("%q and %q are both %q", before, id, name)
		}
		names[strings.ToLower(name)] = id
		if name == "" || len(name) > 64 || !filepath.IsLocal(name) || strings.Trim(name, "_abcdef0123456789") != "" {
			t.Errorf("%q is kept in %q", id, name)
		}
	}
}
