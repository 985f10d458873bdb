//go:build !(cgo && opus)

package opus

import "vela/session/speech"

// New returns [ErrNotBuilt].
func New() (speech.Codec, error) { return nil, ErrNotBuilt }
