package server

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

const noPage = "The page is not in this build. Run make build, or make run, which does it all.\n"

// page serves the built page, and at /phone the one that talks in LiveKit's rooms. Their assets carry a hash of their
// content in their names, so they may be kept for ever; the pages themselves are asked for again each time.
func (s *Server) page() {
	if s.cfg.Page == nil {
		for _, path := range []string{"/", "/phone"} {
			s.echo.GET(path, func(c echo.Context) error { return c.String(http.StatusNotFound, noPage) })
		}
		return
	}
	files := http.FileServerFS(visible{s.cfg.Page})
	file := func(c echo.Context) error {
		cache := "no-cache"
		if strings.HasPrefix(c.Request().URL.Path, "/assets/") {
			cache = "public, max-age=31536000, immutable"
		}
		c.Response().Header().Set("Cache-Control", cache)
		files.ServeHTTP(c.Response(), c.Request())
		return nil
	}
	// Both, since echo's groups have a route of their own for "/" where nothing else has one.
	s.echo.GET("/", file)
	s.echo.GET("/*", file)
	s.echo.GET("/phone", func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Cache-Control", "no-cache")
		if s.cfg.Rooms != nil {
			h.Set("Content-Security-Policy", phonePolicy(s.cfg.Rooms.Address()))
		}
		http.ServeFileFS(c.Response(), c.Request(), s.cfg.Page, "phone.html")
		return nil
	})
}

// visible hides folders and dot files: there is nothing to browse.
type visible struct{ files fs.FS }

func (v visible) Open(name string) (fs.File, error) {
	f, err := v.files.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (info.IsDir() && name != "." || strings.HasPrefix(info.Name(), ".") && name != ".") {
		_ = f.Close()
		return nil, fs.ErrNotExist
	}
	return f, err
}
