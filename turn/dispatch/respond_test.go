package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/turn/dispatch"
)

// waiting puts a case there as a dispatcher leaves it, with its prompt, and returns its folder.
func waiting(t *testing.T, dir, id string, dispatchID int64, change func(*dispatch.Signal)) string {
	t.Helper()
	at := folder(dir, suite, id)
	s := dispatch.Signal{
		Status: dispatch.Waiting, DispatchID: dispatchID, CaseID: id, Step: dispatch.Recall,
		PromptPath: filepath.Join(at, "prompt-recall.md"), ArtifactPath: filepath.Join(at, "recall-result.json"),
		Timestamp: time.Now().Format(time.RFC3339),
	}
	put(t, s.PromptPath, "the prompt of "+id)
	if change != nil {
		change(&s)
	}
	putSignal(t, at, s)
	return at
}

// artifact is what was answered; empty for nothing.
func artifact(t *testing.T, folder string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "recall-result.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// What a responder makes of one signal.
func TestOneAnswer(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.md")
	put(t, outside, "secret")
	prompt := func(_ context.Context, task dispatch.Task) (json.RawMessage, error) {
		return json.Marshal(map[string]any{"text": string(task.Prompt)})
	}
	for name, c := range map[string]struct {
		change func(s *dispatch.Signal)
		answer func(context.Context, dispatch.Task) (json.RawMessage, error)
		want   string // the artifact
		status dispatch.Status
		says   string // the error in signal.json
	}{
		"an answer": {nil, prompt, `{"dispatch_id":5,"data":{"text":"the prompt of C1"}}`, dispatch.Waiting, ""},
		"a failure": {nil, func(context.Context, dispatch.Task) (json.RawMessage, error) {
			return nil, errors.New("no\nidea\x1b[2J")
		}, "", dispatch.Failed, "no idea [2J"},
		"no object": {nil, always(`"text"`), "", dispatch.Failed, "no JSON object"},
		"no JSON":   {nil, always(`{`), "", dispatch.Failed, "no JSON object"},
		"too long":  {nil, always(`{"text":"` + strings.Repeat("x", dispatch.MaxArtifact) + `"}`), "", dispatch.Failed, "more than"},
		"too slow": {nil, func(ctx context.Context, _ dispatch.Task) (json.RawMessage, error) {
			<-ctx.Done()
			return always(`{}`)(ctx, dispatch.Task{})
		}, "", dispatch.Failed, "no answer within 10m0s"},
		"done":         {func(s *dispatch.Signal) { s.Status = dispatch.Done }, prompt, "", dispatch.Done, ""},
		"no status":    {func(s *dispatch.Signal) { s.Status = "ready" }, prompt, "", "ready", ""},
		"no step":      {func(s *dispatch.Signal) { s.Step = "F9" }, prompt, "", dispatch.Failed, "F9"},
		"another step": {func(s *dispatch.Signal) { s.Step = dispatch.Triage }, prompt, "", dispatch.Failed, "triage-result.json"},
		"an artifact elsewhere": {func(s *dispatch.Signal) {
			s.ArtifactPath = filepath.Join(filepath.Dir(filepath.Dir(s.ArtifactPath)), "recall-result.json")
		},
			prompt, "", dispatch.Failed, "artifact_path"},
		"a prompt outside": {func(s *dispatch.Signal) { s.PromptPath = outside }, prompt, "", dispatch.Failed, "leads out"},
		"a prompt up":      {func(s *dispatch.Signal) { s.PromptPath += "/../../../../../../secret.md" }, prompt, "", dispatch.Failed, "leads out"},
		"no prompt":        {func(s *dispatch.Signal) { s.PromptPath += "x" }, prompt, "", dispatch.Failed, "read the prompt"},
		"a link as prompt": {func(s *dispatch.Signal) {
			s.PromptPath += "-link"
			if err := os.Symlink(outside, s.PromptPath); err != nil {
				t.Error(err)
			}
		}, prompt, "", dispatch.Failed, "read the prompt"},
		"too old":            {func(s *dispatch.Signal) { s.Timestamp = "1999-12-31T23:49:59Z" }, prompt, "", dispatch.Waiting, ""},
		"of an unknown time": {func(s *dispatch.Signal) { s.Timestamp = "yesterday" }, prompt, `{"dispatch_id":5,"data":{"text":"the prompt of C1"}}`, dispatch.Waiting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				at := waiting(t, dir, "C1", 5, c.change)
				respond(t, dispatch.Responder{Dir: dir, Answer: c.answer}.PollOnly())
				time.Sleep(11 * time.Minute)
				if got := artifact(t, at); got != c.want {
					t.Errorf("the artifact is %.200q", got)
				}
				if s := signalIn(t, at); s.Status != c.status || (s.Error == "") != (c.says == "") || !strings.Contains(s.Error, c.says) || strings.Contains(s.Error, "\n") {
					t.Errorf("signal.json is %+v", s)
				}
				if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
					t.Errorf("outside lies %q, %v", b, err)
				}
			})
		})
	}
}

func TestADispatchIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := waiting(t, dir, "C1", 5, nil)
		there := waiting(t, dir, "C2", 6, nil) // answered by the responder before this one
		put(t, filepath.Join(there, "recall-result.json"), wrapped(6, `{"text":"before"}`))
		stale := waiting(t, dir, "C3", 8, nil)
		put(t, filepath.Join(stale, "recall-result.json"), wrapped(7, `{"text":"before"}`))
		var asked []string
		r := dispatch.Responder{Dir: dir, Parallel: 1, Answer: func(_ context.Context, task dispatch.Task) (json.RawMessage, error) {
			asked = append(asked, fmt.Sprintf("%s %d", task.Case, task.DispatchID))
			if task.DispatchID == 8 {
				return nil, errors.New("no")
			}
			return json.RawMessage(`{}`), nil
		}}.PollOnly()
		respond(t, r)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"C1 5", "C3 8"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
		if err := os.Remove(filepath.Join(at, "recall-result.json")); err != nil { // its signal still waits
			t.Fatal(err)
		}
		waiting(t, dir, "C3", 8, nil) // put back, although it has failed
		time.Sleep(time.Minute)
		synctest.Wait()
		waiting(t, dir, "C1", 9, nil) // the next step
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"C1 5", "C3 8", "C1 9"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
		if got := artifact(t, at); got != `{"dispatch_id":9,"data":{}}` {
			t.Errorf("the artifact is %.200q", got)
		}
	})
}

func TestSoManyAtOnceAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var folders []string
		for i := range 9 {
			folders = append(folders, waiting(t, dir, fmt.Sprintf("C%d", i+1), int64(i+1), nil))
		}
		now, counts := make(chan struct{}, 9), make(chan int, 9)
		respond(t, dispatch.Responder{Dir: dir, Answer: func(context.Context, dispatch.Task) (json.RawMessage, error) {
			now <- struct{}{}
			time.Sleep(time.Second)
			counts <- len(now)
			time.Sleep(time.Second) // until each has counted
			<-now
			return json.RawMessage(`{}`), nil
		}}.PollOnly())
		time.Sleep(time.Minute)
		for i, at := range folders {
			if artifact(t, at) == "" {
				t.Errorf("C%d was not answered", i+1)
			}
		}
		for want := range slices.Values([]int{4, 4, 4, 4, 4, 4, 4, 4, 1}) {
			if got := <-counts; got != want {
				t.Errorf("%d at once, want %d", got, want)
			}
		}
	})
}

// Whatever takes the question back, the work on it ends, and nothing is written.
func TestWorkThatNobodyWaitsForIsStopped(t *testing.T) {
	for name, withdraw := range map[string]func(t *testing.T, at string){
		"cancelled": func(t *testing.T, at string) {
			s := signalIn(t, at)
			s.Status, s.Error = dispatch.Failed, "cancelled"
			putSignal(t, at, s)
		},
		"another dispatch": func(t *testing.T, at string) {
			s := signalIn(t, at)
			s.DispatchID, s.Timestamp = 6, "1999-01-01T00:00:00Z" // too old to be answered, so that only the first is here
			putSignal(t, at, s)
		},
		"deleted": func(t *testing.T, at string) {
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
		},
		"signal deleted": func(t *testing.T, at string) {
			if err := os.Remove(filepath.Join(at, "signal.json")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				at := waiting(t, dir, "C1", 5, nil)
				stopped := make(chan error, 1)
				var lines []string
				respond(t, dispatch.Responder{Dir: dir, Tell: func(line string) { lines = append(lines, line) }, Answer: func(ctx context.Context, _ dispatch.Task) (json.RawMessage, error) {
					<-ctx.Done()
					stopped <- context.Cause(ctx)
					return json.RawMessage(`{}`), nil
				}}.PollOnly())
				synctest.Wait()
				before := time.Now()
				withdraw(t, at)
				err := <-stopped
				if took := time.Since(before); took > 500*time.Millisecond || !strings.Contains(err.Error(), "nobody waits") {
					t.Errorf("stopped after %v: %v", took, err)
				}
				time.Sleep(time.Second)
				synctest.Wait() // the responder has told its lines: a sleep alone orders nothing
				if got := artifact(t, at); got != "" {
					t.Errorf("all the same it was answered: %s", got)
				}
				want := []string{"1/C1 F0_RECALL, dispatch 5: answering", "1/C1 F0_RECALL, dispatch 5: given up: nobody waits for the answer any more"}
				if len(lines) < 2 || !slices.Equal(lines[:2], want) {
					t.Errorf("told %q", lines)
				}
			})
		})
	}
}

func TestAResponderThatIsStoppedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := waiting(t, dir, "C1", 5, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- dispatch.Responder{Dir: dir, Answer: func(ctx context.Context, _ dispatch.Task) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}.PollOnly().Run(ctx)
		}()
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if s := signalIn(t, at); s.Status != dispatch.Failed || s.Error != "the responder was stopped" {
			t.Errorf("signal.json is %+v", s)
		}
	})
}

// A case folder that is a link to elsewhere is not ours to answer, and one that is a link to another case is that case.
func TestLinkedCasesArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, elsewhere := t.TempDir(), t.TempDir()
		there := waiting(t, elsewhere, "C1", 5, nil)
		if err := os.MkdirAll(folder(dir, suite, ""), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(there, folder(dir, suite, "C1")); err != nil {
			t.Fatal(err)
		}
		here := waiting(t, dir, "C3", 6, nil)
		if err := os.Symlink("C3", folder(dir, suite, "C2")); err != nil {
			t.Fatal(err)
		}
		respond(t, dispatch.Responder{Dir: dir, Answer: always(`{}`)}.PollOnly())
		time.Sleep(time.Minute)
		if got := artifact(t, there); got != "" {
			t.Errorf("it was answered: %s", got)
		}
		if s := signalIn(t, here); s.Status != dispatch.Waiting || artifact(t, here) == "" {
			t.Errorf("the case that a link leads to was not answered: %+v", s)
		}
		if s := signalIn(t, there); s.Status != dispatch.Waiting {
			t.Errorf("signal.json is %+v", s)
		}
	})
}

// Dispatcher and responder may reach the root by different names.
func TestTheRootByAnotherName(t *testing.T) {
	for name, swap := range map[string]bool{"the dispatcher's is a link": false, "the responder's is a link": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				link := filepath.Join(t.TempDir(), "link")
				if err := os.Symlink(dir, link); err != nil {
					t.Fatal(err)
				}
				theirs, ours := link, dir
				if swap {
					theirs, ours = dir, link
				}
				respond(t, dispatch.Responder{Dir: ours, Answer: always(`{"text":"known"}`)}.PollOnly())
				if o := ask(t.Context(), newEngine(t, dispatch.Config{Dir: theirs}), request, nil); o.text != "known" {
					t.Errorf("%q, %v", o.text, o.err)
				}
			})
		})
	}
}

func TestAResponderWithoutAFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file", ".asterisk"), "")
	for _, at := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "file")} {
		if err := (dispatch.Responder{Dir: at, Answer: always(`{}`)}).Run(t.Context()); err == nil {
			t.Errorf("%s is taken", at)
		}
	}
}

// The system tells both halves of each change: with a poll once an hour the seven steps would take a day.
func TestWatchedFilesNeedNoPoll(t *testing.T) {
	dir := t.TempDir()
	respond(t, dispatch.Responder{Dir: dir, Answer: always(`{"text":"known"}`), Poll: time.Hour})
	e, err := dispatch.New(dispatch.Config{Dir: dir, Poll: time.Hour, Steps: dispatch.Steps()})
	if err != nil {
		t.Fatal(err)
	}
	if o := ask(t.Context(), e, request, nil); o.text != "known" || o.err != nil {
		t.Errorf("%q, %v", o.text, o.err)
	}
}
