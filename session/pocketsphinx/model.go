package pocketsphinx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// modelFolders is where the packages of Debian, Fedora, source builds and Homebrew put the US English model.
var modelFolders = []string{
	"/usr/share/pocketsphinx/model/en-us",
	"/usr/local/share/pocketsphinx/model/en-us",
	"/opt/homebrew/share/pocketsphinx/model/en-us",
	"/opt/local/share/pocketsphinx/model/en-us",
}

// model names the three parts of a model: all that a decoder reads.
type model struct {
	acoustic   string // folder
	language   string // file
	dictionary string // file
}

// acousticFiles must all be there: the library ends the whole process over a missing one.
var acousticFiles = []string{"feat.params", "mdef", "means", "noisedict", "sendump", "transition_matrices", "variances"}

// findModel returns the first complete model, or an error that wraps [ErrNoModel].
func findModel(folder string) (model, error) {
	folders := modelFolders
	if folder != "" {
		folders = []string{folder}
	}
	var why []string
	for _, f := range folders {
		m := modelIn(f)
		missing := m.missing()
		if missing == "" {
			return m, nil
		}
		why = append(why, missing)
	}
	return model{}, fmt.Errorf("pocketsphinx: %w: not there: %s; install the package pocketsphinx-en-us or name the model's folder",
		ErrNoModel, strings.Join(why, ", "))
}

func modelIn(folder string) model {
	return model{
		acoustic:   filepath.Join(folder, "en-us"),
		language:   filepath.Join(folder, "en-us.lm.bin"),
		dictionary: filepath.Join(folder, "cmudict-en-us.dict"),
	}
}

// missing is the first file of the model that is not there, or empty.
func (m model) missing() string {
	files := []string{m.language, m.dictionary}
	for _, name := range acousticFiles {
		files = append(files, filepath.Join(m.acoustic, name))
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}
