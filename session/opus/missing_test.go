//go:build !(cgo && opus)

package opus

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutTheLibrary(t *testing.T) {
	codec, err := New()
	if codec != nil || !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "-tags 'opus nolibopusfile'") {
		t.Errorf("New: %v, %v, want an error that says how to build it", codec, err)
	}
}
