package tap

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const hookURL = "http://127.0.0.1:8080/api/tap/hook"

// project is a folder .claude with these settings; empty: with none.
func project(t *testing.T, settings string) (folder, file string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), ".claude")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, settingsFile)
	if settings != "" {
		if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder, file
}

func hooksFor(folder string) *Hooks {
	return New(Config{
		Folder:  func() (string, bool) { return folder, folder != "" },
		URL:     func() (string, error) { return hookURL, nil },
		Program: "/opt/it's/vela",
	})
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func install(t *testing.T, h *Hooks) {
	t.Helper()
	if err := h.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, h *Hooks) {
	t.Helper()
	if err := h.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const userSettings = `{
	"permissions": {"allow": ["Bash(npm run *)"],  "deny": []},
	"hooks": {
		"PreToolUse": [
			{
				"matcher": "Bash",
				"hooks": [{"type": "command", "command": "./check.sh"}]
			}
		],
		"Notification": []
	},
	"big": 12345678901234567890.10
}
`

func TestHooksGoInBesideTheUsers(t *testing.T) {
	folder, file := project(t, userSettings)
	h := hooksFor(folder)
	install(t, h)
	text := contents(t, file)
	var got struct {
		Big   json.Number
		Hooks map[string][]group
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, userSettings[:strings.Index(userSettings, `				"hooks": [{`)]) || got.Big != "12345678901234567890.10" {
		t.Errorf("what was there was changed:\n%s", text)
	}
	post := entry{Type: "http", URL: hookURL, Headers: map[string]string{tokenHeader: h.token}, Timeout: hookTimeout, Tag: tag}
	for _, event := range events {
		groups := got.Hooks[event]
		if len(groups) == 0 || !reflect.DeepEqual(groups[len(groups)-1], group{[]entry{post}}) {
			t.Errorf("%s has %+v", event, groups)
		}
	}
	if g := got.Hooks["PreToolUse"]; len(g) != 2 || g[0].Hooks[0].Command != "./check.sh" {
		t.Errorf("the user's own hook: %+v", g)
	}
	start := entry{Type: "command", Command: `'/opt/it'\''s/vela' hook '` + file + `'`, Async: true, Timeout: hookTimeout, Tag: tag}
	if g := got.Hooks[commandEvent]; len(g) != 1 || !reflect.DeepEqual(g[0], group{[]entry{start}}) {
		t.Errorf("%s has %+v", commandEvent, g)
	}
	if want := "\n\t\t\"PostToolUse\": [\n\t\t\t{\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{\n\t\t\t\t\t\t\"type\": \"http\",\n"; !strings.Contains(text, want) {
		t.Errorf("it is not indented as the rest is:\n%s", text)
	}
	remove(t, h)
	if got := contents(t, file); got != userSettings {
		t.Errorf("afterwards it is\n%s", got)
	}
}

func TestAfterwardsTheFileIsAsBefore(t *testing.T) {
	for _, before := range []string{"{}", "{ }\n", "{\n}\n", `{"a":1}`, userSettings, `{"hooks":{}}`, `{"hooks":{"Stop":[]}}`,
		`{"allowedHttpHookUrls":["https://example.org/*","http://127.0.0.1:8080/*"],"disableAllHooks":false}`, "{\r\n  \"a\": 1\r\n}\r\n", "{\"a\":\"\xff\"}"} {
		folder, file := project(t, before)
		h := hooksFor(folder)
		install(t, h)
		install(t, h)
		if got := contents(t, file); strings.Count(got, tag) != len(events)+1 {
			t.Errorf("%q: installed twice it is %s", before, got)
		}
		remove(t, h)
		remove(t, h)
		if got := contents(t, file); got != before {
			t.Errorf("%q became %q", before, got)
		}
	}
}

// What Claude Code or its user writes meanwhile stays.
func TestAFileThatChangedMeanwhile(t *testing.T) {
	folder, file := project(t, userSettings)
	h := hooksFor(folder)
	install(t, h)
	rewrite := func(from, to string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Replace(contents(t, file), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(`"deny": []`, `"deny": ["Read(.env)"]`)
	install(t, h)
	if got := contents(t, file); strings.Count(got, tag) != len(events)+1 || !strings.Contains(got, "Read(.env)") {
		t.Errorf("installed again it is %s", got)
	}
	rewrite(`"big"`, `"small"`)
	remove(t, h)
	want := strings.Replace(strings.Replace(userSettings, `"deny": []`, `"deny": ["Read(.env)"]`, 1), `"big"`, `"small"`, 1)
	if got := contents(t, file); got != want {
		t.Errorf("afterwards it is\n%s", got)
	}
}

// A hook that somebody puts beside ours is not ours.
func TestAHookBesideOurs(t *testing.T) {
	folder, file := project(t, "{}")
	h := hooksFor(folder)
	install(t, h)
	var all map[string]any
	if err := json.Unmarshal([]byte(contents(t, file)), &all); err != nil {
		t.Fatal(err)
	}
	first := all["hooks"].(map[string]any)["Stop"].([]any)[0].(map[string]any)
	first["hooks"] = append(first["hooks"].([]any), map[string]any{"type": "command", "command": "mine"})
	text, _ := json.Marshal(all)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	remove(t, h)
	if got := contents(t, file); got != `{"hooks":{"Stop":[{"hooks":[{"command":"mine","type":"command"}]}]}}` {
		t.Errorf("afterwards it is %s", got)
	}
}

func TestWithoutAFile(t *testing.T) {
	folder, file := project(t, "")
	h := hooksFor(folder)
	install(t, h)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	remove(t, h)
	if list, err := os.ReadDir(folder); err != nil || len(list) != 0 {
		t.Errorf("%v are left, %v", list, err)
	}
	install(t, h)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	remove(t, h)
}

func TestAKilledGatewaysHooksAreReplaced(t *testing.T) {
	folder, file := project(t, userSettings)
	killed, next := hooksFor(folder), hooksFor(folder)
	install(t, killed)
	install(t, next)
	if got := contents(t, file); strings.Count(got, tag) != len(events)+1 || strings.Contains(got, killed.token) || !strings.Contains(got, next.token) {
		t.Errorf("the next one's hooks are %s", got)
	}
	remove(t, killed) // it was not killed, after all
	if got := contents(t, file); !strings.Contains(got, next.token) {
		t.Error("a gateway took the hooks of another one out")
	}
	remove(t, next)
	if got := contents(t, file); got != userSettings {
		t.Errorf("afterwards it is\n%s", got)
	}
}

// The token is for the user alone, and so is the file as long as it is in it.
func TestWhoMayReadTheToken(t *testing.T) {
	folder, file := project(t, "{}")
	mode := func() fs.FileMode {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	h := hooksFor(folder)
	install(t, h)
	if mode() != 0o600 {
		t.Errorf("with the hooks it has the mode %o", mode())
	}
	if err := os.WriteFile(file, []byte(strings.Replace(contents(t, file), "{", `{"a":1,`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	install(t, h)
	remove(t, h)
	if mode() != 0o644 {
		t.Errorf("afterwards it has the mode %o", mode())
	}
}

func TestALinkStaysALink(t *testing.T) {
	_, file := project(t, userSettings)
	folder, link := project(t, "")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	h := hooksFor(folder)
	install(t, h)
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || !strings.Contains(contents(t, file), tag) {
		t.Errorf("%v, %v", info, err)
	}
	remove(t, h)
	if contents(t, file) != userSettings {
		t.Error("what it leads to is not as before")
	}
}

func TestFilesThatAreLeftAlone(t *testing.T) {
	for name, x := range map[string]struct{ text, says string }{
		"comments":       {"{\n  // mine\n  \"a\": 1\n}", "not JSON"},
		"trailing comma": {`{"a":1,}`, "not JSON"},
		"nothing":        {" ", "not JSON"},
		"half":           {`{"hooks":`, "not JSON"},
		"a list":         {`[]`, "no JSON object"},
		"hooks":          {`{"hooks":[]}`, "no object"},
		"event":          {`{"hooks":{"Stop":{}}}`, "no list"},
		"start":          {`{"hooks":{"SessionStart":1}}`, "no list"},
		"twice":          {`{"hooks":{},"hooks":{}}`, "stands twice"},
		"event twice":    {`{"hooks":{"Stop":[],"Stop":[]}}`, "stands twice"},
		"hooks off":      {`{"disableAllHooks":true}`, "turns all hooks off"},
		"not to us":      {`{"allowedHttpHookUrls":["https://example.org/*","http://127.0.0.1:80*/x",7]}`, "allows no hooks to this gateway"},
		"to nobody":      {`{"allowedHttpHookUrls":[]}`, "allows no hooks to this gateway"},
		"deep":           {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "not JSON"},
		"long":           {`{"a":"` + strings.Repeat("a", maxSettings) + `"}`, "longer than"},
	} {
		folder, file := project(t, x.text)
		h := hooksFor(folder)
		var refused interface{ Refused() bool }
		if err := h.Install(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", name, err)
		}
		if contents(t, file) != x.text {
			t.Errorf("%s: the file was changed", name)
		}
		remove(t, h)
	}
	folder, file := project(t, "")
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := hooksFor(folder).Install(t.Context()); err == nil || !strings.Contains(err.Error(), "no file") {
		t.Errorf("a folder: %v", err)
	}
	if err := hooksFor("").Install(t.Context()); !errors.Is(err, ErrNoProject) {
		t.Errorf("no folder: %v", err)
	}
	far := New(Config{Folder: func() (string, bool) { return folder, true }, URL: func() (string, error) { return "", errors.New("far away") }})
	if err := far.Install(t.Context()); err == nil || err.Error() != "far away" {
		t.Errorf("no address: %v", err)
	}
}

// A file that was spoiled while hooks were in it is left as it is, and said to be.
func TestASpoiltFile(t *testing.T) {
	folder, file := project(t, "{}")
	h := hooksFor(folder)
	install(t, h)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(t.Context()); !errors.Is(err, errNotJSON) || contents(t, file) != "{" {
		t.Errorf("%v, %s", err, contents(t, file))
	}
}

func TestOnlyTheTokenIsAdmitted(t *testing.T) {
	h, other := New(Config{}), New(Config{})
	for token, want := range map[string]bool{h.token: true, other.token: false, "": false, h.token[1:]: false, h.token + "x": false} {
		r := http.Header{}
		r.Set("x-vela-tap", token)
		if h.Admits(r) != want {
			t.Errorf("%q: %v", token, !want)
		}
	}
	if len(h.token) < 26 { // 128 bits in base 32
		t.Errorf("the token %q is short", h.token)
	}
}

// pruned is a document without the empty lists and objects that the removal of hooks may take along.
func pruned(t *testing.T, text []byte) map[string]any {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	hooks, ok := doc["hooks"].(map[string]any)
	if !ok {
		return doc
	}
	for _, event := range append([]string{commandEvent}, events...) {
		if list, ok := hooks[event].([]any); ok && len(list) == 0 {
			delete(hooks, event)
		}
	}
	if len(hooks) == 0 {
		delete(doc, "hooks")
	}
	return doc
}

// Hooks that go in and out again, without anybody who remembers what was there, leave an equal document.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"{}", " {\n} ", userSettings, `{"hooks":{"Stop":[{"hooks":[]},{"hooks":1},2,{"hooks":[{"statusMessage":"vela-tap"}]}]}}`,
		`{"a":[1 , 2 ] , "hooks" : {"PreToolUse" : [ ] , "X":{} } }`, `{"\u0068ooks":{}}`, "{\n\n\n\"a\":1}", `{"hooks":null}`, `{"":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseSettings(text)
		if err != nil || len(s.ours()) > 0 {
			return
		}
		if err := s.add(hookURL, "token", "command"); err != nil {
			t.Fatal(err)
		}
		with, err := s.text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseSettings(with)
		if err != nil {
			t.Fatalf("%q: %v", with, err)
		}
		if n := len(again.ours()); n != len(events)+1 {
			t.Fatalf("%q has %d hooks", with, n)
		}
		again.strip()
		without, err := again.text()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(pruned(t, without), pruned(t, text)) {
			t.Errorf("%q became %q", text, without)
		}
	})
}

func TestPost(t *testing.T) {
	type got struct {
		token, kind string
		body        []byte
	}
	taken := make(chan got, 8)
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		taken <- got{r.Header.Get(tokenHeader), r.Header.Get("Content-Type"), b.Bytes()}
		w.WriteHeader(status)
	}))
	defer server.Close()
	folder, file := project(t, "{}")
	h := New(Config{
		Folder: func() (string, bool) { return folder, true },
		URL:    func() (string, error) { return server.URL + "/api/tap/hook", nil },
	})
	install(t, h)
	if err := Post(t.Context(), file, strings.NewReader(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if g := <-taken; g.token != h.token || g.kind != "application/json" || string(g.body) != `{"x":1}` {
		t.Errorf("sent: %+v", g)
	}
	fails := func(says string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), h.token) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	status = http.StatusForbidden
	fails("does not take", Post(t.Context(), file, strings.NewReader("{}")))
	fails("more than", Post(t.Context(), file, bytes.NewReader(make([]byte, maxHook+1))))
	server.Close()
	fails("is it running", Post(t.Context(), file, strings.NewReader("{}")))
	remove(t, h)
	fails("no hook", Post(t.Context(), file, strings.NewReader("{}")))
	fails("read Claude Code's settings", Post(t.Context(), filepath.Join(folder, "none"), strings.NewReader("{}")))
}

func TestFit(t *testing.T) {
	long := strings.Repeat("a", 1000)
	for _, x := range []struct{ body, want string }{
		{`{"tool_response":{"a":"b"}}`, `{"tool_response":{"a":"b"}}`},
		{`{"tool_name":"Read","tool_response":"` + long + `"}`, `{"tool_name":"Read","tool_response":{"omitted":"1002 bytes"}}`},
		{`{"tool_input":{"a":"` + long + `"},"tool_response":1}`, `{"tool_input":{"omitted":"1008 bytes"},"tool_response":1}`},
		{`{"prompt":"` + long + `"}`, `{"prompt":"` + long + `"}`},
		{long, long},
	} {
		got := Fit([]byte(x.body), 100)
		var a, b any
		if json.Unmarshal(got, &a) == nil && json.Unmarshal([]byte(x.want), &b) == nil && reflect.DeepEqual(a, b) {
			continue
		}
		if !slices.Equal(got, []byte(x.want)) {
			t.Errorf("%.40s became %.80s", x.body, got)
		}
	}
}
