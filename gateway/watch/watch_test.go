package watch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// ours says that a change concerns what begins with this word.
func ours(e fsnotify.Event) bool { return strings.HasPrefix(filepath.Base(e.Name), "ours") }

// run watches a folder until the test ends.
func run(t *testing.T, f Folder) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	changed := f.Changed
	f.Changed = func() bool { return ctx.Err() == nil && changed() }
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// take waits for something that happens by itself.
func take[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("no " + what)
		panic("unreachable")
	}
}

func mkdir(t *testing.T, path ...string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(path...), 0o700); err != nil { // one change, where a file is several
		t.Fatal(err)
	}
}

func TestWhatDoesNotConcernItIsNotLookedAt(t *testing.T) {
	dir, looks, theirs := t.TempDir(), make(chan struct{}, 100), make(chan struct{}, 100)
	run(t, Folder{Path: dir, Settle: time.Millisecond,
		Concerns: func(e fsnotify.Event) bool {
			if !ours(e) {
				theirs <- struct{}{}
			}
			return ours(e)
		},
		Changed: func() bool { looks <- struct{}{}; return false },
	})
	take(t, "look at the beginning", looks)
	mkdir(t, dir, "theirs")
	take(t, "word of theirs", theirs)
	select {
	case <-looks:
		t.Error("what does not concern it was looked at")
	case <-time.After(20 * time.Millisecond): // no look is what is right, however long it takes
	}
	mkdir(t, dir, "ours")
	take(t, "look at ours", looks)
}

func TestItLooksAgainWhereItIsAskedTo(t *testing.T) {
	looks, again := make(chan struct{}, 100), 2
	run(t, Folder{Path: t.TempDir(), Settle: time.Millisecond, Concerns: ours, Changed: func() bool {
		looks <- struct{}{}
		again--
		return again >= 0
	}})
	for range 3 {
		take(t, "look", looks)
	}
}

func TestAFolderWithinComesAndGoes(t *testing.T) {
	dir := t.TempDir()
	within, seen := filepath.Join(dir, "ours"), make(chan string, 100)
	run(t, Folder{Path: dir, Within: within, Settle: time.Millisecond, Concerns: ours, Changed: func() bool {
		entries, err := os.ReadDir(within)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			seen <- "gone"
		case len(entries) == 0:
			seen <- "empty"
		default:
			seen <- entries[0].Name()
		}
		return false
	}})
	sees := func(want string) {
		t.Helper()
		for take(t, "look that sees "+want, seen) != want {
		}
	}
	sees("gone")
	for range 2 {
		mkdir(t, within)
		sees("empty")
		mkdir(t, within, "ours too")
		sees("ours too")
		if err := os.RemoveAll(within); err != nil {
			t.Fatal(err)
		}
		sees("gone")
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	err := Folder{Path: filepath.Join(t.TempDir(), "missing"), Concerns: ours, Changed: func() bool { return false }}.Run(t.Context())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
