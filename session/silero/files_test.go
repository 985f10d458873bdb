package silero

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	if !built {
		if _, err := Find(Files{}); !errors.Is(err, ErrNotBuilt) {
			t.Errorf("a build without cgo says %v", err)
		}
		return
	}
	dir := t.TempDir()
	library, model := filepath.Join(dir, libraryName()), filepath.Join(dir, modelName)
	for _, name := range []string{library, model} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		ask  Files
		want error
		says string
	}{
		{"both are given", Files{library, model}, nil, ""},
		{"the library is not there", Files{filepath.Join(dir, "nothing"), model}, ErrNoLibrary, "nothing is no file"},
		{"the library is a folder", Files{dir, model}, ErrNoLibrary, "is no file"},
		{"the model is not there", Files{library, filepath.Join(dir, "nothing")}, ErrNoModel, "nothing is no file"},
		{"no model beside the program", Files{library, ""}, ErrNoModel, "no " + modelName + " in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(c.ask)
			if c.want == nil && (err != nil || got != c.ask) {
				t.Errorf("found %+v, %v", got, err)
			}
			if c.want != nil && (!errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if path, err := find("", modelName, []string{filepath.Join(dir, "nothing"), dir}); path != model || err != nil {
		t.Errorf("in the second folder it is found as %q, %v", path, err)
	}
}
