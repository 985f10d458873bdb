package tool_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"vela/turn/tool"
)

// ways is each tool with a path that it is asked for.
func ways(path string) map[string]in {
	return map[string]in{
		"read_file":  {"path": path},
		"write_file": {"path": path, "content": "changed"},
		"edit_file":  {"path": path, "old_string": "not", "new_string": "changed"},
		"glob":       {"pattern": "*", "path": path},
		"grep":       {"pattern": ".", "path": path},
	}
}

func TestPathsOutOfTheFolderAreRefused(t *testing.T) {
	p := newPlace(t)
	p.file("a/b.txt", "x")
	p.link(filepath.Join(p.outside, "secret.txt"), "absolute")
	p.link("../outside/secret.txt", "relative")
	p.link("relative", "chained")
	p.link("../outside", "folder")
	p.link("folder", "a/../chained folder")
	p.link("/dev/zero", "zero")
	before := listing(t, p.outside)
	for _, path := range []string{
		"..", "../outside/secret.txt", "a/../../outside/secret.txt", "a/b.txt/../../../outside/secret.txt", "/", "/etc/passwd",
		filepath.Join(p.outside, "secret.txt"), filepath.Join(p.dir, "a/b.txt"), "absolute", "relative", "chained", "folder/secret.txt",
		"chained folder/secret.txt", "zero",
	} {
		for name, input := range ways(path) {
			p.refuses(name, input, "leads out of the folder")
		}
	}
	p.refuses("glob", in{"pattern": "../outside/*"}, "leads out of the folder")
	p.refuses("glob", in{"pattern": "/etc/*"}, "leads out of the folder")
	p.refuses("glob", in{"pattern": "*", "path": "folder"}, "leads out of the folder")
	p.refuses("write_file", in{"path": "folder/new.txt", "content": "x"}, "leads out of the folder")
	p.refuses("write_file", in{"path": "folder/new/new.txt", "content": "x"}, "leads out of the folder")
	if after := listing(t, p.outside); after != before {
		t.Errorf("outside of the folder there is now\n%s", after)
	}
}

// Patterns and searches come past links too, and must not go in.
func TestSearchesFollowNoLink(t *testing.T) {
	p := newPlace(t)
	p.file("a/b.txt", "not far")
	p.link("../outside", "folder")
	p.link("../outside/secret.txt", "secret.txt")
	p.link(".", "loop")
	if got := p.gives("glob", in{"pattern": "**"}).Content; got != "a/\na/b.txt\nfolder\nloop\nsecret.txt\n" {
		t.Errorf("glob gives\n%s", got)
	}
	if got := p.gives("grep", in{"pattern": "not"}).Content; got != "a/b.txt:1:not far\n" {
		t.Errorf("grep gives\n%s", got)
	}
	for _, pattern := range []string{"folder/*", "loop/folder/*"} {
		r, err := p.call("glob", in{"pattern": pattern})
		if err == nil && strings.Contains(r.Content, "secret") {
			t.Errorf("glob %s gives\n%s", pattern, r.Content)
		}
	}
}

func TestLinksWithinTheFolder(t *testing.T) {
	p := newPlace(t)
	p.file("a/b.txt", "hello")
	p.link("a/b.txt", "link")
	p.link("a", "folder")
	for _, path := range []string{"link", "folder/b.txt"} {
		if got := p.gives("read_file", in{"path": path}).Content; got != "hello" {
			t.Errorf("%s has %q", path, got)
		}
	}
	p.refuses("write_file", in{"path": "link", "content": "x"}, `"link" is a link`)
	p.gives("write_file", in{"path": "folder/b.txt", "content": "changed"})
	if got := p.content("a/b.txt"); got != "changed" {
		t.Errorf("a/b.txt has %q", got)
	}
}

func TestIllFormedPathsAreRefused(t *testing.T) {
	p := newPlace(t)
	for path, words := range map[string]string{
		"a\x00b":                   `"a\x00b" is no path`,
		"a\nb":                     `"a\nb" is no path`,
		strings.Repeat("x", 4097):  "longer than 4096 bytes",
		strings.Repeat("x", 300):   "file name too long",
		strings.Repeat("x/", 2000): "There is no",
		"missing.txt":              `There is no "missing.txt".`,
		"missing/folder/x":         `There is no "missing/folder/x".`,
		"\u202egnp.exe":            `There is no "\u202egnp.exe".`,
	} {
		p.refuses("read_file", in{"path": path}, words)
	}
	p.refuses("read_file", in{"path": ""}, `needs "path"`)
	p.file("file", "x")
	p.refuses("read_file", in{"path": "file/below"}, `"file/below" cannot be used: not a directory.`)
	p.refuses("write_file", in{"path": "file/below", "content": ""}, `"file/below" cannot be used: not a directory.`)
	for name, input := range ways(".") {
		if name != "glob" && name != "grep" {
			p.refuses(name, input, `is a folder`)
		}
	}
}

// Whoever opened a pipe to read would wait for a writer for ever.
func TestSpecialFilesAreRefused(t *testing.T) {
	p := newPlace(t)
	p.must(syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o666))
	p.file("x.txt", "x")
	for _, name := range []string{"read_file", "write_file", "edit_file"} {
		p.refuses(name, ways("pipe")[name], "a pipe, a socket or a device")
	}
	p.refuses("grep", ways("pipe")["grep"], "a pipe, a socket or a device")
	p.refuses("glob", ways("pipe")["glob"], "not a directory")
	if got := p.gives("grep", in{"pattern": "x"}).Content; got != "x.txt:1:x\n" {
		t.Errorf("grep gives %s", got)
	}
}

// While names change between a file inside, a pipe, and links to a file and a folder outside, no tool may reach what is
// outside or wait, whichever of them it meets.
func TestRacedLinks(t *testing.T) {
	p := newPlace(t)
	p.file("real/x.txt", "inside")
	p.file("file.txt", "inside")
	before := listing(t, p.outside)
	stop, swaps := make(chan struct{}), sync.WaitGroup{}
	swaps.Go(func() {
		full := func(name string) string { return filepath.Join(p.dir, name) }
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Symlink([]string{"real", "../outside"}[i%2], full("next"))
			_ = os.Rename(full("next"), full("raced"))
			_ = os.Symlink([]string{"file.txt", "../outside/secret.txt"}[i%2], full("next"))
			_ = os.Rename(full("next"), full("raced.txt"))
			if i%2 == 0 {
				_ = syscall.Mkfifo(full("next"), 0o666)
			} else {
				_ = os.Link(full("file.txt"), full("next"))
			}
			_ = os.Rename(full("next"), full("raced pipe"))
		}
	})
	for range 400 {
		for _, path := range []string{"raced/x.txt", "raced/secret.txt", "raced.txt", "raced pipe"} {
			for name, input := range ways(path) {
				r, err := p.call(name, input)
				if strings.Contains(r.Content, secret) || err != nil && strings.Contains(err.Error(), secret) {
					t.Fatalf("%s %s gave what is outside: %q, %v", name, path, r.Content, err)
				}
			}
		}
	}
	close(stop)
	swaps.Wait()
	if after := listing(t, p.outside); after != before {
		t.Errorf("outside of the folder there is now\n%s", after)
	}
}

// Whatever a model writes as an input, nothing changes outside of the folder.
func FuzzInputs(f *testing.F) {
	names := []string{"read_file", "write_file", "edit_file", "glob", "grep"}
	for i, name := range names {
		for _, path := range []string{"a.txt", "../outside/secret.txt", "link", "folder/secret.txt", "new/b.txt"} {
			b, err := json.Marshal(ways(path)[name])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), b)
		}
	}
	f.Add(uint8(0), []byte(`{"path":"a.txt","offset":-1,"limit":99999999999999999999}`))
	f.Add(uint8(3), []byte(`{"pattern":"{a,{b,{c,d}}}**/../[!x]"}`))
	f.Add(uint8(4), []byte(`{"pattern":"(a*)*$","glob":"**"}`))
	f.Add(uint8(2), []byte(`{"path":"a.txt","old_string":"a","new_string":"","replace_all":true}`))
	f.Fuzz(func(t *testing.T, which uint8, input []byte) {
		p := newPlace(t)
		p.file("a.txt", "a text\nwith lines\n")
		p.link("../outside/secret.txt", "link")
		p.link("../outside", "folder")
		before := listing(t, p.outside)
		r, err := p.tools.Call(t.Context(), tool.Call{Name: names[int(which)%len(names)], Input: input})
		if err != nil && (r.Content != "" || err.Error() == "" || strings.Contains(err.Error(), filepath.Dir(p.dir))) {
			t.Errorf("%q with error %v", r.Content, err)
		}
		if strings.Contains(r.Content, secret) {
			t.Errorf("gave %q", r.Content)
		}
		if err == nil && !json.Valid(r.Output) {
			t.Errorf("the output is %s", r.Output)
		}
		if after := listing(t, p.outside); after != before {
			t.Errorf("outside of the folder there is now\n%s", after)
		}
	})
}
