package server

import (
	"net/http"
	"strings"
)

// tokenEntry begins the subprotocol entry that carries a browser's token: a browser can set no header of a handshake.
const tokenEntry = "vela.token."

// credential is what a request shows to say who sent it: the zero value is nothing.
type credential struct {
	text    string
	browser bool // it came as a subprotocol entry
	alone   bool // with no other entry beside it
	bad     bool // it is none, or there are several
}

func (c credential) none() bool { return c.text == "" && !c.bad }

// takeCredential reads the credential, and takes it out of the headers.
func takeCredential(h http.Header) credential {
	var c credential
	for _, value := range h["Authorization"] {
		scheme, text, _ := strings.Cut(value, " ")
		text = strings.Trim(text, " ")
		if !strings.EqualFold(scheme, "Bearer") || text == "" || c.text != "" {
			c.bad = true
		}
		c.text = text
	}
	delete(h, "Authorization")
	rest, entries := cutTokens(h["Sec-Websocket-Protocol"])
	if len(entries) == 0 {
		return c
	}
	delete(h, "Sec-Websocket-Protocol")
	if len(rest) > 0 {
		h["Sec-Websocket-Protocol"] = []string{strings.Join(rest, ", ")}
	}
	return credential{
		text:    entries[0],
		browser: true,
		alone:   len(rest) == 0,
		bad:     !c.none() || len(entries) > 1 || entries[0] == "",
	}
}

// cutTokens parts the entries that carry a token from the names of protocols.
func cutTokens(values []string) (names, tokens []string) {
	for _, value := range values {
		for entry := range strings.SplitSeq(value, ",") {
			entry = strings.Trim(entry, " \t")
			if len(entry) >= len(tokenEntry) && strings.EqualFold(entry[:len(tokenEntry)], tokenEntry) {
				tokens = append(tokens, entry[len(tokenEntry):])
			} else if entry != "" {
				names = append(names, entry)
			}
		}
	}
	return names, tokens
}
