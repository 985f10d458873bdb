//go:build !linux && !darwin

package bus

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// lockDir only leaves a file: on this system nothing keeps a second process away.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("bus: lock the folder: %w", err)
	}
	return f, nil
}

// space cannot be known here; a full disk shows when a write fails.
func space(string) (free, size uint64, err error) { return math.MaxInt64, math.MaxInt64, nil }
