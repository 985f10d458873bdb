package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"
)

// Tap is what Claude Code tells through the hooks that we have put into its settings.
type Tap interface {
	// Admits says whether a request with this header comes from such a hook.
	Admits(http.Header) bool
	// Hear takes what a hook tells. It never waits; what is no signal, and what comes too fast, is left out.
	Hear(told []byte)
}

// hookPath is where hooks are posted to. Their token is their own, so that it is good for nothing else.
const hookPath = "/api/tap/hook"

// maxHook bounds what a hook tells, in bytes: the file that a tool has read may stand in it.
const maxHook = 8 << 20

func (s *Server) tapRoutes() {
	if s.cfg.Tap != nil {
		s.echo.POST(hookPath, s.takeHook, s.ownPagesOnly)
	}
}

// ServeHooks takes hooks on l, and nothing else, until ctx is done: where the gateway speaks https, whose certificate Claude
// Code need not trust. l listens on this machine alone, and is closed in the end.
func (s *Server) ServeHooks(ctx context.Context, l net.Listener) error {
	e := echo.New()
	e.Use(s.ownHostOnly, secureHeaders)
	e.POST(hookPath, s.takeHook, s.ownPagesOnly)
	h := s.bounded(e)
	stop := context.AfterFunc(ctx, func() { _ = h.Close() }) // nobody waits for the answer to a hook
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// takeHook takes what a hook tells. Claude Code waits for the answer, which decides nothing: an empty object, at once,
// whatever becomes of it here.
func (s *Server) takeHook(c echo.Context) error {
	if !s.cfg.Tap.Admits(c.Request().Header) {
		return echo.NewHTTPError(http.StatusForbidden, "This is no hook of this gateway's. Connect Claude Code again.")
	}
	told, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, maxHook))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return echo.NewHTTPError(http.StatusRequestEntityTooLarge, "The hook tells too much.")
	case err != nil:
		return echo.NewHTTPError(http.StatusBadRequest, "What the hook tells did not arrive as a whole.")
	}
	s.cfg.Tap.Hear(told)
	return c.JSON(http.StatusOK, struct{}{})
}
