package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

var globDefinition = Definition{
	Name: glob,
	Description: "List the files and folders whose paths fit a pattern: * is any part of a name, ** any folders, {a,b} either. A folder ends with a slash. " +
		"At most 1,000, sorted. Links are not followed, and .git is left out.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {
			"pattern": {"type": "string", "description": "Such as **/*.go or docs/*.md"},
			"path": {"type": "string", "description": "The folder that the pattern begins in. Default: the whole folder"}
		},
		"required": ["pattern"],
		"additionalProperties": false
	}`),
	ReadOnly: true,
}

const maxFound = 1000 // paths

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (f *folder) glob(ctx context.Context, input json.RawMessage) (Result, error) {
	var in globInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if in.Pattern == "" {
		return Result{}, missing("pattern")
	}
	if err := pattern("pattern", in.Pattern); err != nil {
		return Result{}, err
	}
	base, rest := doublestar.SplitPattern(in.Pattern)
	start, err := local(path.Join(in.Path, base))
	if err != nil {
		return Result{}, err
	}
	start = filepath.ToSlash(start)
	var found listing
	w := walk{folder: f, visit: func(p string, d fs.DirEntry) error {
		if !doublestar.MatchUnvalidated(rest, relative(start, p)) {
			return nil
		}
		if d.IsDir() {
			p += "/"
		}
		return found.add(visible(p), maxFound)
	}}
	if err := w.run(ctx, start); err != nil {
		return Result{}, err
	}
	return found.result(&w, "Nothing fits the pattern.", fmt.Sprintf("There are more than these %d", found.lines)), nil
}

// relative is a path as seen from a folder that it is in.
func relative(dir, p string) string {
	if dir == "." {
		return p
	}
	return strings.TrimPrefix(p, dir+"/")
}

// listing is what a search found, a line each.
type listing struct {
	text  strings.Builder
	lines int
	full  bool
}

// add returns errEnough when there is no room for the line.
func (l *listing) add(line string, most int) error {
	if l.lines == most || l.text.Len()+len(line) >= maxRead {
		l.full = true
		return errEnough
	}
	l.lines++
	l.text.WriteString(line)
	l.text.WriteByte('\n')
	return nil
}

func (l *listing) result(w *walk, none, full string) Result {
	text, note := l.text.String(), ""
	switch {
	case l.full:
		note = "[" + full + ". Look for less at a time.]"
	case w.more:
		note = fmt.Sprintf("[There are more than %d files and folders; the rest was not looked at. Begin in a smaller folder.]", maxEntries)
	case text == "":
		note = none
	}
	return Result{Content: text + note, Output: encode(output{Content: text})}
}
