// Package watch tells when a folder has changed: at once where the system tells, and not before it has been left alone for
// a while, since an editor makes several changes of one, and a device comes as a file that nobody may read yet.
//
// It is a package of its own since the file of the wiring (package gateway) and MIDI devices (package midi, which gateway
// imports) are watched alike. Package turn/dispatch watches otherwise: it looks from time to time as well, since its
// folders may lie on a network, and has nobody wait.
package watch

import (
	"context"
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Folder is a folder to be watched, with the files in it but not with those of its folders. All functions are called from
// the goroutine of [Folder.Run].
type Folder struct {
	Path     string                    // has to be there
	Within   string                    // a folder in it that may come and go, and is watched too while it is there; empty: none
	Settle   time.Duration             // how long it is left alone before Changed is called
	Concerns func(fsnotify.Event) bool // says which changes count; the others disturb nothing
	Changed  func() (again bool)       // called at the beginning, and after what concerns it; again asks for another call, after Settle
	Missed   func(error)               // told why changes may have gone unnoticed; Changed is called then, too. nil: nobody is told
}

// Run watches until ctx is done, which is no error. It returns an error when the folder cannot be watched, or not any more.
func (f Folder) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(f.Path); err != nil {
		return err
	}
	f.within(w)
	look := time.NewTimer(0) // there may have been changes before it was watched
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events:
			if !ok {
				return errors.New("watch: the system tells no more")
			}
			if e.Name == f.Within && e.Has(fsnotify.Create) {
				f.within(w)
			}
			if f.Concerns(e) {
				look.Reset(f.Settle)
			}
		case err := <-w.Errors:
			if f.Missed != nil {
				f.Missed(err)
			}
			look.Reset(f.Settle)
		case <-look.C:
			if f.Changed() {
				look.Reset(f.Settle)
			}
		}
	}
}

// within watches the folder within, if it is there. One that cannot be watched stays as it was last seen.
func (f Folder) within(w *fsnotify.Watcher) {
	if f.Within != "" {
		_ = w.Add(f.Within)
	}
}
