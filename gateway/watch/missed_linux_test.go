package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// More changes than the system keeps: it tells that it has lost some, and one of them may have concerned us.
func TestChangesThatTheSystemLost(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	dir, looks, goOn, missed := t.TempDir(), make(chan struct{}), make(chan struct{}), make(chan error, 100)
	mkdir(t, dir, "one")
	mkdir(t, dir, "other")
	run(t, Folder{Path: dir, Settle: time.Millisecond, Concerns: ours,
		Changed: func() bool {
			select {
			case looks <- struct{}{}:
			case <-t.Context().Done():
			}
			select {
			case <-goOn:
			case <-t.Context().Done():
			}
			return false
		},
		Missed: func(err error) { missed <- err },
	})
	take(t, "look at the beginning", looks)
	for range most { // in turns, since the same change twice is one
		for _, name := range []string{"one", "other"} {
			if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	goOn <- struct{}{}
	if err := take(t, "word of the lost changes", missed); !errors.Is(err, fsnotify.ErrEventOverflow) {
		t.Error(err)
	}
	take(t, "look for what was lost", looks)
	close(goOn)
}
