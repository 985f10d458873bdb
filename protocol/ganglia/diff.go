package ganglia

import (
	"encoding/json"
	"fmt"
	"strings"
)

// hunk is one of the places that a diff changes, as Claude Code's structuredPatch lists them.
type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"` // each begins with a space, - or +
}

func (h hunk) appendTo(b *strings.Builder) {
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
	for _, l := range h.Lines {
		b.WriteString(l + "\n")
	}
}

// unified is a unified diff of one file, as GNU diff and git write it; empty if nothing changes.
func unified(path string, hunks []hunk) string {
	if len(hunks) == 0 {
		return ""
	}
	var b strings.Builder
	path = strings.TrimPrefix(path, "/")
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", path, path)
	for _, h := range hunks {
		h.appendTo(&b)
	}
	return b.String()
}

// diff is the diff that a result brings along, with lines of context; empty if there is none. Others put something of
// their own, made for a terminal, under the same names: it is none without a hunk's header.
func (o object) diff(path string) string {
	for _, from := range []object{o, parse(o["details"])} {
		for _, name := range []string{"diff", "patch"} {
			if s, ok := from.text(name); ok && strings.Contains("\n"+s, "\n@@ -") {
				return s
			}
		}
	}
	var patch []hunk
	if json.Unmarshal(o["structuredPatch"], &patch) != nil {
		return ""
	}
	return unified(path, patch)
}

// requested is the diff of what a call wants replaced; empty if it does not say. Where in the file that stands is not
// known: the first hunk is at line 1, and each follows the one before.
func (o object) requested(path string) string {
	list := []object{o}
	if edits := (*[]object)(nil); json.Unmarshal(o["edits"], &edits) == nil && edits != nil {
		list = *edits
	}
	var hunks []hunk
	oldLine, newLine := 1, 1
	for _, one := range list {
		before, gone := one.text("old_string", "oldText")
		after, come := one.text("new_string", "newText")
		if !gone && !come {
			continue
		}
		h := replacement(before, after)
		h.OldStart, h.NewStart = start(oldLine, h.OldLines), start(newLine, h.NewLines)
		oldLine, newLine = oldLine+h.OldLines, newLine+h.NewLines
		hunks = append(hunks, h)
	}
	return unified(path, hunks)
}

// replacement is the hunk that takes all of one text out and puts the other in.
func replacement(before, after string) hunk {
	old, fresh := prefixed("-", before), prefixed("+", after)
	return hunk{OldLines: len(old), NewLines: len(fresh), Lines: append(old, fresh...)}
}

// start is how a hunk's header writes where it begins: of no lines, the line before.
func start(line, lines int) int {
	if lines == 0 {
		return line - 1
	}
	return line
}

// prefixed splits a text into lines; whether its last line ends in a newline makes no difference.
func prefixed(sign, s string) []string {
	if s == "" {
		return nil
	}
	var lines []string
	for l := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		lines = append(lines, sign+l)
	}
	return lines
}
