package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// resumeToken resumes one session. It is 256 random bits, written in base64url: nobody guesses it. Only its hash is
// kept, so that looking one up takes the same time however close a guess comes, and nothing that is stored resumes.
type resumeToken [32]byte

type tokenHash [sha256.Size]byte

func newResumeToken() (t resumeToken) {
	_, _ = rand.Read(t[:]) // it never fails (crypto/rand)
	return t
}

// parseToken reads what a client sends; false if it never was a token.
func parseToken(text string) (t resumeToken, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != len(t) {
		return t, false
	}
	return resumeToken(b), true
}

func (t resumeToken) String() string { return base64.RawURLEncoding.EncodeToString(t[:]) }

func (t resumeToken) hash() tokenHash { return sha256.Sum256(t[:]) }
