package tool

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiff bounds a diff, in bytes. Beyond it the diff ends between two lines and says so.
const maxDiff = 128 << 10

// diff is the unified diff of a file's texts, with three lines of context; empty if they are the same. The names in its
// head are on one line each whatever is in them.
func diff(p, before, after string) string {
	if before == after {
		return ""
	}
	p = visible(p)
	text, err := udiff.ToUnified("a/"+p, "b/"+p, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil { // the edits do not fit the text that they were made of
		return ""
	}
	if len(text) <= maxDiff {
		return text
	}
	kept := prefix(text, maxDiff)
	kept = kept[:strings.LastIndexByte(kept, '\n')+1]
	return kept + fmt.Sprintf("\\ %s more\n", plural(lines(text[len(kept):]), "line"))
}
