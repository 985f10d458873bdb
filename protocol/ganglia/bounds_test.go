package ganglia_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/protocol/ganglia"
	"vela/protocol/signal"
)

// object is a JSON object of one string.
func object(t testing.TB, name, value string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestContentIsBounded(t *testing.T) {
	const limit = 256 << 10
	for name, content := range map[string]string{
		"one byte more":      strings.Repeat("a", limit+1),
		"much more":          strings.Repeat("line\n", limit/4),
		"runes at the cut":   "a" + strings.Repeat("ä", limit/2),
		"wide runes":         strings.Repeat("😀", limit/2),
		"control characters": strings.Repeat("\x01", limit/2),
	} {
		a, ok := ganglia.ArtifactOf(call("read_file", `{"path":"a.txt"}`), result(true, object(t, "content", content)))
		if !ok || len(a.Content) > limit || len(a.Content) < limit-100 || !utf8.ValidString(a.Content) {
			t.Errorf("%s: %d bytes", name, len(a.Content))
		}
		if last := a.Content[strings.LastIndexByte(a.Content, '\n')+1:]; !strings.Contains(last, "cut off") {
			t.Errorf("%s ends with %.100q", name, last)
		}
	}
	blank, _ := ganglia.ArtifactOf(call("read_file", `{"path":"a.txt"}`), result(true, object(t, "content", "a"+strings.Repeat("\r\n", limit/2))))
	if !strings.HasPrefix(blank.Content, "a\n…") {
		t.Errorf("empty lines stand before the last: %.20q", blank.Content)
	}
	whole := strings.Repeat("a", limit)
	a, _ := ganglia.ArtifactOf(call("read_file", `{"path":"a.txt"}`), result(true, object(t, "content", whole)))
	if a.Content != whole {
		t.Errorf("as much as may be is cut to %d bytes", len(a.Content))
	}
	a, _ = ganglia.ArtifactOf(call("edit_file", `{"path":"a.txt"}`), result(true, object(t, "diff", "@@ -1 +1 @@\n"+whole)))
	if len(a.Diff) > limit || !strings.Contains(a.Diff, "cut off") {
		t.Errorf("a diff of %d bytes", len(a.Diff))
	}
	a, _ = ganglia.ArtifactOf(call("bash", `{}`), result(false, object(t, "error", whole+"a")))
	if len(a.Message) > limit || !strings.Contains(a.Message, "cut off") {
		t.Errorf("a message of %d bytes", len(a.Message))
	}
}

func TestNamesAreBounded(t *testing.T) {
	const limit = 1 << 10
	long := strings.Repeat("ü", limit)
	s := ganglia.StatusOf(call("bash", object(t, "command", long)), 0)
	a, _ := ganglia.ArtifactOf(call("read_file", object(t, "path", long+".go")), result(true, `{"content":""}`))
	e, _ := ganglia.ArtifactOf(call(long, `{}`), result(false, `{}`))
	f, _ := ganglia.ArtifactOf(call("grep", object(t, "pattern", long)), result(true, object(t, "content", long+":1:x")))
	for name, got := range map[string]string{"detail": s.Detail, "path": a.Path, "title": strings.TrimPrefix(e.Title, "Error: "), "query": f.Query, "file": f.Results[0].File} {
		if len(got) > limit || len(got) < limit-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%s: %d bytes, %.20q", name, len(got), got)
		}
	}
	exactly := strings.Repeat("u", limit)
	if got := ganglia.StatusOf(call("bash", object(t, "command", exactly)), 0).Detail; got != exactly {
		t.Errorf("as much as may be is cut to %d bytes", len(got))
	}
	broken, _ := ganglia.ArtifactOf(call("a\xffb", `{}`), result(false, `{}`))
	if broken.Title != "Error: a\ufffdb" {
		t.Errorf("%q", broken.Title)
	}
}

func TestResultsAreBounded(t *testing.T) {
	grep := func(content string) []ganglia.SearchResult {
		a, _ := ganglia.ArtifactOf(call("grep", `{"pattern":"x"}`), result(true, object(t, "content", content)))
		return a.Results
	}
	var thousand strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&thousand, "a.go:%d:x\n", i+1)
	}
	if got := grep(thousand.String()); len(got) != 1000 || got[999].Line != 1000 {
		t.Errorf("%d rows, the last %+v", len(got), got[len(got)-1])
	}
	got := grep(thousand.String() + "b.go:1:x\nc.go:1:x\n")
	if want := (ganglia.SearchResult{Content: "… 3 more"}); len(got) != 1000 || got[998].Line != 999 || got[999] != want {
		t.Errorf("%d rows, the last %+v", len(got), got[len(got)-1])
	}

	got = grep(strings.Repeat("a.go:1:"+strings.Repeat("ü", 1500)+"\n", 200) + "b.go:1:short\n")
	bytes := 0
	for _, r := range got[:len(got)-1] {
		bytes += len(r.File) + len(r.Content)
		if len(r.Content) > 2048 || !strings.HasSuffix(r.Content, "ü…") || r.File != "a.go" {
			t.Fatalf("%d bytes in a row of %s: %q", len(r.Content), r.File, r.Content[len(r.Content)-10:])
		}
	}
	if last := got[len(got)-1].Content; bytes > 256<<10 || bytes < 250<<10 || last != fmt.Sprintf("… %d more", 201-len(got)+1) {
		t.Errorf("%d bytes in %d rows, the last %q", bytes, len(got), last)
	}

	got = grep(strings.Repeat("no path: ", 1000))
	if len(got) != 1 || got[0].Content != strings.Repeat("no path: ", 1000)[:500] {
		t.Errorf("%+v", got)
	}
	if got = grep(strings.Repeat(": ü", 1000)); utf8.RuneCountInString(got[0].Content) != 500 {
		t.Errorf("%d characters", utf8.RuneCountInString(got[0].Content))
	}
}

// FuzzObjects runs anything through both functions. What comes out is JSON that a message of the protocol can carry, and
// is read again as what it was.
func FuzzObjects(f *testing.F) {
	for _, c := range artifacts {
		f.Add(c.tool, c.input, c.output, true)
		f.Add(c.tool, c.input, c.output, false)
	}
	for _, tool := range []string{"Read", "Edit", "Write", "Grep", "exec"} {
		f.Add(tool, `{"path":"\ud800","file_path":"a\u0000.go","edits":[null,{"old_string":null}],"old_string":"\u2028"}`,
			`{"response":[],"content":[null,[],{"text":null}],"file":{"startLine":1e400},"structuredPatch":[null,{"lines":[null]}],"filenames":[null]}`, true)
		f.Add(tool, strings.Repeat(`{"edits":[`, 30), strings.Repeat("[", 90), false)
	}
	f.Fuzz(func(t *testing.T, tool, input, output string, ok bool) {
		c := call(tool, input)
		checkObject(t, ganglia.StatusOf(c, 1))
		if a, some := ganglia.ArtifactOf(c, signal.ToolResult{Success: ok, Output: json.RawMessage(output)}); some {
			checkObject(t, a)
		} else if !ok {
			t.Errorf("%s failed, and nothing says so", tool)
		}
	})
}

func checkObject(t *testing.T, e ganglia.Event) {
	t.Helper()
	b, err := ganglia.Encode(e)
	if err != nil || !utf8.Valid(b) || len(b) > 1<<20 {
		t.Fatalf("%d bytes of %.100q: %v", len(b), b, err)
	}
	again, err := ganglia.Decode(b)
	if err != nil || !reflect.DeepEqual(again, e) {
		t.Errorf("read again as %#v: %v\nit was %#v", again, err, e)
	}
}

// The worst that fits into the bounds: characters that JSON writes with the most bytes.
func TestNoArtifactIsOverOneMiB(t *testing.T) {
	for _, unit := range []string{"\x00", `"`, "\u2028"} {
		name, long := strings.Repeat(unit, 2<<10), strings.Repeat(unit, (260<<10)/len(unit))
		rows := strings.Repeat("a:1:"+strings.Repeat(unit, 2000)+"\n", 150)
		for tool, texts := range map[string]struct {
			input  map[string]string
			output string
			ok     bool
		}{
			"read_file":  {map[string]string{"path": name}, object(t, "content", long), true},
			"edit_file":  {map[string]string{"path": name, "old_string": long}, `{}`, true},
			"write_file": {map[string]string{"path": name}, object(t, "diff", "@@ -1"+long), true},
			"grep":       {map[string]string{"pattern": name}, object(t, "content", rows), true},
			"bash":       {nil, object(t, "error", long), false},
		} {
			input, err := json.Marshal(texts.input)
			if err != nil {
				t.Fatal(err)
			}
			a, some := ganglia.ArtifactOf(call(tool, string(input)), result(texts.ok, texts.output))
			if !some {
				t.Errorf("%s of %q shows nothing", tool, unit)
			}
			checkObject(t, a)
		}
	}
}
