package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vela/session/speech"
)

// TestHear: every ear that is there hears every file, in their order; one that fails is told.
func TestHear(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/broken") {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": strings.Split(r.URL.Path, "/")[1]})
	}))
	defer server.Close()
	config := filepath.Join(dir, "vela.yaml")
	write := func(ears string) {
		if err := os.WriteFile(config, []byte("ears:\n"+ears), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var files []string
	for _, name := range []string{"a.wav", "b.wav"} {
		name = filepath.Join(dir, name)
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := speech.WriteWAV(f, 8000, make([]int16, 4000)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	ear := func(label, path string) string {
		return "  - {kind: whisper, label: " + label + ", url: \"" + server.URL + path + "\"}\n"
	}

	write(ear("one", "/abba") + "  - {kind: whisper, url: \"http://127.0.0.1:1\", key_env: VELA_TEST_NOT_SET}\n" + ear("two", "/soda"))
	code, out, errs := vela(t, append([]string{"hear", "--config", config}, files...)...)
	want := files[0] + ": one: abba\n" + files[1] + ": one: abba\n" + files[0] + ": two: soda\n" + files[1] + ": two: soda\n"
	if out != want || code != 0 {
		t.Errorf("exit %d, %s\n%swant\n%s", code, errs, out, want)
	}

	write(ear("one", "/abba") + ear("lame", "/broken"))
	code, out, _ = vela(t, "hear", "--json", "--config", config, files[0])
	var list []heard
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var h heard
		if err := d.Decode(&h); err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	if code != 1 || len(list) != 2 || list[0].Error != "" || list[0].SpeechMs != 500 || list[1].Ear != "lame" || list[1].Error == "" {
		t.Errorf("exit %d, %+v", code, list)
	}

	write("  - {kind: whisper, url: \"http://127.0.0.1:1\", key_env: VELA_TEST_NOT_SET}\n")
	if code, _, errs := vela(t, "hear", "--config", config, files[0]); code != 1 || !strings.Contains(errs, "vela engines") {
		t.Errorf("without an ear: exit %d, %s", code, errs)
	}
}
