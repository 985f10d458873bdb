package web

import (
	"io/fs"
	"regexp"
	"testing"
	"testing/fstest"
)

func TestPlaceholderSurvivesTheBuild(t *testing.T) {
	if _, err := fs.Stat(FS(), ".gitkeep"); err != nil {
		t.Errorf("dist has no placeholder, so a clean clone would not compile: %v", err)
	}
}

func TestBuilt(t *testing.T) {
	if built(fstest.MapFS{".gitkeep": {}}) {
		t.Error("a folder with nothing but the placeholder counts as built")
	}
	if !built(fstest.MapFS{"index.html": {}}) {
		t.Error("a folder with an index.html does not count as built")
	}
}

// The gateway serves the page under default-src 'self'. Inline scripts, inline styles and data: addresses would be refused by the browser,
// and nothing but a person looking at the console would notice.
func TestPageNeedsNoInlineCode(t *testing.T) {
	if !Built() {
		t.Skip("the page is not built; npm run build in this folder builds it")
	}
	forbidden := []*regexp.Regexp{
		regexp.MustCompile(`(?s)<script[^>]*>\s*[^<\s]`),
		regexp.MustCompile(`<style`),
		regexp.MustCompile(`\sstyle=`),
		regexp.MustCompile(`\son[a-z]+=`),
		regexp.MustCompile(`data:`),
		regexp.MustCompile(`(?:src|href)="(?:https?:)?//`),
	}
	for _, name := range []string{"index.html", "phone.html"} {
		page, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range forbidden {
			if found := f.Find(page); found != nil {
				t.Errorf("%s has %q, which default-src 'self' refuses", name, found)
			}
		}
	}
}
