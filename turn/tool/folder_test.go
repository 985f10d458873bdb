package tool_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vela/turn/tool"
)

// place is a folder with the file tools in it, and a folder beside it that they must not reach.
type place struct {
	*testing.T
	dir, outside string
	tools        tool.Caller
}

const secret = "what is not theirs to see"

func newPlace(t *testing.T) *place {
	t.Helper()
	base := t.TempDir()
	p := &place{T: t, dir: filepath.Join(base, "inside"), outside: filepath.Join(base, "outside")}
	for _, dir := range []string{p.dir, p.outside} {
		p.must(os.Mkdir(dir, 0o777))
	}
	p.must(os.WriteFile(filepath.Join(p.outside, "secret.txt"), []byte(secret), 0o666))
	root, err := os.OpenRoot(p.dir)
	p.must(err)
	t.Cleanup(func() { p.must(root.Close()) })
	p.tools = set(t, tool.Files(root, 0)...)
	return p
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) file(name, content string) {
	p.Helper()
	full := filepath.Join(p.dir, name)
	p.must(os.MkdirAll(filepath.Dir(full), 0o777))
	p.must(os.WriteFile(full, []byte(content), 0o666))
}

func (p *place) link(target, name string) {
	p.Helper()
	p.must(os.Symlink(target, filepath.Join(p.dir, name)))
}

// in is a tool's input.
type in map[string]any

func (p *place) call(name string, input in) (tool.Result, error) {
	p.Helper()
	b, err := json.Marshal(input)
	p.must(err)
	return p.tools.Call(p.Context(), tool.Call{Name: name, Input: b})
}

// gives runs a tool that has to work.
func (p *place) gives(name string, input in) tool.Result {
	p.Helper()
	r, err := p.call(name, input)
	if err != nil {
		p.Fatalf("%s %v: %v", name, input, err)
	}
	return r
}

// refuses runs a tool that has to fail, in words with all of these in them, and none that tells where the folder is.
func (p *place) refuses(name string, input in, words ...string) {
	p.Helper()
	r, err := p.call(name, input)
	if err == nil {
		p.Errorf("%s %v: gave %q", name, input, r.Content)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			p.Errorf("%s %v: %q does not say %q", name, input, err, w)
		}
	}
	asked := fmt.Sprint(input) // what a model knows it may be told
	if base := filepath.Dir(p.dir); strings.Contains(err.Error(), base) && !strings.Contains(asked, base) || strings.Contains(err.Error(), secret) || len(err.Error()) > 600 {
		p.Errorf("%s %v: says too much: %v", name, input, err)
	}
}

func (p *place) output(r tool.Result) (out struct{ Path, Content, Diff string }) {
	p.Helper()
	p.must(json.Unmarshal(r.Output, &out))
	return out
}

// content is what a file has now.
func (p *place) content(name string) string {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	p.must(err)
	return string(b)
}

// listing is every path below a folder, with what is in it: two of them differ if anything changed.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(content))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
