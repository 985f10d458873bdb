package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"vela/turn/tool"
)

func TestRead(t *testing.T) {
	p := newPlace(t)
	p.file("three", "one\ntwo\nthree\n")
	p.file("open", "one\ntwo")
	p.file("empty", "")
	p.file("latin", "caf\xe9 \xff\xfe\nnext\n")
	p.file("nul", "abc\x00def")
	p.file("late nul", strings.Repeat("text\n", 5000)+"\x00")
	p.file("dots/../notes/./todo.md", "x")
	for _, c := range []struct {
		input in
		text  string
		note  string
	}{
		{in{"path": "three"}, "one\ntwo\nthree\n", ""},
		{in{"path": "three", "offset": 2}, "two\nthree\n", ""},
		{in{"path": "three", "limit": 3}, "one\ntwo\nthree\n", ""},
		{in{"path": "three", "limit": 2}, "one\ntwo\n", "[These are lines 1 to 2. Read on with offset 3.]"},
		{in{"path": "three", "offset": 2, "limit": 1}, "two\n", "[These are lines 2 to 2. Read on with offset 3.]"},
		{in{"path": "three", "offset": 3, "limit": 9}, "three\n", ""},
		{in{"path": "open", "offset": 2}, "two", ""},
		{in{"path": "empty"}, "", "[The file is empty.]"},
		{in{"path": "latin", "limit": 1}, "caf\uFFFD \uFFFD\n", "[These are lines 1 to 1. Read on with offset 2. Bytes that are not UTF-8 are shown as \uFFFD.]"},
		{in{"path": "latin", "offset": 2}, "next\n", ""},
		{in{"path": "notes//todo.md"}, "x", ""},
	} {
		r := p.gives("read_file", c.input)
		out := p.output(r)
		if r.Content != c.text+c.note || out.Content != c.text || out.Path != c.input["path"] {
			t.Errorf("%v: %q, %+v", c.input, r.Content, out)
		}
	}
	p.refuses("read_file", in{"path": "three", "offset": 4}, `"three" has only 3 lines.`)
	p.refuses("read_file", in{"path": "open", "offset": 3}, `"open" has only 2 lines.`)
	p.refuses("read_file", in{"path": "empty", "offset": 2}, `"empty" has only 0 lines.`)
	p.refuses("read_file", in{"path": "three", "offset": 0}, "at least 1")
	p.refuses("read_file", in{"path": "three", "limit": 0}, "at least 1")
	p.refuses("read_file", in{"path": "nul"}, "binary")
	p.refuses("read_file", in{"path": "late nul"}, "binary")
	p.refuses("edit_file", in{"path": "nul", "old_string": "a", "new_string": "b"}, "binary")
}

func TestReadInParts(t *testing.T) {
	p := newPlace(t)
	var whole strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&whole, "line %d €\n", i)
	}
	p.file("long", whole.String())
	var got strings.Builder
	for offset := 1; ; {
		r := p.gives("read_file", in{"path": "long", "offset": offset})
		part := p.output(r).Content
		if len(part) > 64<<10 {
			t.Fatalf("%d bytes at once", len(part))
		}
		got.WriteString(part)
		if r.Content == part {
			break
		}
		if _, err := fmt.Sscanf(r.Content[len(part):], "[These are lines %d to %d. Read on with offset %d.]", new(int), new(int), &offset); err != nil {
			t.Fatalf("%v: %q", err, r.Content[len(part):])
		}
	}
	if got.String() != whole.String() {
		t.Errorf("the parts are %d bytes, the file is %d", got.Len(), whole.Len())
	}
}

func TestReadALineThatIsTooLong(t *testing.T) {
	p := newPlace(t)
	p.file("long", "first\n"+strings.Repeat("€", 200_000)+"\nlast\n")
	if got := p.gives("read_file", in{"path": "long"}).Content; got != "first\n[These are lines 1 to 1. Read on with offset 2.]" {
		t.Errorf("%d bytes: %.80q", len(got), got)
	}
	r := p.gives("read_file", in{"path": "long", "offset": 2})
	text := p.output(r).Content
	if len(text) > 64<<10 || len(text) < 64<<10-3 || !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
		t.Errorf("%d bytes, valid: %v", len(text), utf8.ValidString(text))
	}
	if note := r.Content[len(text):]; note != "\n[Line 2 is longer than 64 KiB: its end cannot be read. Read on with offset 3.]" {
		t.Errorf("the note is %q", note)
	}
	if got := p.gives("read_file", in{"path": "long", "offset": 3}).Content; got != "last\n" {
		t.Errorf("then %q", got)
	}
}

// A file of 1 GB is not read into memory: neither one of text, whose end is asked for, nor one of nothing.
func TestReadIsBounded(t *testing.T) {
	p := newPlace(t)
	for name, head := range map[string]string{"holes": "", "text": strings.Repeat("text\n", 4000)} {
		p.file(name, head)
		p.must(os.Truncate(filepath.Join(p.dir, name), 1<<30))
	}
	for _, c := range []struct {
		name  string
		input in
		words string
	}{
		{"read_file", in{"path": "holes"}, "binary"},
		{"read_file", in{"path": "holes", "offset": 2}, "binary"},
		{"read_file", in{"path": "text"}, "binary"},
		{"read_file", in{"path": "text", "offset": 4001}, "binary"},
		{"edit_file", in{"path": "text", "old_string": "a", "new_string": "b"}, ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p.refuses(c.name, c.input, c.words)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%s %v allocated %d MiB", c.name, c.input, used>>20)
		}
	}
}

func TestWrite(t *testing.T) {
	p := newPlace(t)
	r := p.gives("write_file", in{"path": "new/folder/a.txt", "content": "one\ntwo\n"})
	if p.content("new/folder/a.txt") != "one\ntwo\n" || r.Content != `"new/folder/a.txt" was written: it has 2 lines.` {
		t.Errorf("%q, %q", p.content("new/folder/a.txt"), r.Content)
	}
	want := "--- a/new/folder/a.txt\n+++ b/new/folder/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
	if out := p.output(r); out.Path != "new/folder/a.txt" || out.Content != r.Content || out.Diff != want {
		t.Errorf("the output is %+v", out)
	}
	p.must(os.Chmod(filepath.Join(p.dir, "new/folder/a.txt"), 0o751))
	out := p.output(p.gives("write_file", in{"path": "new/folder/a.txt", "content": "one\n2\n"}))
	if !strings.HasSuffix(out.Diff, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n") {
		t.Errorf("the diff is %s", out.Diff)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "new/folder/a.txt")); err != nil || info.Mode() != 0o751 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if out := p.output(p.gives("write_file", in{"path": "new/folder/a.txt", "content": ""})); out.Content != `"new/folder/a.txt" was written: it has 0 lines.` || p.content("new/folder/a.txt") != "" {
		t.Errorf("the output is %+v", out)
	}
	p.file("binary", "\x00")
	if out := p.output(p.gives("write_file", in{"path": "binary", "content": "text"})); out.Diff != "" || p.content("binary") != "text" {
		t.Errorf("the output is %+v", out)
	}
	p.gives("write_file", in{"path": "large", "content": strings.Repeat("x", 1<<20)})
	p.refuses("write_file", in{"path": "large", "content": strings.Repeat("x", 1<<20+1)}, "1024 KiB")
	p.refuses("write_file", in{"path": "a"}, `needs "content"`)
	p.refuses("write_file", in{"path": "new", "content": ""}, "is a folder")
	left, err := filepath.Glob(filepath.Join(p.dir, "*/*/.vela*"))
	if more, _ := filepath.Glob(filepath.Join(p.dir, ".vela*")); err != nil || len(left)+len(more) > 0 {
		t.Errorf("left behind: %v %v", left, more)
	}
}

func TestEdit(t *testing.T) {
	p := newPlace(t)
	p.file("a", "1\n2\n3\n4\nx\n5\n6\n7\n8\nx\n")
	for _, c := range []struct {
		input in
		words string
	}{
		{in{"path": "a", "old_string": "y", "new_string": "z"}, `old_string is not in "a"`},
		{in{"path": "a", "old_string": "x", "new_string": "z"}, `old_string is in "a" 2 times`},
		{in{"path": "a", "old_string": "x", "new_string": "x"}, "the same"},
		{in{"path": "a", "old_string": "", "new_string": "x"}, "not empty"},
		{in{"path": "a", "old_string": "x"}, `needs "new_string"`},
		{in{"path": "b", "old_string": "x", "new_string": "y"}, `There is no "b".`},
		{in{"path": "a", "old_string": "x", "new_string": strings.Repeat("y", 1<<20), "replace_all": true}, "1024 KiB"},
	} {
		p.refuses("edit_file", c.input, c.words)
	}
	out := p.output(p.gives("edit_file", in{"path": "a", "old_string": "x\n5", "new_string": "y\n5"}))
	want := "--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-x\n+y\n 5\n 6\n 7\n"
	if out.Diff != want || out.Content != `"a" was written: it has 10 lines.` || out.Path != "a" {
		t.Errorf("the output is %+v", out)
	}
	p.gives("edit_file", in{"path": "a", "old_string": "\n", "new_string": "", "replace_all": true})
	if got := p.content("a"); got != "1234y5678x" {
		t.Errorf("a has %q", got)
	}
}

// A file that is not UTF-8 keeps the bytes that an edit does not touch.
func TestEditKeepsOtherBytes(t *testing.T) {
	p := newPlace(t)
	p.file("latin", "caf\xe9 one")
	p.gives("edit_file", in{"path": "latin", "old_string": "one", "new_string": "two"})
	if got := p.content("latin"); got != "caf\xe9 two" {
		t.Errorf("latin has %q", got)
	}
}

func TestDiffIsBounded(t *testing.T) {
	p := newPlace(t)
	line := strings.Repeat("€", 20) + "\n"
	p.file("a", strings.Repeat(line, 10_000))
	out := p.output(p.gives("write_file", in{"path": "a", "content": strings.Repeat("x"+line, 10_000)}))
	if len(out.Diff) > 128<<10+40 || len(out.Diff) < 124<<10 || !utf8.ValidString(out.Diff) {
		t.Errorf("%d bytes", len(out.Diff))
	}
	if last := out.Diff[strings.LastIndexByte(strings.TrimSuffix(out.Diff, "\n"), '\n')+1:]; !strings.HasPrefix(last, `\ `) || !strings.HasSuffix(last, " lines more\n") {
		t.Errorf("it ends with %q", last)
	}
}

// However many places differ, the library's work is bounded: it would be the square of them.
func TestDiffOfManyPlaces(t *testing.T) {
	before := strings.Repeat("a\nb\nc\n", 170_000)
	if edits := udiff.Lines(before, strings.ReplaceAll(before, "b", "x")); len(edits) > 200 {
		t.Errorf("%d edits", len(edits))
	}
}

func TestParallelEdits(t *testing.T) {
	p := newPlace(t)
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "<%d>\n", i)
	}
	p.file("a", text.String())
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if _, err := p.call("edit_file", in{"path": "a", "old_string": fmt.Sprintf("<%d>", i), "new_string": "done"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := p.content("a"); got != strings.Repeat("done\n", 40) {
		t.Errorf("a has %q", got)
	}
}

func TestGlob(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"b.go", "a/x.go", "a/b/y.go", "a/b/z.md", ".git/config", "c.md", "a/.hidden"} {
		p.file(name, "")
	}
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"pattern": "**/*.go"}, "a/b/y.go a/x.go b.go"},
		{in{"pattern": "*"}, ".git/ a/ b.go c.md"},
		{in{"pattern": "*.{go,md}"}, "b.go c.md"},
		{in{"pattern": "a/**"}, "a/.hidden a/b/ a/b/y.go a/b/z.md a/x.go"},
		{in{"pattern": "**/*.go", "path": "a"}, "a/b/y.go a/x.go"},
		{in{"pattern": "b/*.md", "path": "a/"}, "a/b/z.md"},
		{in{"pattern": "b.go"}, "b.go"},
		{in{"pattern": "**/config"}, "Nothing fits the pattern."},
	} {
		if got := strings.Join(strings.Split(strings.TrimSuffix(p.gives("glob", c.input).Content, "\n"), "\n"), " "); got != c.want {
			t.Errorf("%v: %s", c.input, got)
		}
	}
	p.refuses("glob", in{"pattern": "["}, "not well-formed")
	p.refuses("glob", in{"pattern": "{a,b}{a,b}{a,b}{a,b}"}, "too many alternatives")
	p.refuses("glob", in{"pattern": strings.Repeat("*", 501)}, "longer than 500")
	p.refuses("glob", in{"pattern": "*", "path": "missing"}, `There is no "missing".`)
	p.refuses("glob", in{}, `needs "pattern"`)
	for i := range 1100 {
		p.file(fmt.Sprintf("many/%04d", i), "")
	}
	r := p.gives("glob", in{"pattern": "many/*"})
	if out := p.output(r).Content; strings.Count(out, "\n") != 1000 || !strings.HasSuffix(out, "many/0999\n") || !strings.Contains(r.Content, "more than these 1000.") {
		t.Errorf("%d paths, %q", strings.Count(out, "\n"), r.Content[len(out):])
	}
}

func TestGrep(t *testing.T) {
	p := newPlace(t)
	p.file("a.go", "func A()\r\nfunc B()\nnothing")
	p.file("b/c.go", "func C()")
	p.file("b/c.md", "the func")
	p.file(".git/x.go", "func G()")
	p.file("bin.go", "func A()\x00")
	p.file("long.txt", "start "+strings.Repeat("€", 600)+"\n"+strings.Repeat("y", 100_000)+" beyond\nafter\n")
	p.file("latin.txt", "caf\xe9 latin")
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"pattern": `func \w\(`}, "a.go:1:func A()\na.go:2:func B()\nb/c.go:1:func C()\n"},
		{in{"pattern": "func", "glob": "*.md"}, "b/c.md:1:the func\n"},
		{in{"pattern": "func", "glob": "b/*.go"}, "b/c.go:1:func C()\n"},
		{in{"pattern": "func", "path": "b", "glob": "c.*"}, "b/c.go:1:func C()\nb/c.md:1:the func\n"},
		{in{"pattern": "thing$", "path": "a.go"}, "a.go:3:nothing\n"},
		{in{"pattern": "^start"}, "long.txt:1:start " + strings.Repeat("€", 494) + "…\n"},
		{in{"pattern": "beyond"}, "No line fits the pattern."},
		{in{"pattern": "after"}, "long.txt:3:after\n"},
		{in{"pattern": "latin"}, "latin.txt:1:caf\uFFFD latin\n"},
	} {
		if got := p.gives("grep", c.input).Content; got != c.want {
			t.Errorf("%v:\n%q", c.input, got)
		}
	}
	p.refuses("grep", in{"pattern": "("}, "no regular expression: missing closing )")
	p.refuses("grep", in{"pattern": "x", "glob": "["}, "not well-formed")
	p.refuses("grep", in{"pattern": "x", "path": "missing"}, `There is no "missing".`)
	p.refuses("grep", in{}, `needs "pattern"`)
	p.file("many.txt", strings.Repeat("match\n", 600))
	r := p.gives("grep", in{"pattern": "match"})
	if out := p.output(r).Content; strings.Count(out, "\n") != 500 || !strings.Contains(r.Content, "more than these 500 lines.") {
		t.Errorf("%d lines, %q", strings.Count(out, "\n"), r.Content[len(out):])
	}
}

func TestInputsAreTold(t *testing.T) {
	p := newPlace(t)
	p.refuses("read_file", in{"path": 5}, `The input's "path" must be a string.`)
	p.refuses("read_file", in{"path": "a", "offset": "5"}, `The input's "offset" must be a whole number.`)
	p.refuses("edit_file", in{"path": "a", "replace_all": "yes"}, `The input's "replace_all" must be a boolean.`)
	p.refuses("read_file", in{"path": "a", "lines": 5}, `The input has an unknown field "lines".`)
}

// Nothing comes of a call whose turn is over, and the error is the context's.
func TestCancelled(t *testing.T) {
	p := newPlace(t)
	p.file("a", "not\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, input := range ways("a") {
		b, err := json.Marshal(input)
		p.must(err)
		if _, err := p.tools.Call(ctx, tool.Call{Name: name, Input: b}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := p.content("a"); got != "not\n" {
		t.Errorf("a has %q", got)
	}
}

// Every vendor takes these schemas, and they say what the tools take.
func TestDefinitions(t *testing.T) {
	p := newPlace(t)
	root, err := os.OpenRoot(p.dir)
	p.must(err)
	defer func() { p.must(root.Close()) }()
	all := set(t, append(tool.Files(root, 0), tool.Bash(root, 0))...)
	if got := names(all); got != strings.Join(tool.BuiltIn(), " ") {
		t.Errorf("the tools are %s", got)
	}
	for _, d := range all.Definitions() {
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		p.must(json.Unmarshal(d.Parameters, &schema))
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties || len(schema.Required) == 0 {
			t.Errorf("%s: %+v", d.Name, schema)
		}
		input := in{}
		for name, property := range schema.Properties {
			if property.Type == "" || property.Description == "" {
				t.Errorf("%s: %s is not described", d.Name, name)
			}
			input[name] = map[string]any{"string": "a", "integer": 1, "boolean": true}[property.Type]
		}
		b, err := json.Marshal(input)
		p.must(err)
		if _, err := all.Call(t.Context(), tool.Call{Name: d.Name, Input: b}); err != nil && strings.Contains(err.Error(), "The input") {
			t.Errorf("%s does not take what its schema says: %v", d.Name, err)
		}
		if d.ReadOnly != strings.Contains("read_file glob grep", d.Name) {
			t.Errorf("%s: read-only is %v", d.Name, d.ReadOnly)
		}
	}
}
