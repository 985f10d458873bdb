package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"vela/gateway/bus"
	"vela/gateway/pipeline"
	"vela/gateway/watch"
)

// run is the pipeline at work: what is wired, in memory and, where there is a file, in that; and what comes out, on the
// bus. It implements [server.Run].
type run struct {
	log    *slog.Logger
	file   string // wiring.json; empty: the wiring is in memory alone
	runner *pipeline.Runner
	shown  func(name, correlation string, payload []byte) // to whoever follows signals; set before anything runs
	bus    *bus.Bus                                       // set before anything runs

	mu       sync.Mutex
	wiring   []byte    // in force, as it was written
	since    time.Time // when it came in force
	mistakes []string  // of what the file has instead; none where it has what is in force
}

// runStatus is how the run goes, and what is wired.
type runStatus struct {
	pipeline.Status
	Since    int64    `json:"since"`              // of the wiring in force, in Unix ms
	Mistakes []string `json:"mistakes,omitempty"` // of the file, which therefore is not in force
}

// maxMistakes is how many mistakes of a file are told.
const maxMistakes = 100

// newRun reads the wiring, if it is there.
func newRun(file string, log *slog.Logger) (*run, error) {
	r := &run{log: log, file: file, wiring: []byte("{}"), since: time.Now(), shown: func(string, string, []byte) {}}
	if file != "" {
		text, err := os.ReadFile(file)
		switch {
		case err == nil:
			r.wiring = text
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("gateway: read the wiring: %w", err)
		}
		// A file may come later, and is written when it does; a folder nobody makes.
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return nil, fmt.Errorf("gateway: the wiring has no folder to lie in: %w; make it, or choose another file with --wiring", err)
		}
	}
	w, err := pipeline.Parse(r.wiring)
	if err != nil {
		return nil, fmt.Errorf("gateway: %s: %w", file, err)
	}
	r.runner = pipeline.NewRunner(w, r.tell)
	return r, nil
}

// work runs the pipeline, and looks after the file, until ctx is done.
func (r *run) work(ctx context.Context) {
	var beside sync.WaitGroup
	if r.file != "" {
		beside.Go(func() {
			if err := r.watch(ctx); err != nil {
				r.log.Warn("the wiring is not read again when its file changes", "error", err)
			}
		})
	}
	_ = r.runner.Run(ctx) // it ends with ctx alone
	beside.Wait()
}

// tell sends commands to whoever listens.
func (r *run) tell(commands []pipeline.Command) {
	for _, c := range commands {
		text, err := json.Marshal(c)
		if err == nil {
			r.shown(c.Command(), correlationOf(c), text)
			err = r.bus.Broadcast(named(c.Command(), text))
		}
		if err != nil && !errors.Is(err, bus.ErrClosed) {
			r.log.Warn("a command is lost", "command", c.Command(), "error", err)
		}
	}
}

// correlationOf is the correlation id of the signal that set a command off, where the command says.
func correlationOf(c pipeline.Command) string {
	switch c := c.(type) {
	case pipeline.Dispatch:
		return c.CorrelationID
	case pipeline.Interrupt:
		return c.CorrelationID
	}
	return ""
}

// named is a command's JSON with its name in front of the other fields.
func named(name string, object []byte) []byte {
	head := []byte(`{"command":"` + name + `"`)
	if len(object) > len("{}") {
		head = append(head, ',')
	}
	return append(head, object[1:]...)
}

// Status implements [server.Run].
func (r *run) Status(ctx context.Context) (any, error) {
	s, err := r.runner.Status(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return runStatus{s, r.since.UnixMilli(), r.mistakes}, nil
}

// Switch implements [server.Run].
func (r *run) Switch(ctx context.Context, on bool) error {
	if on {
		return r.runner.Start(ctx)
	}
	return r.runner.Stop(ctx)
}

// Wiring implements [server.Run].
func (r *run) Wiring() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wiring
}

// WiringSchema implements [server.Run].
func (r *run) WiringSchema() []byte { return pipeline.Schema() }

// Rewire implements [server.Run]. Where there is a file it is written before the wiring is in force.
func (r *run) Rewire(ctx context.Context, text []byte) error {
	w, err := pipeline.Parse(text)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.put(ctx, w, text)
}

// put keeps a wiring, and puts it in force. mu is held.
func (r *run) put(ctx context.Context, w *pipeline.Wiring, text []byte) error {
	if r.file != "" {
		if err := write(r.file, text); err != nil {
			return fmt.Errorf("gateway: keep the wiring: %w", err)
		}
	}
	return r.load(ctx, w, text)
}

// unwire takes a source's wires out of the wiring: with them, nothing else would feed their types any more. What else stands
// in the wiring stays as it is.
func (r *run) unwire(ctx context.Context, source string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := without(source, r.wiring)
	if err != nil || text == nil {
		return err
	}
	w, err := pipeline.Parse(text)
	if err != nil {
		return err
	}
	return r.put(ctx, w, text)
}

// without is a wiring without the wires of a source; nil if it has none.
func without(source string, wiring []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	var wires []json.RawMessage
	err := json.Unmarshal(wiring, &all)
	if err == nil && all["wires"] != nil {
		err = json.Unmarshal(all["wires"], &wires)
	}
	if err != nil {
		return nil, fmt.Errorf("gateway: unwire a source: %w", err)
	}
	left := slices.DeleteFunc(slices.Clone(wires), func(text json.RawMessage) bool {
		var w struct{ FromZone, FromID string }
		return json.Unmarshal(text, &w) == nil && w.FromZone == string(pipeline.ZoneSignal) && w.FromID == source
	})
	if len(left) == len(wires) {
		return nil, nil
	}
	all["wires"], err = json.Marshal(left)
	if err != nil {
		return nil, fmt.Errorf("gateway: unwire a source: %w", err)
	}
	return json.MarshalIndent(all, "", "  ")
}

// load puts a wiring in force. mu is held.
func (r *run) load(ctx context.Context, w *pipeline.Wiring, text []byte) error {
	if err := r.runner.Load(ctx, w); err != nil {
		return err
	}
	r.wiring, r.since, r.mistakes = bytes.Clone(text), time.Now(), nil
	return nil
}

// write replaces a file as a whole.
func write(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".wiring-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// settle is how long a file that changes has to be left alone before it is read.
const settle = 50 * time.Millisecond

// watch reads the file again whenever it changes. It watches the folder, since editors put another file in its place.
func (r *run) watch(ctx context.Context) error {
	return watch.Folder{
		Path: filepath.Dir(r.file), Settle: settle,
		Concerns: func(e fsnotify.Event) bool { return filepath.Base(e.Name) == filepath.Base(r.file) },
		Changed:  func() bool { r.reload(ctx); return false },
		Missed:   func(err error) { r.log.Warn("watch the wiring", "error", err) },
	}.Run(ctx)
}

// reload puts the file's wiring in force, unless it is wrong: then what was there stays.
func (r *run) reload(ctx context.Context) {
	r.mu.Lock() // before it is read: what somebody puts there meanwhile is newer
	defer r.mu.Unlock()
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return // for a moment, or for good: what is in force stays
	}
	if err == nil && bytes.Equal(text, r.wiring) {
		r.mistakes = nil // as it was again
		return
	}
	var wiring *pipeline.Wiring
	if err == nil {
		wiring, err = pipeline.Parse(text)
	}
	if err == nil {
		err = r.load(ctx, wiring, text)
	}
	if err != nil {
		r.mistakes = mistakesOf(err)
		r.log.Error("the wiring is wrong; what was in force stays", "error", err)
		return
	}
	r.log.Info("the wiring was read again")
}

// mistakesOf lists what is wrong with a wiring, for who wrote it.
func mistakesOf(err error) []string {
	var theirs pipeline.Mistakes
	if errors.As(err, &theirs) {
		return theirs[:min(len(theirs), maxMistakes)]
	}
	return []string{"The file cannot be read."}
}

// Commands implements [server.Run].
func (r *run) Commands(ctx context.Context) (iter.Seq2[[]byte, error], error) {
	return r.bus.Commands(ctx)
}
