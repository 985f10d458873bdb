package gateway_test

import (
	"encoding/json"
	"errors"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// arrows says which of our packages a package may import: itself, what is below it, and these. A "/..." covers the
// folder and all below it. What a package may import outside of Vela is limited only for protocol.
var arrows = map[string][]string{
	"protocol":             {"protocol/ganglia", "protocol/signal"},
	"protocol/ganglia":     {"protocol/signal"},
	"protocol/signal":      {},
	"turn":                 {"protocol/..."},
	"turn/*":               {"turn", "protocol/..."},
	"turn/processgroup":    {},
	"turn/dispatch":        {"turn", "turn/processgroup", "protocol/..."},
	"turn/tool":            {"turn", "turn/processgroup", "protocol/..."},
	"turn/stream":          {"turn", "turn/upstream", "protocol/..."},
	"turn/agent":           {"turn", "turn/tool", "protocol/..."},
	"turn/openai":          {"turn", "turn/agent", "turn/stream", "turn/tool", "protocol/..."},
	"turn/anthropic":       {"turn", "turn/agent", "turn/stream", "turn/tool", "protocol/..."},
	"turn/mcp":             {"turn", "turn/tool", "protocol/..."},
	"session":              {"session/speech", "turn", "protocol/..."},
	"session/speech":       {},
	"session/*":            {"session/speech", "protocol"},
	"session/speechserver": {"session/speech", "turn/upstream", "protocol"},
	"session/wavcommand":   {"session/speech", "turn/processgroup", "protocol"},
	"gateway":              {"gateway/...", "session/...", "turn/...", "protocol/...", "web"},
	"gateway/cmd/vela":     {"gateway/...", "session/...", "turn/...", "protocol/..."},
	"gateway/client":       {"session/speech", "protocol"},
	"gateway/script":       {"gateway/client", "session/speech", "protocol"},
	"gateway/source":       {"turn", "turn/agent", "turn/anthropic", "turn/openai", "turn/openclaw", "turn/stream", "protocol/..."},
	"gateway/discovery":    {"turn/openai"},
	"gateway/feed":         {"protocol", "protocol/signal"},
	"gateway/webhook":      {"gateway/feed"},
	"gateway/pipeline":     {"protocol/signal"},
	"gateway/watch":        {},
	"gateway/midi":         {"gateway/watch", "protocol/signal"},
	"gateway/room":         {"gateway/auth", "session", "session/speech", "turn", "protocol/..."},
	"gateway/server":       {"gateway/auth", "session", "session/speech", "turn", "protocol/..."},
	"gateway/*":            {"session", "session/speech", "turn", "protocol/..."},
	"web":                  {},
}

type pkg struct {
	ImportPath, Dir                     string
	GoFiles, Imports, TestImports, Deps []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json", "vela/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// allowed finds the rule for a package: its own, or that of the folder it lies in.
func allowed(name string) ([]string, bool) {
	if rule, ok := arrows[name]; ok {
		return rule, true
	}
	rule, ok := arrows[filepath.Dir(name)+"/*"]
	return rule, ok
}

func permits(rule []string, imported string) bool {
	return slices.ContainsFunc(rule, func(r string) bool {
		folder, deep := strings.CutSuffix(r, "/...")
		return imported == r || deep && (imported == folder || strings.HasPrefix(imported, folder+"/"))
	})
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "vela/")
		rule, ok := allowed(name)
		if !ok {
			t.Errorf("%s: no rule says what it may import; add one to arrows, and mind the direction", name)
		}
		for _, imported := range p.Imports {
			if ours, is := strings.CutPrefix(imported, "vela/"); is && !permits(rule, ours) {
				t.Errorf("%s imports %s: not among %v", name, ours, rule)
			}
		}
	}
}

// What only tests need imports testing, or is imported by what does.
func TestTheProgramHoldsNothingOfTests(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath == "vela/gateway/cmd/vela" && slices.Contains(p.Deps, "testing") {
			t.Errorf("%s has testing in it", p.ImportPath)
		}
	}
}

// TestPackagesLieInTheFoldersOfTheProject holds the top level to the five folders with Go in them: a sixth would need a
// reason that the reader of the list in README.md sees at once.
func TestPackagesLieInTheFoldersOfTheProject(t *testing.T) {
	for _, p := range packages(t) {
		top, _, _ := strings.Cut(strings.TrimPrefix(p.ImportPath, "vela/"), "/")
		if !slices.Contains([]string{"gateway", "protocol", "session", "turn", "web"}, top) {
			t.Errorf("%s lies in no folder of the project's top level", p.ImportPath)
		}
	}
}

func TestProtocolNeedsTheStandardLibraryAlone(t *testing.T) {
	forbidden := []string{"net", "os", "net/http"}
	for _, p := range packages(t) {
		if p.ImportPath != "vela/protocol" {
			continue
		}
		for _, imported := range p.Imports {
			if strings.Contains(imported, ".") || slices.Contains(forbidden, imported) {
				t.Errorf("protocol imports %s", imported)
			}
		}
	}
}

func TestSessionKnowsNoTransport(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != "vela/session" {
			continue
		}
		for _, imported := range p.Imports {
			if imported == "net" || strings.HasPrefix(imported, "net/") || strings.Contains(imported, "websocket") || imported == "vela/turn/deterministic" {
				t.Errorf("session imports %s", imported)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if comment(t, p) == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func comment(t *testing.T, p pkg) string {
	for _, file := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			return doc.Synopsis(f.Doc.Text())
		}
	}
	return ""
}
