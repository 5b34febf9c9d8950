// Package web is the dashboard at /, embedded into the binary as web/dashboard
// was built into page/. The built files are committed, so that Go alone gives a
// complete binary; CI rebuilds and compares them.
//
// The page contacts only the server that it came from, and only by relative
// URLs, so that it also works behind a proxy that serves the gateway under a
// path, provided that the path of the page ends in a slash.
//
// The files are embedded rather than read from a disk, so that the binary is all
// there is to deploy, and the page always matches its server.
//
// The manual is the documentation as plain pages: HTML with one style sheet, and one script, for the
// search, without which everything else works.
package web

import (
	"embed"
	"io/fs"
)

//go:embed page
var embedded embed.FS

// Files are the files of the page: index.html, and what it loads under assets/.
var Files fs.FS = mustSub(embedded, "page")

func mustSub(files fs.FS, dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic("web: " + err.Error()) // dir is a constant: never
	}
	return sub
}
