package pocketsphinx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeModel is a folder with all files of a model, empty.
func fakeModel(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	m := modelIn(folder)
	if err := os.Mkdir(m.acoustic, 0o700); err != nil {
		t.Fatal(err)
	}
	files := []string{m.language, m.dictionary}
	for _, name := range acousticFiles {
		files = append(files, filepath.Join(m.acoustic, name))
	}
	for _, file := range files {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestFindModel(t *testing.T) {
	folder := fakeModel(t)
	if got, err := findModel(folder); err != nil || got != modelIn(folder) {
		t.Errorf("a complete model: %+v, %v", got, err)
	}
	for _, name := range []string{"en-us.lm.bin", "en-us/means", "cmudict-en-us.dict"} {
		folder := fakeModel(t)
		gone := filepath.Join(folder, name)
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
		if _, err := findModel(folder); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), gone) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
