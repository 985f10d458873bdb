package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reference is a file of the repository in backquotes, or a file and the name of a test in it.
var reference = regexp.MustCompile("`((?:protocol|session|turn|gateway|web|e2e)/[^`: ]+\\.[a-z]+)(?:: ([^`]+))?`")

// TestCoverageIsReal: what COVERAGE.md names is there.
func TestCoverageIsReal(t *testing.T) {
	text, err := os.ReadFile("COVERAGE.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range reference.FindAllStringSubmatch(line, -1) {
			found++
			body, err := os.ReadFile(filepath.Join("..", m[1]))
			if err != nil {
				t.Errorf("line %d: there is no %s", i+1, m[1])
			} else if name := m[2]; name != "" && !strings.Contains(string(body), name) {
				t.Errorf("line %d: %s has no %q", i+1, m[1], name)
			}
		}
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.Contains(line, "---") && !strings.Contains(line, "held by") && !reference.MatchString(cells[2]) {
			t.Errorf("line %d names no test: %s", i+1, line)
		}
	}
	if found < 80 {
		t.Errorf("only %d references", found)
	}
}
