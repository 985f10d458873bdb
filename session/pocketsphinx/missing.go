//go:build !(cgo && pocketsphinx)

package pocketsphinx

const built = false

func loadDecoder(model) (decoder, error) { return nil, ErrNotBuilt }
