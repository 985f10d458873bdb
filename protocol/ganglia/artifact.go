package ganglia

import (
	"strings"

	"vela/protocol/signal"
)

// ArtifactOf is what a tool's result has to show; false if it is nothing. The call is the one that the result belongs
// to. Whatever a tool does, its failure is an error artifact.
func ArtifactOf(call signal.ToolCall, result signal.ToolResult) (Artifact, bool) {
	in, out := parse(call.Input), resultOf(result.Output)
	if !result.Success {
		return Artifact{ArtifactType: Error, Title: "Error: " + line(call.ToolName), Message: text(out.message())}, true
	}
	path := pathOf(in, out)
	switch tools[call.ToolName] {
	case read:
		return readArtifact(path, in, out)
	case edit:
		diff := out.diff(path)
		if diff == "" {
			diff = in.requested(path)
		}
		return diffArtifact("Edit: ", path, diff)
	case write:
		return diffArtifact("Write: ", path, out.diff(path))
	case search:
		return searchArtifact(in, out)
	}
	return Artifact{}, false
}

// pathOf is the file that a call is about.
func pathOf(in, out object) string {
	path, ok := in.text("file_path", "path", "file", "notebook_path")
	if !ok {
		path, _ = out.text("path", "filePath")
	}
	return line(path)
}

func readArtifact(path string, in, out object) (Artifact, bool) {
	content, ok := out.content()
	if path == "" || !ok {
		return Artifact{}, false
	}
	a := Artifact{ArtifactType: Code, Title: base(path), Content: text(content)}
	switch language := languageOf(path); language {
	case "markdown":
		a.ArtifactType, a.Path = Markdown, path
	case "":
		a.ArtifactType, a.Path = File, path
	default:
		a.File, a.Language, a.StartLine = path, language, startLine(in, out)
	}
	return a, true
}

func diffArtifact(verb, path, diff string) (Artifact, bool) {
	if path == "" || diff == "" {
		return Artifact{}, false
	}
	return Artifact{ArtifactType: Diff, Title: verb + base(path), File: path, Diff: text(diff)}, true
}

func searchArtifact(in, out object) (Artifact, bool) {
	found, ok := out.found()
	if !ok {
		return Artifact{}, false
	}
	query, _ := in.text("pattern", "query", "path")
	return Artifact{ArtifactType: SearchResults, Title: "Search: " + shortened(line(query)), Query: line(query), Results: found}, true
}

// shortened leaves the first 30 characters.
func shortened(query string) string {
	if runes := []rune(query); len(runes) > 30 {
		return string(runes[:30]) + "..."
	}
	return query
}

// base is the last segment of a path, be it written as on Unix or as on Windows.
func base(path string) string {
	trimmed := strings.TrimRight(path, `/\`)
	return trimmed[strings.LastIndexAny(trimmed, `/\`)+1:]
}
