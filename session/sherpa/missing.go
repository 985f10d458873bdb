//go:build !(cgo && sherpa && linux)

package sherpa

const built = false

func load(model, string) (library, error) { return nil, ErrNotBuilt }
