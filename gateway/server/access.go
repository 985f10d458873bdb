package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// origins are the pages, besides our own, that may connect: "scheme://host[:port]", lower case.
type origins map[string]bool

func parseOrigins(list []string) (origins, error) {
	o := make(origins, len(list))
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.TrimSuffix(u.Path, "/") != "" {
			return nil, fmt.Errorf("server: %q is no origin: write it like https://example.org or http://localhost:5173", text)
		}
		o[strings.ToLower(u.Scheme+"://"+u.Host)] = true
	}
	return o, nil
}

// check refuses a browser whose page comes from elsewhere (RFC 6454, RFC 6455 section 10.2). Programs send no Origin.
func (o origins) check(r *http.Request) error {
	origin := strings.ToLower(r.Header.Get("Origin"))
	if origin == "" || o[origin] {
		return nil
	}
	u, err := url.Parse(origin)
	if err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (r.TLS == nil || u.Scheme == "https") {
		return nil
	}
	return echo.NewHTTPError(http.StatusForbidden,
		"This page may not connect to the gateway. Start the gateway with --origin and the page's origin to allow it.")
}

// allowsHost says whether a request may name this host: a loopback one, or that of an allowed origin. Anything else is
// a foreign page whose name was made to point here (DNS rebinding), for which its origin would look like our own.
func (o origins) allowsHost(host string) bool {
	name := hostname(host)
	if ip := net.ParseIP(name); name == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	return o["http://"+strings.ToLower(host)] || o["https://"+strings.ToLower(host)]
}

// hostname is a Host header without its port, lower case.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func (s *Server) ownHostOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.origins.allowsHost(c.Request().Host) && !s.ownName(c.Request()) {
			return echo.NewHTTPError(http.StatusForbidden,
				"The gateway is not known under this name. Start it with --origin and the page's origin to allow it.")
		}
		return next(c)
	}
}

// policy is the content security policy of every answer: a page needs nothing from elsewhere. The phone is the one that
// does; see [phonePolicy].
const policy = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// phonePolicy also lets a page connect to LiveKit, whose address is ws:// or wss://: its clients open a socket there, and
// ask by HTTP why one was refused.
func phonePolicy(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return policy
	}
	return policy + "; connect-src 'self' " + u.Scheme + "://" + u.Host + " http" + strings.TrimPrefix(u.Scheme, "ws") + "://" + u.Host
}

// secureHeaders go with every answer.
func secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "microphone=(self)")
		return next(c)
	}
}
