//go:build !(cgo && sherpa && linux)

package sherpa

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutTheLibrary(t *testing.T) {
	cfg := Config{Model: folder(t, "encoder.onnx", streams, "decoder.onnx", "joiner.onnx", "tokens.txt")}
	if err := Available(cfg); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("Available: %v", err)
	}
	if r, err := New(cfg); r != nil || !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "SHERPA=1") {
		t.Errorf("New: %v, %v, want an error that says how to build it", r, err)
	}
}
