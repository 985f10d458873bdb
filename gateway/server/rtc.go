package server

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// rtcPaths are where LiveKit's clients talk to their server (livekit-server, pkg/service/rtcservice.go): its signalling, with a
// token of LiveKit's own. What they say and hear goes elsewhere, and not through us.
var rtcPaths = []string{"/rtc", "/rtc/v1", "/rtc/validate", "/rtc/v1/validate"}

const (
	maxSignalling = 256 // connections that are passed on at once
	noLiveKit     = "LiveKit does not answer. Whoever runs this gateway has to start it."
	manyRooms     = "As many people are in rooms as may be. Try again later."
)

// rtc passes signalling on to a LiveKit that participants reach through us: so it has our certificate and our name. A
// browser whose page came by https connects to nothing else.
func (s *Server) rtc() {
	to, err := url.Parse(s.cfg.Signalling)
	if s.cfg.Signalling == "" || err != nil {
		return
	}
	places := make(chan struct{}, maxSignalling)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("Cookie")
		},
		ModifyResponse: func(r *http.Response) error {
			for name := range r.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					r.Header.Del(name) // it is for our own pages
				}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, noLiveKit, http.StatusBadGateway)
		},
		ErrorLog: log.New(io.Discard, "", 0), // an address with a token may stand in it
	}
	serve := func(c echo.Context) error {
		if err := s.origins.check(c.Request()); err != nil {
			return err
		}
		if !s.sessions.enter() {
			return echo.NewHTTPError(http.StatusServiceUnavailable, "The gateway is stopping. Try again in a moment.")
		}
		defer s.sessions.exit()
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			return echo.NewHTTPError(http.StatusServiceUnavailable, manyRooms)
		}
		ctx, cancel := context.WithCancel(c.Request().Context())
		defer cancel()
		stop := context.AfterFunc(s.sessions.ctx, cancel)
		defer stop()
		proxy.ServeHTTP(c.Response(), c.Request().WithContext(ctx))
		return nil
	}
	for _, path := range rtcPaths {
		s.echo.GET(path, serve)
	}
}
