// Package web holds the built page, so that the gateway is one file that serves it.
//
// The page is built by npm run build in this folder; dist is empty until then, and [Built] says so.
package web

import (
	"embed"
	"io/fs"
)

// all: because the placeholder that keeps dist in a clean clone begins with a dot.
//
//go:embed all:dist
var dist embed.FS

// FS is the built page, with index.html at its root.
func FS() fs.FS {
	page, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // "dist" is a valid path: this cannot happen
	}
	return page
}

// Built reports whether the page was built before this program was.
func Built() bool {
	return built(FS())
}

func built(page fs.FS) bool {
	info, err := fs.Stat(page, "index.html")
	return err == nil && info.Mode().IsRegular()
}
