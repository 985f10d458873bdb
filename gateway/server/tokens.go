package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"vela/gateway/auth"
	"vela/session"
)

const maxTokenRequest = 4 << 10 // bytes

// tokenRequest is the body of POST /api/tokens; whatever is left out gets its default.
type tokenRequest struct {
	TTL          *int      `json:"ttl"` // seconds
	Sessions     *int      `json:"sessions"`
	AudioMinutes *int      `json:"audioMinutes"`
	Turns        *[]string `json:"turns"`
	Signals      *[]string `json:"signals"`
}

type tokenAnswer struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// serveTokens makes a token for a client, for whoever shows a server key.
func (s *Server) serveTokens(c echo.Context) error {
	if s.cfg.Auth == nil {
		return echo.NewHTTPError(http.StatusNotFound, noAuth)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	r, err := readTokenRequest(http.MaxBytesReader(c.Response(), c.Request().Body, maxTokenRequest))
	if err != nil {
		return err
	}
	rights, err := r.rights()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	key := callerOf(c).key
	token, expires, err := s.cfg.Auth.Issue(key, rights)
	if err != nil {
		return err
	}
	s.log.Info("token made", "key", key, "expires", expires.UTC())
	return c.JSON(http.StatusOK, tokenAnswer{token, expires.UTC()})
}

// readTokenRequest reads one JSON object with no field that we do not know; nothing at all asks for the defaults.
func readTokenRequest(body io.Reader) (tokenRequest, error) {
	var r *tokenRequest
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if errors.Is(err, io.EOF) {
		return tokenRequest{}, nil
	}
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = more
			if err == nil {
				err = errors.New("something follows it")
			}
		}
	}
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return tokenRequest{}, echo.NewHTTPError(http.StatusRequestEntityTooLarge, "The request is too big.")
	case err != nil || r == nil:
		return tokenRequest{}, echo.NewHTTPError(http.StatusBadRequest,
			`The body must be one JSON object such as {"ttl": 600, "sessions": 1, "audioMinutes": 60, "turns": ["agent"], "signals": ["emit"]}, with no other fields; ttl is in seconds.`)
	}
	return *r, nil
}

func (r tokenRequest) rights() (auth.Rights, error) {
	var rights auth.Rights
	for _, n := range []struct {
		name  string
		asked *int
		most  int
		set   func(int)
	}{
		{"ttl", r.TTL, int(auth.MaxTTL.Seconds()), func(n int) { rights.TTL = time.Duration(n) * time.Second }},
		{"sessions", r.Sessions, auth.MaxSessions, func(n int) { rights.Sessions = n }},
		{"audioMinutes", r.AudioMinutes, auth.MaxMinutes, func(n int) { rights.Minutes = n }},
	} {
		if n.asked == nil {
			continue
		}
		if *n.asked < 1 || *n.asked > n.most {
			return auth.Rights{}, fmt.Errorf("%s must be from 1 to %d.", n.name, n.most)
		}
		n.set(*n.asked)
	}
	if r.Turns != nil {
		if !each(*r.Turns, string(session.Deterministic), string(session.Agent)) || len(*r.Turns) == 0 {
			return auth.Rights{}, errTurns
		}
		rights.Turns = *r.Turns
	}
	if r.Signals != nil {
		if !each(*r.Signals, auth.FollowSignals, auth.EmitSignals) {
			return auth.Rights{}, errSignals
		}
		rights.Signals = *r.Signals
	}
	return rights, nil
}

// each says whether every word is one of those that there are, and none comes twice.
func each(words []string, there ...string) bool {
	for i, w := range words {
		if !slices.Contains(there, w) || slices.Contains(words[:i], w) {
			return false
		}
	}
	return true
}

var errSignals = errors.New("signals must name follow, emit or both, each once; leave it out to allow neither.")

var errTurns = errors.New("turns must name deterministic, agent or both, each once; leave it out to allow all.")
