package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A write that is stopped at the last moment leaves the file as it was, and nothing beside it.
func TestStoppedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &folder{root: root}
	for _, name := range []string{"a", "b"} {
		if err := problem(name, f.put(ctx, name, "after")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("there is %v, %v", entries, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "before" {
		t.Errorf("it has %q, %v", b, err)
	}
}
