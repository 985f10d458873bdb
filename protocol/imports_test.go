package protocol_test

import (
	"go/build"
	"slices"
	"strings"
	"testing"
)

// The package and those below it are pure: whoever imports them gets the standard library and nothing that reads,
// writes, waits or looks at a clock. Only its tests need more.
func TestImports(t *testing.T) {
	for folder, ours := range map[string][]string{
		".":       {"vela/protocol/ganglia", "vela/protocol/signal"},
		"ganglia": {"vela/protocol/signal"},
		"signal":  {},
	} {
		pkg, err := build.ImportDir(folder, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(pkg.Imports) == 0 {
			t.Fatalf("no imports: is %s the package's folder?", folder)
		}
		for _, path := range pkg.Imports {
			first, _, _ := strings.Cut(path, "/")
			if strings.Contains(first, ".") || first == "vela" && !slices.Contains(ours, path) {
				t.Errorf("%s: %s is not of the standard library", folder, path)
			}
			if slices.Contains([]string{"net", "os", "time", "sync", "log", "io", "context", "unsafe"}, first) {
				t.Errorf("%s: %s does not belong into a package that does no IO", folder, path)
			}
		}
	}
}
