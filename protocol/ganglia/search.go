package ganglia

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// found is what a search returned; false if that is neither a list nor a text. In order: rows of an object each, lines of
// file:line:content, a list of paths. Of a text that is none of these its beginning is shown in one row, as it may say
// something.
func (o object) found() ([]SearchResult, bool) {
	if rows, ok := objects(o["content"]); ok {
		return rows, true
	}
	content, isText := o.content()
	if rows := matches(content); len(rows) > 0 {
		return rows, true
	}
	var names []string
	isList := json.Unmarshal(o["filenames"], &names) == nil && names != nil
	if len(names) > 0 {
		return paths(names), true
	}
	if rows := paths(strings.Split(content, "\n")); len(rows) > 0 {
		return rows, true
	}
	if strings.TrimSpace(content) == "" {
		return []SearchResult{}, isText || isList
	}
	return []SearchResult{{Content: excerpt(content)}}, true
}

// objects reads a list of {"file", "line", "content"}; false if there is none in it.
func objects(raw json.RawMessage) ([]SearchResult, bool) {
	var list []object
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	var r rows
	for _, one := range list {
		file, _ := one.text("file")
		var at int
		if json.Unmarshal(one["line"], &at) != nil || file == "" || at < 0 {
			continue
		}
		content, _ := one.text("content")
		r.add(file, at, content)
	}
	return r.close(), r.total > 0
}

// matches keeps the lines of file:line:content, which is how grep and its like write a place.
func matches(content string) []SearchResult {
	var r rows
	for l := range strings.SplitSeq(content, "\n") {
		l = strings.TrimSuffix(l, "\r")
		file, rest, _ := strings.Cut(l[drive(l):], ":")
		number, shown, ok := strings.Cut(rest, ":")
		if at, err := strconv.ParseUint(number, 10, 31); ok && err == nil && file != "" {
			r.add(l[:drive(l)]+file, int(at), shown)
		}
	}
	return r.close()
}

// paths keeps what is a path alone. A line with a blank in it and no separator is rather a sentence.
func paths(lines []string) []SearchResult {
	var r rows
	for _, l := range lines {
		l = strings.TrimSpace(l)
		name := l[drive(l):]
		if name != "" && !strings.Contains(name, ":") && (strings.ContainsAny(name, `/\`) || !strings.ContainsAny(name, " \t")) {
			r.add(l, 0, "")
		}
	}
	return r.close()
}

// drive is how long the drive of a Windows path is, whose colon is none of those that part file, line and content.
func drive(path string) int {
	if len(path) < 3 || path[1] != ':' || path[2] != '\\' && path[2] != '/' {
		return 0
	}
	if letter := path[0] | 0x20; letter < 'a' || letter > 'z' { // in ASCII, the bit makes it lower-case
		return 0
	}
	return 2
}

// The bounds of what a search shows.
const (
	maxResults = 1000
	maxRow     = 2 << 10 // bytes of one row's content
	maxExcerpt = 500     // characters
)

// rows collects results up to the bounds and counts the others.
type rows struct {
	list  []SearchResult
	bytes int
	total int
}

func (r *rows) add(file string, at int, content string) {
	r.total++
	if r.total > maxResults {
		return
	}
	one := SearchResult{File: line(file), Line: at, Content: short(content, maxRow)}
	// After the first that found no place, none does: the order would be another.
	if r.bytes += len(one.File) + len(one.Content); r.bytes <= maxContent {
		r.list = append(r.list, one)
	}
}

// close returns the results. Where some found no place, the last row says how many.
func (r *rows) close() []SearchResult {
	if r.total > len(r.list) {
		r.list = r.list[:min(len(r.list), maxResults-1)]
		r.list = append(r.list, SearchResult{Content: fmt.Sprintf("… %d more", r.total-len(r.list))})
	}
	if r.list == nil {
		return []SearchResult{}
	}
	return r.list
}

func excerpt(s string) string {
	runes := []rune(clean(head(s, maxExcerpt*utf8.UTFMax)))
	return string(runes[:min(len(runes), maxExcerpt)])
}
