// Package upstream is what requests to anybody's HTTP server of models or of speech have in common: which address it may
// have ([BaseURL]), the limits of a connection to it ([Transport]), and that no key gets into an error ([Secrets]).
//
// It is a package of its own since package turn/stream, whose answers are event streams and are asked for again where
// that is of use, and package session/speechserver, whose answers are sound or one document, share this and no more. It
// imports nothing of ours.
package upstream

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// BaseURL checks the address below which requests are made, and returns it without a slash at its end. It is http or
// https, with or without a path. The errors are for whoever configures it, and do not repeat it: a key may be in it.
func BaseURL(address string) (string, error) {
	base, err := url.Parse(address)
	switch {
	case err != nil:
		return "", errors.New("the base URL is no URL") // url.Error has all of it
	case base.Scheme != "http" && base.Scheme != "https", base.Hostname() == "":
		return "", errors.New("the base URL has to be a whole one, such as http://127.0.0.1:1234/v1")
	case base.User != nil, base.RawQuery != "", base.ForceQuery, base.Fragment != "":
		return "", errors.New("the base URL must not have a user, a query or a fragment; the key is set by itself")
	}
	return strings.TrimRight(address, "/"), nil
}

// Transport connects within connect, and once more so long for TLS, through the proxy of the environment where there is
// one. It keeps connections for 90 s, up to idle of them to each host. What is left to set, such as
// ResponseHeaderTimeout, is set before its first use.
func Transport(connect time.Duration, idle int) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout:    connect,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // it would hold pieces back
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
