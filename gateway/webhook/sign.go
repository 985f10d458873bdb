package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// secretPrefix marks a secret for symmetric signatures.
const secretPrefix = "whsec_"

// How long a secret is, in bytes.
const leastSecret, mostSecret = 24, 64

// parseSecret reads a secret. Its error does not show it.
func parseSecret(text string) ([]byte, error) {
	encoded, marked := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !marked || err != nil || len(key) < leastSecret || len(key) > mostSecret {
		return nil, errors.New(`webhook: the secret has to be whsec_ and the base64 of 24 to 64 random bytes. This makes one: echo "whsec_$(openssl rand -base64 32)"`)
	}
	return key, nil
}

// sign is the webhook-signature header: version 1, HMAC-SHA256 over the message's id, the time of the attempt in Unix
// seconds, and the body, with dots between them.
func sign(key []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// messageID is the signal's id. One that has more than letters, digits, - and _, which the parts of a signed message and
// a header may be mistaken for, is replaced by its SHA-256.
func messageID(id string) string {
	plain := id != ""
	for _, c := range []byte(id) {
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if plain {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
