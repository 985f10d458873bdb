package tool

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

var grepDefinition = Definition{
	Name: grep,
	Description: "Search the text files of the folder for a regular expression (RE2), line by line. Gives lines such as path:12:text, at most 500. " +
		"Links are not followed, and binary files and .git are left out.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {
			"pattern": {"type": "string", "description": "Such as func \\w+\\( or (?i)todo"},
			"path": {"type": "string", "description": "The folder or file to search. Default: the whole folder"},
			"glob": {"type": "string", "description": "Only files that fit it: *.go by name, or docs/**/*.md by path"}
		},
		"required": ["pattern"],
		"additionalProperties": false
	}`),
	ReadOnly: true,
}

const (
	maxMatches = 500
	maxLine    = 500 // runes of a line that are shown
)

type grepInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

func (f *folder) grep(ctx context.Context, input json.RawMessage) (Result, error) {
	var in grepInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	s, err := in.search(f)
	if err != nil {
		return Result{}, err
	}
	start, err := local(cmp.Or(in.Path, "."))
	if err != nil {
		return Result{}, err
	}
	start = filepath.ToSlash(start)
	info, err := f.root.Stat(start)
	if err != nil {
		return Result{}, problem(start, err)
	}
	w := walk{folder: f, visit: func(p string, d fs.DirEntry) error {
		if !d.Type().IsRegular() || !in.wants(relative(start, p)) {
			return nil
		}
		return s.file(ctx, p)
	}}
	if info.IsDir() {
		err = w.run(ctx, start)
	} else if err = regular(start, info); err == nil {
		err = s.file(ctx, start)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return Result{}, err
	}
	return s.found.result(&w, "No line fits the pattern.", fmt.Sprintf("There are more than these %d lines", s.found.lines)), nil
}

func (in grepInput) search(f *folder) (*search, error) {
	if in.Pattern == "" {
		return nil, missing("pattern")
	}
	if len(in.Pattern) > 1000 {
		return nil, say(nil, "The pattern is longer than 1000 bytes.")
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, say(err, "The pattern is no regular expression: %s.", short(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 200))
	}
	if err := pattern("glob", in.Glob); err != nil {
		return nil, err
	}
	return &search{folder: f, pattern: re}, nil
}

// wants says whether a file is to be searched. A glob without a slash is about names.
func (in grepInput) wants(p string) bool {
	switch {
	case in.Glob == "":
		return true
	case strings.Contains(in.Glob, "/"):
		return doublestar.MatchUnvalidated(in.Glob, p)
	default:
		return doublestar.MatchUnvalidated(in.Glob, path.Base(p))
	}
}

// search is a regular expression on its way through files.
type search struct {
	folder  *folder
	pattern *regexp.Regexp
	found   listing
}

// file searches one file, and returns errEnough when there is no room for what it finds. One that cannot be read is
// passed over, as is one that is binary. Of a line that is longer than the buffer, only its beginning is searched.
func (s *search) file(ctx context.Context, p string) error {
	file, err := s.folder.open(p)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	r := bufio.NewReaderSize(file, 64<<10)
	if isBinary(r) {
		return nil
	}
	begins := true // the next piece is the beginning of a line
	for n := 1; ctx.Err() == nil; {
		piece, err := r.ReadSlice('\n')
		if begins && len(piece) > 0 {
			if err := s.line(p, n, piece); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
			n, begins = n+1, true
		case errors.Is(err, bufio.ErrBufferFull):
			begins = false
		default: // its end, or it cannot be read on
			return nil
		}
	}
	return ctx.Err()
}

func (s *search) line(p string, n int, text []byte) error {
	line := strings.TrimRight(string(text), "\r\n")
	if !s.pattern.MatchString(line) {
		return nil
	}
	shown := clip(strings.ToValidUTF8(line, "\uFFFD"), maxLine)
	if len(shown) < len(line) {
		shown += "…"
	}
	return s.found.add(fmt.Sprintf("%s:%d:%s", visible(p), n, shown), maxMatches)
}
