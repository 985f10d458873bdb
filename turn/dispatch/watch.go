package dispatch

import (
	"time"

	"github.com/fsnotify/fsnotify"
)

// watch says when files of some folders may have changed: when the system tells, and from time to time anyway, since it
// cannot everywhere (a network's folder) and not always (a user may have so many watches). It starts one goroutine,
// which close waits for.
type watch struct {
	bell  chan struct{} // rings once for any number of changes that nobody has looked at
	files *fsnotify.Watcher
	stop  chan struct{}
	ended chan struct{}
}

func listen(notify func() (*fsnotify.Watcher, error), poll time.Duration) *watch {
	w := &watch{bell: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	var events <-chan fsnotify.Event
	var errs <-chan error
	if files, err := notify(); err == nil {
		w.files, events, errs = files, files.Events, files.Errors
	}
	go w.run(events, errs, poll)
	return w
}

func (w *watch) run(events <-chan fsnotify.Event, errs <-chan error, poll time.Duration) {
	defer close(w.ended)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		case _, open := <-events:
			if !open {
				events = nil
			}
		case _, open := <-errs: // such as events that were lost
			if !open {
				errs = nil
			}
		}
		select {
		case w.bell <- struct{}{}:
		default:
		}
	}
}

// add watches a folder too. It may be called again for the same one.
func (w *watch) add(path string) {
	if w.files != nil {
		_ = w.files.Add(path) // else the poll sees it
	}
}

// remove watches a folder no longer.
func (w *watch) remove(path string) {
	if w.files != nil {
		_ = w.files.Remove(path) // it may be gone, or never have been watched
	}
}

func (w *watch) close() {
	close(w.stop)
	<-w.ended
	if w.files != nil {
		_ = w.files.Close() // waits for its goroutine; there is nothing left to lose
	}
}
