//go:build !(cgo && pocketsphinx)

package pocketsphinx

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutTheLibrary(t *testing.T) {
	cfg := Config{Model: fakeModel(t)}
	if err := Available(cfg); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("Available: %v", err)
	}
	r, err := New(cfg)
	if r != nil || !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "-tags pocketsphinx") {
		t.Errorf("New: %v, %v, want an error that says how to build it", r, err)
	}
}
