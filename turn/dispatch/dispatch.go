// Package dispatch lets an agent answer by files: the gateway writes a prompt and a signal.json, whoever watches the
// folder writes an artifact, and that is the answer. The agent may be a script, a person, or a coding assistant that is
// told to watch a folder; it needs no network and no key.
//
// Start at [Engine]. A turn is a case, a session is a suite, and each case has a folder below the root:
//
//	.asterisk/calibrate/{suite}/{case}/signal.json         what is asked for, and where it stands (signal.go)
//	.asterisk/calibrate/{suite}/{case}/prompt-recall.md    the question (prompt.go)
//	.asterisk/calibrate/{suite}/{case}/recall-result.json  the artifact (step.go)
//
// The other half is a [Responder], which watches all these folders and answers with a function or, with [Shell], with a
// command. It is one way to answer, not the only one: the format is the Signal Protocol of the Asterisk CLI, and any
// program that follows it will do.
//
// # Who writes what
//
// The dispatcher owns signal.json and the prompt, the responder owns the artifact. The one exception is a responder
// that fails: it writes status "error" into signal.json. Two writers of one file can cross, and it ends like this:
//
//   - What the dispatcher has seen first counts. A valid artifact it has taken is not undone by an error that comes later:
//     the dispatcher writes "processing" and "done" over it, and whatever is written after "done" nobody reads any more.
//   - An error with the dispatch_id of now, or without any, ends the step, also where an artifact lies beside it.
//   - If the dispatcher gives up while the responder writes its error, one of the two stays, and both say "error".
//   - A late error about an earlier dispatch may replace the signal that waits now. The dispatcher sees that its dispatch_id
//     is not its own, takes no notice of what it says, and puts its own signal back. It does so too where the file is gone.
//   - What cannot be read as a signal may be one that is being written. It is left alone, and so is a status that a responder
//     sets itself, such as "processing".
//
// Every file is written beside its place and renamed into it, so that nobody reads half of one. It is not synced to the
// disk: a turn does not outlive its process, and all who read these files share its page cache.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"vela/protocol/signal"
	"vela/turn"
)

// AgentID is who the signals say they are from.
const AgentID = "dispatch"

// Config is how turns are dispatched. Its zero value works: one step a turn, in the working directory.
type Config struct {
	// Dir is the folder that .asterisk is made in; the working directory by default. It has to be there.
	Dir string

	// Steps are what each turn runs, in order, none twice; [Recall] alone by default. Somebody waits for the answer, and
	// Recall is the step that every responder knows.
	Steps []Step

	// Answer says where in the last artifact's data the text of the answer lies: a JSON pointer (RFC 6901) such as
	// /report/text, or the same as report.text. Where nothing is there, as by default, it is the first text found under
	// answer, text, summary, reasoning and description, and without any of them the data itself, as JSON.
	Answer string

	Timeout time.Duration // how long a step may take; default 10 minutes
	Retry   time.Duration // how long an artifact that is no valid JSON is given to become it; default 500 ms
	Poll    time.Duration // how often files are looked at where the system tells of no changes; default 500 ms

	Log *slog.Logger // nil discards
}

// Engine answers turns by files. It may serve many sessions at once, of one process: two gateways need two roots.
type Engine struct {
	cfg    Config
	path   []string // of the answer
	suites suites
	notify func() (*fsnotify.Watcher, error)
}

// New makes an engine, and no file. It returns an error for steps that are not there or come twice, and for a path of
// the answer that is none.
func New(cfg Config) (*Engine, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("dispatch: find the folder: %w", err)
	}
	path, err := parsePath(cfg.Answer)
	if err != nil {
		return nil, err
	}
	if len(cfg.Steps) == 0 {
		cfg.Steps = []Step{Recall}
	}
	for i, s := range cfg.Steps {
		if !s.known() {
			return nil, fmt.Errorf("dispatch: there is no step %q; there are %v", string(s), Steps())
		}
		if slices.Contains(cfg.Steps[:i], s) {
			return nil, fmt.Errorf("dispatch: the step %s comes twice: its artifact would be overwritten", s)
		}
	}
	cfg.Dir, cfg.Steps = dir, slices.Clone(cfg.Steps)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Retry = cmp.Or(cfg.Retry, 500*time.Millisecond)
	cfg.Poll = cmp.Or(cfg.Poll, defaultPoll)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Engine{cfg: cfg, path: path, notify: fsnotify.NewWatcher}, nil
}

const (
	defaultTimeout = 10 * time.Minute
	defaultPoll    = 500 * time.Millisecond
)

// Check says why no turn could be answered: an error that names the folder, for whoever runs the gateway. It makes the
// folder that suites lie in, unless it is there.
func (e *Engine) Check() error {
	root, err := os.OpenRoot(e.cfg.Dir)
	if err != nil {
		return fmt.Errorf("dispatch: open the folder: %w (make it, or name another as dir)", err)
	}
	defer root.Close()
	if err := root.MkdirAll(calibrate, 0o700); err != nil {
		return fmt.Errorf("dispatch: write to the folder: %w", err)
	}
	return nil
}

// Run implements [turn.Engine]. Each step is shown as a tool call with its name, whose output is the data of its
// artifact. Errors have the codes agent_timeout (nobody answered), agent_failed (what was answered is an error, or
// cannot be read) and agent_unavailable (the folder cannot be used).
func (e *Engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		if ctx.Err() != nil {
			return
		}
		x := &exchange{Engine: e, req: req, yield: yield}
		err := x.answer(ctx)
		var f *failure
		if errors.As(err, &f) {
			e.cfg.Log.Warn("turn not answered", "session", req.SessionID, "turn", req.TurnID, "code", f.code, "cause", f.cause)
			if x.show(ctx, signal.AgentStateChange{AgentID: AgentID, From: signal.AgentWaiting, To: signal.AgentError}) {
				yield(nil, f)
			}
		}
	}
}
