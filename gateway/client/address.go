package client

import (
	"fmt"
	"net/url"
	"strings"
)

// Address is where a gateway listens. Made by [ParseAddress].
type Address struct {
	url url.URL // scheme http or https; the path without /ws
}

// ParseAddress reads host:port, http://…, https://…, ws:// or wss://…, with or without the /ws at its end. A path
// before that is kept, for a gateway behind a proxy.
func ParseAddress(s string) (Address, error) {
	text := s
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return Address{}, fmt.Errorf("%q is no address of a gateway: write host:port, http://host:port or ws://host:port", s)
	}
	scheme, ok := map[string]string{"http": "http", "ws": "http", "https": "https", "wss": "https"}[u.Scheme]
	if !ok {
		return Address{}, fmt.Errorf("a gateway is not reached by %s://: write http, https, ws or wss", u.Scheme)
	}
	u.Scheme, u.Fragment = scheme, ""
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/ws")
	u.RawPath = ""
	return Address{*u}, nil
}

// Host is the host and port as they were given.
func (a Address) Host() string { return a.url.Host }

// Socket is the URL of the WebSocket endpoint; turns is added as ?turns= unless empty.
func (a Address) Socket(turns string) string {
	u := a.url
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	u.Path += "/ws"
	if turns != "" {
		q := u.Query()
		q.Set("turns", turns)
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// HTTP is the URL of a page of the gateway. The path begins with a slash and may have a query.
func (a Address) HTTP(path string) string {
	u := a.url
	u.RawQuery = ""
	return strings.TrimSuffix(u.String(), "/") + path
}
