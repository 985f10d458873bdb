//go:build cgo && sherpa && linux

package sherpa

import (
	"errors"
	"testing"
)

// What the library makes of a model cannot be tested without one; that it is never asked to read what is none can.
func TestWithTheLibrary(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/nowhere", folder(t, "encoder.onnx", nil, "decoder.onnx", "joiner.onnx", "tokens.txt")} {
		if err := Available(Config{Model: dir}); !errors.Is(err, ErrNoModel) {
			t.Errorf("Available: %v", err)
		}
		if r, err := New(Config{Model: dir}); r != nil || !errors.Is(err, ErrNoModel) {
			t.Errorf("New: %v, %v", r, err)
		}
	}
	if err := Available(Config{Model: folder(t, "encoder.onnx", streams, "decoder.onnx", "joiner.onnx", "tokens.txt")}); err != nil {
		t.Errorf("of a model: %v", err)
	}
}
