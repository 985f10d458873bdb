package silero

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Label is what people are shown as the name of this detector.
const Label = "Silero VAD 5"

var (
	// ErrNotBuilt comes from [New] and [Find] in a program that was built without cgo.
	ErrNotBuilt = errors.New("silero: this build cannot open ONNX Runtime: build with CGO_ENABLED=1")
	// ErrNoLibrary is wrapped by [New] and [Find] when there is no library; the error says where it was looked for.
	ErrNoLibrary = errors.New("no ONNX Runtime")
	// ErrNoModel is the same for the model.
	ErrNoModel = errors.New("no model")
)

// Files is where the library and the model lie. Its zero value finds them beside the program.
type Files struct {
	Library string // of ONNX Runtime; empty: beside the program, or where the system keeps libraries
	Model   string // empty: beside the program
}

const modelName = "silero_vad.onnx"

// libraryName is that of ONNX Runtime's shared library.
func libraryName() string {
	switch runtime.GOOS {
	case "darwin":
		return "libonnxruntime.dylib"
	case "windows":
		return "onnxruntime.dll"
	}
	return "libonnxruntime.so"
}

// libraryFolders is where systems put libraries.
var libraryFolders = []string{
	"/usr/local/lib",
	"/usr/lib",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/opt/homebrew/lib",
}

// Find completes f, or says which file is missing. It looks at a few names and loads nothing.
func Find(f Files) (Files, error) {
	if !built {
		return f, ErrNotBuilt
	}
	var beside []string
	if program, err := os.Executable(); err == nil {
		beside = []string{filepath.Dir(program)}
	}
	var err error
	if f.Library, err = find(f.Library, libraryName(), append(beside, libraryFolders...)); err != nil {
		return f, fmt.Errorf("silero: %w: %w: make build puts it there", ErrNoLibrary, err)
	}
	if f.Model, err = find(f.Model, modelName, beside); err != nil {
		return f, fmt.Errorf("silero: %w: %w: make build puts it there", ErrNoModel, err)
	}
	return f, nil
}

// find returns the path that was given, or the first of the folders that has the file.
func find(path, name string, folders []string) (string, error) {
	if path != "" {
		if !isFile(path) {
			return "", fmt.Errorf("%s is no file", path)
		}
		return path, nil
	}
	for _, folder := range folders {
		if p := filepath.Join(folder, name); isFile(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("no %s in %v", name, folders)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
