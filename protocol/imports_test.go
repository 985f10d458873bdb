package protocol_test

import (
	"go/build"
	"slices"
	"strings"
	"testing"
)

// The package is pure: whoever imports it gets the standard library and nothing that reads, writes, waits or looks at
// a clock. Only its tests need more.
func TestImports(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkg.Imports) == 0 {
		t.Fatal("no imports: is this the package's folder?")
	}
	for _, path := range pkg.Imports {
		first, _, _ := strings.Cut(path, "/")
		if strings.Contains(first, ".") || first == "vela" {
			t.Errorf("%s is not of the standard library", path)
		}
		if slices.Contains([]string{"net", "os", "time", "sync", "log", "io", "context", "unsafe"}, first) {
			t.Errorf("%s does not belong into a package that does no IO", path)
		}
	}
}
