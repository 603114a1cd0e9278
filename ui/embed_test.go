// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHandler(t *testing.T) {
	clean := fstest.MapFS{"dist-placeholder/index.html": {Data: []byte("how to build")}}
	full := fstest.MapFS{
		"dist-placeholder/index.html": {Data: []byte("how to build")},
		"dist/index.html":             {Data: []byte("the page")},
		"dist/assets/index-3f.js":     {Data: []byte("code")},
	}
	for _, tt := range []struct {
		name   string
		root   fstest.MapFS
		method string
		path   string
		status int
		body   string
		cache  string
	}{
		{"without a build the placeholder says how to build", clean, "GET", "/", 200, "how to build", "no-cache"},
		{"the built page takes the placeholder's place", full, "GET", "/", 200, "the page", "no-cache"},
		{"the state in the query changes nothing", full, "GET", "/?view=nodes", 200, "the page", "no-cache"},
		{"a hashed asset may be kept for ever", full, "GET", "/assets/index-3f.js", 200, "code", "public, max-age=31536000, immutable"},
		{"a folder is not listed", full, "GET", "/assets/", 404, "not found", ""},
		{"an unknown path is not the page", full, "GET", "/nope", 404, "not found", ""},
		{"the page takes no orders", full, "POST", "/", 405, "GET and HEAD", ""},
		{"a path cannot climb out", full, "GET", "/../dist-placeholder/index.html", 404, "not found", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(tt.method, "http://diagon/", nil)
			r.URL.Path, _, _ = strings.Cut(tt.path, "?")
			handler(page(tt.root)).ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%s %s = %d %q, want %d and %q", tt.method, tt.path, w.Code, w.Body, tt.status, tt.body)
			}
			if got := w.Header().Get("Cache-Control"); got != tt.cache {
				t.Errorf("Cache-Control = %q, want %q", got, tt.cache)
			}
		})
	}
}

func TestHandlerServesWhatIsEmbedded(t *testing.T) {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "diagon") {
		t.Errorf("GET / = %d %.80q", w.Code, w.Body)
	}
}
