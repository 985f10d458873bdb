//go:build !cgo

package silero

const built = false

// Engine is what [New] would make.
type Engine struct{}

// Stream is what [Engine.Stream] would make.
type Stream struct{}

// New returns [ErrNotBuilt].
func New(Files) (*Engine, error) { return nil, ErrNotBuilt }

// Stream is never called: there is no Engine.
func (*Engine) Stream() *Stream { return nil }

// Speech is never called: there is no Stream.
func (*Stream) Speech([]int16) (float32, error) { return 0, ErrNotBuilt }
