package sherpa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onnxOf is a file that says so much of itself, with a graph of so many zeros, which nobody runs.
func onnxOf(says map[string]string, graph int) []byte {
	b := []byte{0x08, 8} // ir_version
	b = append(binary.AppendUvarint(append(b, 0x3a), uint64(graph)), make([]byte, graph)...)
	for k, v := range says {
		entry := append(append([]byte{0x0a, byte(len(k))}, k...), append([]byte{0x12, byte(len(v))}, v...)...)
		b = append(append(b, 0x72, byte(len(entry))), entry...)
	}
	return b
}

var (
	streams  = map[string]string{"model_type": "zipformer2", "decode_chunk_len": "32", "T": "45"}
	wholes   = map[string]string{"model_type": "zipformer2"}
	whispers = map[string]string{"model_type": "whisper-tiny.en", "n_mels": "80"}
)

// folder has an encoder that says so much of itself, and other files.
func folder(t *testing.T, encoder string, says map[string]string, others ...string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if encoder != "" {
		write(encoder, onnxOf(says, 5000))
	}
	for _, name := range others {
		b := []byte("x")
		if strings.HasSuffix(name, ".onnx") {
			b = onnxOf(nil, 100)
		}
		write(name, b)
	}
	return dir
}

func TestModels(t *testing.T) {
	for name, test := range map[string]struct {
		dir  string
		want model
	}{
		"streaming": {
			folder(t, "encoder-epoch-99-avg-1-chunk-16-left-128.onnx", streams, "decoder-epoch-99-avg-1-chunk-16-left-128.onnx",
				"joiner-epoch-99-avg-1-chunk-16-left-128.onnx", "tokens.txt", "README.md", "bpe.model"),
			model{streaming, "encoder-epoch-99-avg-1-chunk-16-left-128.onnx", "decoder-epoch-99-avg-1-chunk-16-left-128.onnx",
				"joiner-epoch-99-avg-1-chunk-16-left-128.onnx", "tokens.txt"},
		},
		"int8, and partners by name": {
			folder(t, "encoder-left-64.int8.onnx", streams, "encoder-left-128.onnx", "decoder-left-128.int8.onnx", "decoder-left-64.int8.onnx",
				"joiner-left-128.onnx", "joiner-left-64.onnx", "tokens.txt"),
			model{streaming, "encoder-left-64.int8.onnx", "decoder-left-64.int8.onnx", "joiner-left-128.onnx", "tokens.txt"},
		},
		"whole": {
			folder(t, "encoder.onnx", wholes, "decoder.onnx", "joiner.onnx", "tokens.txt"),
			model{transducer, "encoder.onnx", "decoder.onnx", "joiner.onnx", "tokens.txt"},
		},
		"whisper": {
			folder(t, "tiny.en-encoder.int8.onnx", whispers, "tiny.en-encoder.onnx", "tiny.en-decoder.onnx", "tiny.en-decoder.int8.onnx", "tiny.en-tokens.txt"),
			model{whisper, "tiny.en-encoder.int8.onnx", "tiny.en-decoder.int8.onnx", "", "tiny.en-tokens.txt"},
		},
	} {
		for _, file := range []*string{&test.want.encoder, &test.want.decoder, &test.want.joiner, &test.want.tokens} {
			if *file != "" {
				*file = filepath.Join(test.dir, *file)
			}
		}
		if got, err := findModel(test.dir); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, test.want)
		}
	}
}

func TestFoldersWithoutAModel(t *testing.T) {
	empty := folder(t, "encoder.onnx", streams, "decoder.onnx", "joiner.onnx")
	if err := os.WriteFile(filepath.Join(empty, "tokens.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cut := func(name string) string {
		dir := folder(t, "encoder.onnx", streams, "decoder.onnx", "joiner.onnx", "tokens.txt")
		if err := os.Truncate(filepath.Join(dir, name), 90); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for dir, words := range map[string]string{
		cut("encoder.onnx"):                            "encoder.onnx: it is no ONNX model",
		cut("decoder.onnx"):                            "decoder.onnx: it is no ONNX model",
		cut("joiner.onnx"):                             "joiner.onnx: it is no ONNX model",
		filepath.Join(t.TempDir(), "nowhere"):          "no such file or directory",
		t.TempDir():                                    "there is no encoder*.onnx",
		folder(t, "", nil, "model.onnx", "tokens.txt"): "there is no encoder*.onnx",
		folder(t, "encoder.onnx", streams, "joiner.onnx", "tokens.txt"):                                     "there is no decoder*.onnx",
		folder(t, "encoder.onnx", streams, "decoder.onnx", "joiner.onnx"):                                   "there is no tokens.txt",
		folder(t, "encoder.onnx", streams, "decoder.onnx", "tokens.txt"):                                    "there is no joiner*.onnx",
		folder(t, "encoder.onnx", whispers, "decoder.onnx", "joiner.onnx", "tokens.txt"):                    "of whisper, which has no joiner",
		folder(t, "encoder.onnx", map[string]string{"a": "b"}, "decoder.onnx", "joiner.onnx", "tokens.txt"): "does not say what it is",
		folder(t, "encoder.onnx", nil, "decoder.onnx", "joiner.onnx", "tokens.txt"):                         "does not say what it is",
		empty: "tokens.txt is no file, or empty",
	} {
		if m, err := findModel(dir); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v, %v, want an error with %q", m, err, words)
		}
	}
}

func TestWhatAModelSaysOfItself(t *testing.T) {
	for _, graph := range []int{0, 1, 100, 600, 1 << 20} {
		got, err := readMetadata(bytes.NewReader(onnxOf(streams, graph)))
		if err != nil || !maps.Equal(got, streams) {
			t.Errorf("behind a graph of %d bytes: %v, %v", graph, got, err)
		}
	}
	whole := onnxOf(streams, 100)
	for n := range len(whole) {
		if got, err := readMetadata(bytes.NewReader(whole[:n])); err == nil && len(got) >= len(streams) || err == nil && n > 2 && n < 104 {
			t.Errorf("cut after %d of %d bytes: %v", n, len(whole), got)
		}
	}
	lies := append(binary.AppendUvarint([]byte{0x3a}, 1<<62), whole...)
	if got, err := readMetadata(bytes.NewReader(lies)); err == nil {
		t.Errorf("with a graph longer than the file: %v", got)
	}
	entry := append(binary.AppendUvarint([]byte{0x72}, maxMetadata+1), make([]byte, maxMetadata+1)...)
	if got, err := readMetadata(bytes.NewReader(append(entry, whole...))); err == nil {
		t.Errorf("with an endless entry: %d entries", len(got))
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add(onnxOf(streams, 100))
	f.Add([]byte{0x72, 2, 0x0a, 0})
	f.Add([]byte("MZ this is no model"))
	f.Fuzz(func(t *testing.T, b []byte) {
		found, err := readMetadata(bytes.NewReader(b))
		n := 0
		for k, v := range found {
			n += len(k) + len(v)
		}
		if err == nil && n > len(b) || err != nil && found != nil {
			t.Errorf("%v, %v", found, err)
		}
	})
}
