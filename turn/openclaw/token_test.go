package openclaw

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocalToken(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("home/.openclaw/openclaw.json", `{"gateway":{"mode":"local","auth":{"mode":"token","token":"in-home"}}}`)
	write("moved/.openclaw/openclaw.json", `{"gateway":{"auth":{"token":"in-moved-home"}}}`)
	write("state/openclaw.json", `{"gateway":{"auth":{"token":"in-state"}}}`)
	named := func(text string) map[string]string {
		return map[string]string{"OPENCLAW_CONFIG_PATH": write("named.json", text), "MY_TOKEN": "from-variable"}
	}
	home, moved, state := filepath.Join(dir, "home"), filepath.Join(dir, "moved"), filepath.Join(dir, "state")
	for _, x := range []struct {
		name string
		env  map[string]string
		want string // empty: none is found
	}{
		{"in the variable", map[string]string{"OPENCLAW_GATEWAY_TOKEN": "in-env", "HOME": home}, "in-env"},
		{"in the home folder", map[string]string{"HOME": home}, "in-home"},
		{"in a home folder of OpenClaw's own", map[string]string{"HOME": home, "OPENCLAW_HOME": moved}, "in-moved-home"},
		{"in a folder of state", map[string]string{"HOME": home, "OPENCLAW_HOME": moved, "OPENCLAW_STATE_DIR": state}, "in-state"},
		{"in a file by name", map[string]string{"OPENCLAW_STATE_DIR": state, "OPENCLAW_CONFIG_PATH": plain}, "in-home"},
		{"nowhere", nil, ""},
		{"no file", map[string]string{"HOME": dir}, ""},
	} {
		check(t, x.name, x.env, x.want, dir)
	}
	check(t, "by reference", named(`{"gateway":{"auth":{"token":"${MY_TOKEN}"}}}`), "from-variable", dir)
	check(t, "by reference to nothing", named(`{"gateway":{"auth":{"token":"${NO_TOKEN}"}}}`), "", dir)
	check(t, "by a longer reference", named(`{"gateway":{"auth":{"token":"secret-${MY_TOKEN}"}}}`), "", dir)
	check(t, "by a reference to a secret", named(`{"gateway":{"auth":{"token":{"source":"exec","id":"secret"}}}}`), "", dir)
	check(t, "no token", named(`{"gateway":{"auth":{"mode":"none"}}}`), "", dir)
	check(t, "JSON5", named(`{gateway:{auth:{token:'secret'}}} // mine`), "", dir)
	check(t, "too long", named(`{"x":"`+strings.Repeat("x", maxSettings)+`","gateway":{"auth":{"token":"secret"}}}`), "", dir)
}

func check(t *testing.T, name string, env map[string]string, want, dir string) {
	t.Helper()
	got, err := LocalToken(func(key string) string { return env[key] })
	if got != want || (err == nil) != (want != "") {
		t.Errorf("%s: %q, %v; want %q", name, got, err, want)
	}
	if err != nil && (err.Error() != errNoToken.words || strings.Contains(logged(err).Error(), "secret") || strings.Contains(err.Error(), dir)) {
		t.Errorf("%s: told as %q, logged as %q", name, err, logged(err))
	}
}
