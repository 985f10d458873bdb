package server

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
)

// Sources is who else there is to listen to. What it returns is shown as JSON, and holds no key. An error that has a method
// Refusal() (status int, words string) is told to whoever asked.
type Sources interface {
	// List is {"sources": […]}, and so is what Scan returns, when it has looked for sources on this machine, and what
	// Watch yields, at once and whenever something has changed.
	List(ctx context.Context) (any, error)
	Scan(ctx context.Context) (any, error)
	Watch(ctx context.Context) iter.Seq2[[]byte, error]

	Add(ctx context.Context, name, url, key string) (source any, err error)
	Remove(ctx context.Context, id string) error

	// These return the source as it is then.
	Connect(ctx context.Context, id string) (any, error)
	Disconnect(ctx context.Context, id string) (any, error)
	SetKey(ctx context.Context, id, key string) (any, error)
	PasteKey(ctx context.Context, id string) (any, error)
	Choose(ctx context.Context, id, model string) (any, error)

	// Prompt asks a source's model, and returns the correlation id of the signals that follow. Stop stops all prompts.
	Prompt(ctx context.Context, id, text string) (correlation string, err error)
	Stop(ctx context.Context, id string) error

	// Tap connects to Claude Code, or disconnects, and returns when its hooks are in place, or out of it.
	Tap(ctx context.Context, on bool) error

	// Token is what OpenClaw on this machine wants.
	Token() (string, error)
}

// maxSourceBody bounds what is said about a source, in bytes.
const maxSourceBody = 16 << 10

func (s *Server) sourceRoutes() {
	all := s.cfg.Sources
	if all == nil {
		return
	}
	g := s.echo.Group("", s.serverKeyOnly, s.ownPagesOnly)
	g.GET("/api/sources", answerWith(func(c echo.Context, ctx context.Context) (any, error) { return all.List(ctx) }))
	g.GET("/api/sources/stream", s.streamSources)
	g.POST("/api/sources", s.addSource)
	g.POST("/api/sources/scan", answerWith(func(c echo.Context, ctx context.Context) (any, error) { return all.Scan(ctx) }))
	g.DELETE("/api/sources/:id", doneWith(all.Remove))
	g.POST("/api/sources/:id/connect", answerFor(all.Connect))
	g.POST("/api/sources/:id/disconnect", answerFor(all.Disconnect))
	g.POST("/api/sources/:id/key/paste", answerFor(all.PasteKey))
	g.POST("/api/sources/:id/stop", doneWith(all.Stop))
	g.PUT("/api/sources/:id/key", s.changeSource(func(ctx context.Context, id string, b sourceBody) (any, error) {
		if b.Key == nil {
			return nil, echo.NewHTTPError(http.StatusBadRequest, `Say {"key": "…"}, with an empty one to forget it.`)
		}
		return all.SetKey(ctx, id, *b.Key)
	}))
	g.PUT("/api/sources/:id/model", s.changeSource(func(ctx context.Context, id string, b sourceBody) (any, error) {
		return all.Choose(ctx, id, b.Model)
	}))
	g.POST("/api/sources/:id/prompt", s.changeSource(func(ctx context.Context, id string, b sourceBody) (any, error) {
		correlation, err := all.Prompt(ctx, id, b.Text)
		return map[string]string{"correlationId": correlation}, err
	}))
	g.POST("/api/tap/connect", s.tap(true))
	g.POST("/api/tap/disconnect", s.tap(false))
	g.GET("/api/openclaw/token", s.showToken)
}

// sourceBody is what is said about a source; which field counts depends on the route.
type sourceBody struct {
	Name  string  `json:"name"`
	URL   string  `json:"url"`
	Key   *string `json:"key"`
	Model string  `json:"model"`
	Text  string  `json:"text"`
}

func readSourceBody(c echo.Context) (b sourceBody, err error) {
	c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, maxSourceBody)
	err = (&echo.DefaultBinder{}).BindBody(c, &b)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return b, echo.NewHTTPError(http.StatusRequestEntityTooLarge, "That is too long: at most 16 KiB.")
	case err != nil:
		return b, echo.NewHTTPError(http.StatusBadRequest, "Say it as application/json.")
	}
	return b, nil
}

func (s *Server) addSource(c echo.Context) error {
	b, err := readSourceBody(c)
	if err != nil {
		return err
	}
	key := ""
	if b.Key != nil {
		key = *b.Key
	}
	added, err := s.cfg.Sources.Add(c.Request().Context(), b.Name, b.URL, key)
	if err != nil {
		return told(err)
	}
	return c.JSON(http.StatusCreated, added)
}

func (s *Server) changeSource(change func(ctx context.Context, id string, b sourceBody) (any, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		b, err := readSourceBody(c)
		if err != nil {
			return err
		}
		return answerFor(func(ctx context.Context, id string) (any, error) { return change(ctx, id, b) })(c)
	}
}

func answerWith(do func(c echo.Context, ctx context.Context) (any, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		answer, err := do(c, c.Request().Context())
		if err != nil {
			return told(err)
		}
		c.Response().Header().Set("Cache-Control", "no-store")
		return c.JSON(http.StatusOK, answer)
	}
}

func answerFor(do func(ctx context.Context, id string) (any, error)) echo.HandlerFunc {
	return answerWith(func(c echo.Context, ctx context.Context) (any, error) { return do(ctx, sourceID(c)) })
}

func doneWith(do func(ctx context.Context, id string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := do(c.Request().Context(), sourceID(c)); err != nil {
			return told(err)
		}
		return c.NoContent(http.StatusNoContent)
	}
}

// sourceID is the id in a path, where some of its characters may be encoded.
func sourceID(c echo.Context) string {
	id := c.Param("id")
	if c.Request().URL.RawPath == "" {
		return id
	}
	plain, err := url.PathUnescape(id)
	if err != nil {
		return id
	}
	return plain
}

// told is an error as whoever asked is told of it.
func told(err error) error {
	var refused interface {
		Refusal() (status int, words string)
	}
	if errors.As(err, &refused) {
		return echo.NewHTTPError(refused.Refusal())
	}
	return err
}

// tap answers as the programs expect that know these routes from elsewhere.
func (s *Server) tap(on bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := told(s.cfg.Sources.Tap(c.Request().Context(), on))
		var said *echo.HTTPError
		switch {
		case errors.As(err, &said):
			return c.JSON(http.StatusInternalServerError, map[string]any{"ok": false, "error": said.Message})
		case err != nil:
			return err
		}
		return c.JSON(http.StatusOK, map[string]bool{"ok": true})
	}
}

func (s *Server) streamSources(c echo.Context) error {
	return s.stream(c, func(ctx context.Context) (iter.Seq2[LoggedSignal, error], error) {
		return func(yield func(LoggedSignal, error) bool) {
			for text, err := range s.cfg.Sources.Watch(ctx) {
				if !yield(LoggedSignal{Text: text}, err) {
					return
				}
			}
		}, nil
	})
}

// showToken is for our own page in a browser on this machine.
func (s *Server) showToken(c echo.Context) error {
	host, _, err := net.SplitHostPort(c.Request().RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() || forwarded(c.Request()) {
		return echo.NewHTTPError(http.StatusForbidden, "OpenClaw's token is for this machine alone.")
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	token, err := s.cfg.Sources.Token()
	if err != nil {
		return c.JSON(http.StatusOK, map[string]bool{"ok": false})
	}
	return c.JSON(http.StatusOK, map[string]any{"ok": true, "token": token})
}

// forwarded says whether a request came through a proxy, and so from who knows where.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}
