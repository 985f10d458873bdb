package upstream

import (
	"slices"
	"strings"
)

// Secrets are the keys that go with requests: a server may repeat them in what it says. Make it with [NewSecrets]; the
// zero value hides nothing.
type Secrets []string

// NewSecrets takes keys in any order; empty ones are none.
func NewSecrets(keys ...string) Secrets {
	all := slices.DeleteFunc(slices.Clone(keys), func(s string) bool { return s == "" })
	// The longest first, since one may be part of another.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// Hide takes the secrets out of a text. One that was cut off may end within a secret: the beginning of it goes, too.
func (s Secrets) Hide(text string, cut bool) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	if !cut {
		return text
	}
	for _, secret := range s {
		for n := min(len(secret), len(text)); n > 0; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n]
				break
			}
		}
	}
	return text
}
