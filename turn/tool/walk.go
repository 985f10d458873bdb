package tool

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// maxEntries bounds how many files and folders one walk looks at.
const maxEntries = 100_000

// walk is a look through the files below a folder, each folder's by name. It goes into no link, so it goes nowhere
// twice and never out, and into no .git. Folders that cannot be read are passed over.
type walk struct {
	folder *folder
	visit  func(p string, d fs.DirEntry) error // p has slashes
	seen   int
	more   bool // there was more to look at
}

// errEnough ends a walk that has found what it may.
var errEnough = errors.New("enough")

func (w *walk) run(ctx context.Context, start string) error {
	entries, err := w.list(start)
	if err != nil {
		return problem(start, err)
	}
	if err := w.below(ctx, start, entries); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

func (w *walk) below(ctx context.Context, dir string, entries []fs.DirEntry) error {
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := path.Join(dir, d.Name())
		if err := w.visit(p, d); err != nil {
			return err
		}
		if !d.IsDir() || d.Name() == ".git" {
			continue
		}
		if inner, err := w.list(p); err == nil {
			if err := w.below(ctx, p, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// list reads a folder, as much of it as the walk may still look at.
func (w *walk) list(dir string) ([]fs.DirEntry, error) {
	left := maxEntries - w.seen
	if left <= 0 {
		w.more = true
		return nil, nil
	}
	file, err := w.folder.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	entries, err := file.ReadDir(left + 1)
	if len(entries) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > left {
		entries, w.more = entries[:left], true
	}
	w.seen += len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// pattern checks a pattern for paths. How often its alternatives branch is bounded: each branch is tried on each path.
func pattern(name, p string) error {
	switch {
	case len(p) > 500:
		return say(nil, "The %s is longer than 500 bytes.", name)
	case strings.Count(p, "{") > 3 || strings.Count(p, ",") > 32:
		return say(nil, "There are too many alternatives in the %s.", name)
	case !doublestar.ValidatePattern(p):
		return say(nil, "The %s is not well-formed. It may be such as **/*.go, notes/*.md or *.{ts,tsx}.", name)
	}
	return nil
}
