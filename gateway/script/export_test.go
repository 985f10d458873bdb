package script

import (
	"strings"
	"time"
)

// What a test expects without a within comes at last, also on a machine that stands still for a while.
func init() { defaultLimit = time.Minute }

// Diff says how a message differs from an expected one, which is JSON with the placeholders of the package: a line for
// each difference, with its place. It is empty when the two agree. The error is about the expectation.
func Diff(expected, got string) (string, error) {
	p, err := parsePattern(expected)
	if err != nil {
		return "", err
	}
	return strings.Join(p.differences([]byte(got), map[string]any{}, false), "\n"), nil
}
