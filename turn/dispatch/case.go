package dispatch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const signalFile = "signal.json"

// folder is that of one case. It belongs to the turn that made it.
type folder struct {
	caseID string
	path   string // absolute
	dir    *os.Root
	suite  *suite
	close  func()
}

// dispatch is one step of a case, from waiting to done or error.
type dispatch struct {
	Signal
	dir *os.Root
}

// dispatch takes the next dispatch_id. Nothing is written yet.
func (f *folder) dispatch(step Step) (*dispatch, error) {
	f.suite.mu.Lock()
	defer f.suite.mu.Unlock()
	if f.suite.last+1 >= absurd {
		return nil, errors.New("dispatch: no dispatch_id is left in this suite")
	}
	f.suite.last++
	about := step.about()
	return &dispatch{dir: f.dir, Signal: Signal{
		Status: Waiting, DispatchID: f.suite.last, CaseID: f.caseID, Step: step,
		PromptPath: filepath.Join(f.path, about.prompt), ArtifactPath: filepath.Join(f.path, about.artifact),
		Timestamp: time.Now().UTC().Format(time.RFC3339),
	}}, nil
}

// ask writes the prompt, and then the signal that it is there.
func (d *dispatch) ask(p prompt) error {
	text, err := p.markdown()
	if err != nil {
		return err
	}
	if err := writeFile(d.dir, filepath.Base(d.PromptPath), text); err != nil {
		return err
	}
	return d.write(Waiting, "")
}

// write puts the signal into its file.
func (d *dispatch) write(s Status, problem string) error {
	d.Status, d.Error = s, problem
	b, err := d.encode()
	if err != nil {
		return err
	}
	return writeFile(d.dir, signalFile, b)
}

// withdrawn says whether the responder has given up, and puts a signal back that is not ours any more. The package
// comment says when.
func (d *dispatch) withdrawn() error {
	b, err := readFile(d.dir, signalFile, maxSignal)
	if errors.Is(err, fs.ErrNotExist) {
		return d.putBack()
	}
	if err != nil {
		return nil // being replaced; the time-out counts
	}
	s, err := decodeSignal(b)
	switch {
	case err != nil:
		return nil
	case s.Status == Failed && !namesDispatch(b): // it can only be about this one, and is completed
		d.Signal.Error = s.Error
		return reported(d.Signal, cmp.Or(brief(s.Error), "the responder gave no reason"))
	case s.DispatchID != d.DispatchID:
		return d.putBack()
	case s.Status == Failed:
		d.Signal.Error = s.Error
		return reported(d.Signal, "")
	}
	return nil
}

func (d *dispatch) putBack() error {
	if err := d.write(Waiting, ""); err != nil {
		return unusable(err)
	}
	return nil
}

// artifact returns the data that answers this dispatch, or errNotYet or errInvalid.
func (d *dispatch) artifact() (json.RawMessage, error) {
	b, err := readFile(d.dir, d.Step.Artifact(), maxArtifact)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotYet
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return unwrap(b, d.DispatchID)
}
