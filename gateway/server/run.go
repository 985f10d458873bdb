package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/labstack/echo/v4"
)

// Run is what signals set off, and how that is wired.
type Run interface {
	// Status says how the run goes, as JSON.
	Status(ctx context.Context) (any, error)
	// Switch starts a run or stops it.
	Switch(ctx context.Context, on bool) error
	// Wiring is what is in force, as JSON.
	Wiring() []byte
	// Rewire puts another wiring in force. An error that has a method Mistakes() []string is the sender's.
	Rewire(ctx context.Context, wiring []byte) error
	// Commands yields what comes out from when the call returns, each as JSON on one line, until ctx is done.
	Commands(ctx context.Context) (iter.Seq2[[]byte, error], error)
	// WiringSchema is the JSON Schema of a wiring.
	WiringSchema() []byte
}

// maxWiring bounds a wiring, in bytes; [Run.Rewire] may have a lower bound.
const maxWiring = 2 << 20

func (s *Server) runRoutes() {
	if s.cfg.Run == nil {
		return
	}
	s.echo.GET("/schema/wiring.json", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/schema+json", s.cfg.Run.WiringSchema())
	})
	s.echo.GET("/api/run", s.showRun, s.serverKeyOnly)
	s.echo.POST("/api/run", s.switchRun, s.serverKeyOnly, s.ownPagesOnly)
	s.echo.GET("/api/wiring", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, s.cfg.Run.Wiring()) }, s.serverKeyOnly)
	s.echo.PUT("/api/wiring", s.rewire, s.serverKeyOnly, s.ownPagesOnly)
	s.echo.GET("/__commands__/stream", s.streamCommands, s.serverKeyOnly, s.ownPagesOnly)
}

func (s *Server) showRun(c echo.Context) error {
	status, err := s.cfg.Run.Status(c.Request().Context())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, status)
}

// switchRun takes {"running": true} or {"running": false}, and answers with how the run goes then.
func (s *Server) switchRun(c echo.Context) error {
	var want struct {
		Running *bool `json:"running"`
	}
	if err := c.Bind(&want); err != nil || want.Running == nil {
		return echo.NewHTTPError(http.StatusBadRequest, `Say {"running": true} or {"running": false}, as application/json.`)
	}
	if err := s.cfg.Run.Switch(c.Request().Context(), *want.Running); err != nil {
		return err
	}
	return s.showRun(c)
}

// rewire puts the wiring in force that is sent, as a whole.
func (s *Server) rewire(c echo.Context) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, maxWiring))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return echo.NewHTTPError(http.StatusRequestEntityTooLarge, "The wiring is too long.")
	case err != nil:
		return echo.NewHTTPError(http.StatusBadRequest, "The wiring did not arrive as a whole.")
	}
	err = s.cfg.Run.Rewire(c.Request().Context(), body)
	var theirs interface{ Mistakes() []string }
	if errors.As(err, &theirs) {
		return c.JSON(http.StatusBadRequest, map[string]any{"message": "The wiring is wrong; what was in force stays.", "mistakes": theirs.Mistakes()})
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) streamCommands(c echo.Context) error {
	return s.stream(c, func(ctx context.Context) (iter.Seq2[LoggedSignal, error], error) {
		commands, err := s.cfg.Run.Commands(ctx)
		if err != nil {
			return nil, err
		}
		return func(yield func(LoggedSignal, error) bool) {
			for text, err := range commands {
				if !yield(LoggedSignal{Text: text}, err) {
					return
				}
			}
		}, nil
	})
}
