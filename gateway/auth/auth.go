// Package auth knows who may use a gateway and for how much: server keys, which its operator holds, and the tokens
// made with them, which clients hold for a short while.
//
// Start at [New]. [Authority.Key] recognises a server key, [Authority.Issue] makes a token with [Rights] of its own,
// and [Authority.Admit] turns a token into a [Pass]. A pass is what a session goes by: [Pass.Enter] takes one of the
// token's places, [Pass.Take] some of its minutes of audio. What a token has used is known to this process only, and
// only for as long as the token is good or a session of it runs.
//
// The package knows no transport, logs nothing, and none of its errors holds any part of a key or a token. All of it may
// be called from any goroutine.
package auth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// MinSecret is how many characters a server key's secret has at least.
const MinSecret = 32

// Key is a server key. Made by [ParseKeys]; it keeps nothing that the secret could be read from.
type Key struct {
	name string
	hash [sha256.Size]byte // of the secret
	sign []byte            // derived from the secret: what its tokens are signed with
}

var (
	keyName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	// A secret has no dot, so that it cannot be taken for a token.
	keySecret = regexp.MustCompile(`^[A-Za-z0-9_+/=~-]+$`)
)

// ParseKeys reads name:secret[,name:secret…]. Its errors name keys by their place and never show them.
func ParseKeys(list string) ([]Key, error) {
	var keys []Key
	seen := map[string]bool{}
	for i, text := range strings.Split(list, ",") {
		name, secret, found := strings.Cut(strings.TrimSpace(text), ":")
		var wrong string
		switch {
		case !found:
			wrong = "is not name:secret"
		case !keyName.MatchString(name):
			wrong = "has a bad name: up to 32 letters, digits, - and _"
		case seen[name]:
			wrong = "has the name of another"
		case len(secret) < MinSecret:
			wrong = fmt.Sprintf("has a secret of fewer than %d characters", MinSecret)
		case !keySecret.MatchString(secret):
			wrong = "has a secret with characters other than letters, digits and - _ + / = ~"
		}
		if wrong != "" {
			return nil, fmt.Errorf("auth: key %d %s", i+1, wrong)
		}
		seen[name] = true
		keys = append(keys, newKey(name, secret))
	}
	return keys, nil
}

func newKey(name, secret string) Key {
	sign, err := hkdf.Key(sha256.New, []byte(secret), nil, "vela token 1 "+name, sha256.Size)
	if err != nil {
		panic(err) // the length is a constant that it takes
	}
	return Key{name: name, hash: sha256.Sum256([]byte(secret)), sign: sign}
}

// String is the key's name, so that no way of printing a key shows more.
func (k Key) String() string { return k.name }

// GoString is for %#v.
func (k Key) GoString() string { return k.name }

// Authority decides who may come in. Make it with [New].
type Authority struct {
	keys []Key

	mu    sync.Mutex
	usage map[string]*usage // by a token's id
}

// New returns the authority of these keys.
func New(keys []Key) (*Authority, error) {
	if len(keys) == 0 {
		return nil, errors.New("auth: there is no key")
	}
	return &Authority{keys: keys, usage: map[string]*usage{}}, nil
}

// Key says which server key has this secret. How long it takes does not depend on how much of it is right.
func (a *Authority) Key(secret string) (name string, ok bool) {
	hash := sha256.Sum256([]byte(secret))
	for i := range a.keys {
		if subtle.ConstantTimeCompare(hash[:], a.keys[i].hash[:]) == 1 {
			name, ok = a.keys[i].name, true
		}
	}
	return name, ok
}

func (a *Authority) byName(name string) (Key, bool) {
	for _, k := range a.keys {
		if k.name == name {
			return k, true
		}
	}
	return Key{}, false
}

// LooksLikeToken tells a token from a server key's secret, which has no dot.
func LooksLikeToken(credential string) bool { return strings.Contains(credential, ".") }
