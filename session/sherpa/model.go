package sherpa

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoModel is wrapped by [New] and [Available] when a folder holds no model that can be used; the error says what is missing.
var ErrNoModel = errors.New("no model")

// kind is what the library is asked for. It hears a transducer while it is spoken, or when it is over; whisper when it is over.
type kind int

const (
	streaming kind = iota
	transducer
	whisper
)

// model is the files of one, as sherpa-onnx publishes them.
type model struct {
	kind                             kind
	encoder, decoder, joiner, tokens string
}

// findModel looks at the names of a folder, and at what its encoder says of itself.
func findModel(folder string) (model, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return model{}, fmt.Errorf("sherpa: %w: %w", ErrNoModel, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	m, missing := modelOf(names)
	if missing != "" {
		return model{}, fmt.Errorf("sherpa: %w in %s: there is no %s; it takes the files of a transducer (encoder, decoder, joiner) or of "+
			"whisper (encoder, decoder), and their tokens.txt", ErrNoModel, folder, missing)
	}
	for _, file := range []*string{&m.encoder, &m.decoder, &m.joiner, &m.tokens} {
		if *file == "" {
			continue
		}
		*file = filepath.Join(folder, *file)
		if info, err := os.Stat(*file); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return model{}, fmt.Errorf("sherpa: %w: %s is no file, or empty", ErrNoModel, *file)
		}
	}
	return m.checked()
}

// modelOf picks the files of a model; missing is what there is none of. Where there are several, as for int8, the smallest
// numbers are taken: they are made for a processor.
func modelOf(names []string) (m model, missing string) {
	slices.Sort(names)
	if m.encoder = pick(names, "encoder", ".onnx"); m.encoder == "" {
		return m, "encoder*.onnx"
	}
	if m.decoder = partner(names, m.encoder, "decoder"); m.decoder == "" {
		return m, "decoder*.onnx"
	}
	if m.tokens = pick(names, "tokens", ".txt"); m.tokens == "" {
		return m, "tokens.txt"
	}
	m.kind = transducer
	if m.joiner = partner(names, m.encoder, "joiner"); m.joiner == "" {
		m.kind = whisper
	}
	return m, ""
}

// pick is the file whose name has the word and the ending; one of int8 comes first.
func pick(names []string, word, ending string) string {
	fits := func(name string) bool { return strings.Contains(name, word) && strings.HasSuffix(name, ending) }
	if i := slices.IndexFunc(names, func(name string) bool { return fits(name) && strings.Contains(name, ".int8.") }); i >= 0 {
		return names[i]
	}
	if i := slices.IndexFunc(names, fits); i >= 0 {
		return names[i]
	}
	return ""
}

// partner is the part of a model that goes with its encoder: the one with the same name but for the word, or any.
func partner(names []string, encoder, word string) string {
	if same := strings.Replace(encoder, "encoder", word, 1); slices.Contains(names, same) {
		return same
	}
	return pick(names, word, ".onnx")
}

// checked is the model as its encoder says it is.
func (m model) checked() (model, error) {
	says, err := metadata(m.encoder)
	if err != nil {
		return model{}, fmt.Errorf("sherpa: %w: %s: %w", ErrNoModel, m.encoder, err)
	}
	for _, part := range []string{m.decoder, m.joiner} {
		if part == "" {
			continue
		}
		if _, err := metadata(part); err != nil {
			return model{}, fmt.Errorf("sherpa: %w: %s: %w", ErrNoModel, part, err)
		}
	}
	typ := says["model_type"]
	_, chunks := says["decode_chunk_len"] // how much a streaming encoder takes at a time
	switch isWhisper := strings.HasPrefix(typ, "whisper"); {
	case typ == "" && !chunks:
		return model{}, fmt.Errorf("sherpa: %w: %s does not say what it is: it was not made for sherpa-onnx", ErrNoModel, m.encoder)
	case isWhisper && m.kind != whisper:
		return model{}, fmt.Errorf("sherpa: %w: %s is of whisper, which has no joiner: keep each model in a folder of its own", ErrNoModel, m.encoder)
	case !isWhisper && m.kind == whisper:
		return model{}, fmt.Errorf("sherpa: %w: there is no joiner*.onnx beside %s", ErrNoModel, m.encoder)
	case chunks:
		m.kind = streaming
	}
	return m, nil
}
