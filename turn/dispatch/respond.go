package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Task is one step to be answered.
type Task struct {
	Case       string // such as C1; unique within its suite alone
	Step       Step
	DispatchID int64
	Prompt     []byte // Markdown, at most 32 MiB
}

// Responder answers what waits below a root. Answer is required.
type Responder struct {
	// Dir is the folder that .asterisk is made in; the working directory by default. It has to be there.
	Dir string

	// Answer returns the data of the artifact: a JSON object of at most 4 MiB. It is called from several goroutines, once
	// for each dispatch, and ends promptly once ctx is done: nobody waits for the answer then. The words of an error go
	// into signal.json.
	Answer func(ctx context.Context, t Task) (json.RawMessage, error)

	Parallel int           // how many tasks at once, the others wait; default 4
	Timeout  time.Duration // for one answer; also how old a signal may be to be answered at all. Default 10 minutes
	Poll     time.Duration // how often files are looked at where the system tells of no changes; default 500 ms

	// Tell gets one line, for a person, for each thing that happens. It is called from the goroutine of Run. May be nil.
	Tell func(line string)

	notify func() (*fsnotify.Watcher, error) // fsnotify.NewWatcher, unless a test has another
}

// Run answers until ctx is done; that is no error. What it works on then it gives up, and says so in signal.json. It
// returns an error when the root cannot be used.
func (r Responder) Run(ctx context.Context) error {
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return fmt.Errorf("dispatch: find the folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("dispatch: open the folder: %w (make it, or name that of the agent)", err)
	}
	defer root.Close()
	if err := root.MkdirAll(calibrate, 0o700); err != nil { // there has to be something to watch
		return fmt.Errorf("dispatch: write to the folder: %w", err)
	}
	r.Parallel, r.Timeout, r.Poll = cmp.Or(r.Parallel, 4), cmp.Or(r.Timeout, defaultTimeout), cmp.Or(r.Poll, defaultPoll)
	if r.notify == nil {
		r.notify = fsnotify.NewWatcher
	}
	if r.Tell == nil {
		r.Tell = func(string) {}
	}
	x := &responding{Responder: r, root: root, dir: dir, watch: listen(r.notify, r.Poll), cases: map[string]*seen{}, answers: make(chan answered)}
	defer x.watch.close()
	x.run(ctx)
	return nil
}

// responding is a responder at work. All of it belongs to the goroutine of Run.
type responding struct {
	Responder
	root    *os.Root
	dir     string // of root, absolute
	watch   *watch
	cases   map[string]*seen // by folder, below root
	running int
	answers chan answered // from the goroutines of the tasks
}

// seen is what is known of one case.
type seen struct {
	job  *job  // nil while nothing runs for it
	last int64 // the dispatch that was answered last
	old  bool  // nobody waits here any more, so that it is not read again
}

// job is a task that is being answered.
type job struct {
	Signal
	folder  string
	started time.Time
	stop    context.CancelCauseFunc
}

// answered is what became of a job.
type answered struct {
	job  *job
	data json.RawMessage
	err  error
}

// Why a job ends early.
var (
	errWithdrawn = errors.New("nobody waits for the answer any more")
	errStopped   = errors.New("the responder was stopped")
)

func (x *responding) run(ctx context.Context) {
	defer x.stopAll()
	for {
		x.round(ctx)
		select {
		case <-x.watch.bell:
		case a := <-x.answers:
			x.end(a)
		case <-ctx.Done():
			return
		}
	}
}

func (x *responding) stopAll() {
	for _, s := range x.cases {
		if s.job != nil {
			s.job.stop(errStopped)
		}
	}
	for x.running > 0 {
		x.end(<-x.answers)
	}
}

// round looks at every case once. Folders are watched before they are read, so that nothing falls between.
func (x *responding) round(ctx context.Context) {
	folders, err := x.folders()
	there := make(map[string]bool, len(folders))
	for _, folder := range folders {
		there[folder] = true
		s := x.cases[folder]
		if s == nil {
			s = &seen{}
			x.cases[folder] = s
		}
		if !s.old {
			x.watch.add(x.absolute(folder))
			x.look(ctx, folder, s)
		}
	}
	if err != nil {
		return // what was not listed is not gone
	}
	for folder, s := range x.cases {
		switch {
		case there[folder]:
		case s.job != nil:
			s.job.stop(errWithdrawn)
		default:
			delete(x.cases, folder)
		}
	}
}

// folders are those of all cases, by their names below the root.
func (x *responding) folders() ([]string, error) {
	suites, err := x.in(calibrate)
	var all []string
	for _, suite := range suites {
		cases, failed := x.in(suite)
		all, err = append(all, cases...), errors.Join(err, failed)
	}
	return all, err
}

// in lists the folders in a folder, and watches it for more. Links are passed over.
func (x *responding) in(folder string) ([]string, error) {
	x.watch.add(x.absolute(folder))
	entries, err := fs.ReadDir(x.root.FS(), folder)
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, path.Join(folder, e.Name()))
		}
	}
	return all, err
}

func (x *responding) absolute(folder string) string {
	return filepath.Join(x.dir, filepath.FromSlash(folder))
}

// look does what the signal of a case asks for.
func (x *responding) look(ctx context.Context, folder string, s *seen) {
	now, err := x.signal(folder)
	waits := err == nil && now.Status == Waiting
	if s.job != nil {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !(waits && now.DispatchID == s.job.DispatchID) {
			s.job.stop(errWithdrawn)
		}
		return // whatever waits here has its turn when the job has ended
	}
	switch {
	case err != nil:
	case now.age() > x.Timeout:
		s.old = true
		x.watch.remove(x.absolute(folder))
		if waits && now.DispatchID != s.last {
			x.tell(folder, now, "not answered: it has waited for longer than "+x.Timeout.String())
		}
	case waits && now.DispatchID != s.last && x.running < x.Parallel:
		s.last = now.DispatchID
		if !x.hasArtifact(folder, now) {
			x.start(ctx, folder, now, s)
		}
	}
}

func (x *responding) signal(folder string) (Signal, error) {
	b, err := readFile(x.root, folder+"/"+signalFile, maxSignal)
	if err != nil {
		return Signal{}, err
	}
	return decodeSignal(b)
}

// hasArtifact says whether a dispatch was answered before, such as by the responder that ran before this one.
func (x *responding) hasArtifact(folder string, now Signal) bool {
	if !now.Step.known() {
		return false
	}
	b, err := readFile(x.root, folder+"/"+now.Step.Artifact(), maxArtifact)
	if err != nil {
		return false
	}
	_, err = unwrap(b, now.DispatchID)
	return err == nil
}

// start answers a task in a goroutine, which end waits for.
func (x *responding) start(ctx context.Context, folder string, now Signal, s *seen) {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx)) // its end has a cause of ours: see stopAll
	s.job = &job{Signal: now, folder: folder, started: time.Now(), stop: stop}
	x.running++
	x.tell(folder, now, "answering")
	go func(j *job) {
		data, err := x.answer(ctx, j)
		x.answers <- answered{j, data, err}
	}(s.job)
}

// answer runs in the goroutine of its job, and touches nothing of x that changes.
func (x *responding) answer(ctx context.Context, j *job) (json.RawMessage, error) {
	text, err := x.prompt(j)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, x.Timeout, fmt.Errorf("no answer within %v", x.Timeout))
	defer cancel()
	data, err := x.Answer(ctx, Task{Case: j.CaseID, Step: j.Step, DispatchID: j.DispatchID, Prompt: text})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // also where the function has returned what it had
	}
	return data, err
}

// prompt reads the prompt file, which has to be below the root, and sees that the artifact's place is the step's.
func (x *responding) prompt(j *job) ([]byte, error) {
	if !j.Step.known() {
		return nil, fmt.Errorf("there is no step %q", string(j.Step))
	}
	if at, below := x.below(j.ArtifactPath); !below || at != j.folder+"/"+j.Step.Artifact() {
		return nil, fmt.Errorf("artifact_path is not %s in the folder of signal.json", j.Step.Artifact())
	}
	at, below := x.below(j.PromptPath)
	if !below {
		return nil, errors.New("prompt_path leads out of the folder that the responder watches")
	}
	text, err := readFile(x.root, at, maxPrompt)
	if err != nil {
		return nil, fmt.Errorf("read the prompt: %w", err)
	}
	return text, nil
}

// below turns an absolute path into one below the root. The dispatcher may know the root by another name than we do,
// where a link leads to it; then the folder is looked up, since the file may not be there yet.
func (x *responding) below(file string) (string, bool) {
	if at, ok := relative(x.dir, file); ok {
		return at, true
	}
	dir, err := filepath.EvalSymlinks(x.dir)
	folder, err2 := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil || err2 != nil {
		return "", false
	}
	return relative(dir, filepath.Join(folder, filepath.Base(file)))
}

func relative(dir, file string) (string, bool) {
	at, err := filepath.Rel(dir, file)
	return filepath.ToSlash(at), err == nil && filepath.IsLocal(at)
}

// end writes what a job came to, if its dispatch still waits.
func (x *responding) end(a answered) {
	x.running--
	j := a.job
	j.stop(nil)
	x.cases[j.folder].job = nil
	now, err := x.signal(j.folder)
	if err != nil || now.Status != Waiting || now.DispatchID != j.DispatchID {
		x.tell(j.folder, j.Signal, "given up: "+errWithdrawn.Error())
		return
	}
	if a.err == nil {
		a.err = x.writeArtifact(j, a.data)
	}
	if a.err == nil {
		x.tell(j.folder, j.Signal, fmt.Sprintf("answered in %v", time.Since(j.started).Round(time.Millisecond)))
		return
	}
	x.tell(j.folder, j.Signal, "failed: "+a.err.Error())
	now.Status, now.Error = Failed, brief(a.err.Error())
	if err := x.write(j.folder, now); err != nil {
		x.tell(j.folder, j.Signal, "not told: "+err.Error())
	}
}

func (x *responding) writeArtifact(j *job, data json.RawMessage) error {
	if !isObject(data) {
		return errors.New("the answer is no JSON object")
	}
	b, err := json.Marshal(wrapper{j.DispatchID, data})
	if err != nil {
		return fmt.Errorf("write the artifact: %w", err)
	}
	if len(b) > maxArtifact {
		return fmt.Errorf("the answer has more than %d bytes", maxArtifact)
	}
	return x.put(j.folder, j.Step.Artifact(), b)
}

func (x *responding) write(folder string, s Signal) error {
	b, err := s.encode()
	if err != nil {
		return err
	}
	return x.put(folder, signalFile, b)
}

func (x *responding) put(folder, name string, content []byte) error {
	dir, err := x.root.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return writeFile(dir, name, content)
}

// tell makes one line of it. The suite is shown too: each has a C1.
func (x *responding) tell(folder string, s Signal, what string) {
	x.Tell(brief(fmt.Sprintf("%s %s, dispatch %d: %s", strings.TrimPrefix(folder, calibrate+"/"), s.Step, s.DispatchID, what)))
}
