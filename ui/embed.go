// SPDX-License-Identifier: Apache-2.0

// Package ui serves the web page.
//
// The page is a program of its own, written in TypeScript and built by Vite into
// dist (see package.json). This package embeds what was built and hands it out; it
// knows nothing of the API that the page talks to.
package ui

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
)

// built holds dist-placeholder, which is committed, and dist when the page has been
// built. One pattern matches both, so a clean clone compiles and building the page
// changes no file that git tracks.
//
//go:embed all:dist*
var built embed.FS

// Handler serves the page, or where it was not built a page that says how to build it.
// It answers GET and HEAD, and 404 for what is no part of the page: the page keeps its whole
// state in the query of "/", so there are no other paths.
func Handler() http.Handler {
	return handler(page(built))
}

// Built reports whether the page was built into this program.
func Built() bool { return isBuilt(built) }

func isBuilt(root fs.FS) bool {
	_, err := fs.Stat(root, "dist/index.html")
	return err == nil
}

// page chooses between the built page and the placeholder.
func page(root fs.FS) fs.FS {
	dir := "dist-placeholder"
	if isBuilt(root) {
		dir = "dist"
	}
	sub, err := fs.Sub(root, dir)
	if err != nil {
		return root // only an invalid path is an error, and these are constant
	}
	return sub
}

// policy lets the page load from its own server alone. Inline styles are the
// placeholder's; the built page has none.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"object-src 'none'; base-uri 'none'; form-action 'self'"

func handler(page fs.FS) http.Handler {
	files := http.FileServerFS(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page answers GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		if r.URL.Path != "/" && !isFile(page, strings.TrimPrefix(r.URL.Path, "/")) {
			http.NotFound(w, r)
			return
		}

		h := w.Header()
		h.Set("Cache-Control", cacheControl(r.URL.Path))
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		files.ServeHTTP(w, r)
	})
}

// isFile keeps directories out: no listing is part of the page.
func isFile(page fs.FS, name string) bool {
	info, err := fs.Stat(page, name)
	return err == nil && info.Mode().IsRegular()
}

// cacheControl lets browsers keep what has a content hash in its name, and ask again for the rest.
func cacheControl(path string) string {
	if strings.HasPrefix(path, "/assets/") {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache"
}
