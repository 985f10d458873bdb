package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWalkStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	w := walk{folder: &folder{root: root}, visit: func(string, fs.DirEntry) error { seen++; cancel(); return nil }}
	if err := w.run(ctx, "."); !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("after %d files: %v", seen, err)
	}
}
