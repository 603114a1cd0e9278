// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/klauspost/compress/gzhttp"

	"diagon.dev/diagon/pkg/server/store"
)

// Handler answers /api/v1/types, labels, labels/NAME/values, profiles, diff and series
// from st. Each answer has a deadline; when too many questions run, more are told to come
// again. The caller has validated cfg.
func Handler(st store.Store, cfg Config, log *slog.Logger) http.Handler {
	h := &handler{store: st, cfg: cfg, log: log, places: make(chan struct{}, cfg.MaxQueries)}
	mux := http.NewServeMux()
	for path, answer := range map[string]answer{
		"/api/v1/types":                h.types,
		"/api/v1/labels":               h.labels,
		"/api/v1/labels/{name}/values": h.labelValues,
		"/api/v1/profiles":             h.profiles,
		"/api/v1/diff":                 h.diff,
		"/api/v1/series":               h.series,
	} {
		mux.Handle("GET "+path, h.bounded(answer))
	}
	mux.HandleFunc("GET /api/v1/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, fmt.Errorf("%s %s: %w; docs/http-api.md lists them", r.Method, r.URL.Path, errNoCall))
	})
	return gzhttp.GzipHandler(mux)
}

type handler struct {
	store  store.Store
	cfg    Config
	log    *slog.Logger
	places chan struct{} // one for each question that runs
}

// An answer reads what is asked and shapes what comes back.
type answer func(ctx context.Context, p params, r *http.Request) (body, error)

// A body writes itself. It is written to memory first, so that an error half
// way becomes a status and not a broken answer.
type body struct {
	contentType string
	packed      bool // compressed already
	write       func(*bytes.Buffer) error
}

func asJSON(v any) body {
	return body{contentType: "application/json", write: func(b *bytes.Buffer) error {
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}}
}

// bounded gives an answer a place, a deadline, and its errors a status.
func (h *handler) bounded(a answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case h.places <- struct{}{}:
			defer func() { <-h.places }()
		default:
			w.Header().Set("Retry-After", "1")
			h.fail(w, r, errBusy)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Timeout)
		defer cancel()
		var out bytes.Buffer
		b, err := h.answer(ctx, a, r, &out)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		header := w.Header()
		header.Set("Content-Type", b.contentType)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		if b.packed {
			header.Set(gzhttp.HeaderNoCompression, "1")
		}
		_, _ = w.Write(out.Bytes()) // the asker may be gone; there is nobody to tell
	})
}

func (h *handler) answer(ctx context.Context, a answer, r *http.Request, out *bytes.Buffer) (body, error) {
	p, err := parseParams(r.URL.RawQuery)
	if err != nil {
		return body{}, err
	}
	b, err := a(ctx, p, r)
	if err != nil {
		return body{}, err
	}
	return b, b.write(out)
}

var (
	errBusy   = errors.New("too many questions at once: ask again in a second")
	errNoCall = errors.New("no such call")
)

// statusOf says whose fault an error is.
func statusOf(err error) int {
	var bad requestError
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.Is(err, errNoCall):
		return http.StatusNotFound
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, store.ErrTooLarge):
		return http.StatusUnprocessableEntity
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the asker hung up
	}
	status := statusOf(err)
	text := err.Error()
	switch status {
	case http.StatusInternalServerError:
		h.log.Error("question failed", "path", r.URL.Path, "query", r.URL.RawQuery, "error", err)
	case http.StatusGatewayTimeout:
		text = fmt.Sprintf("not answered within %v: ask for less time, or select by labels", h.cfg.Timeout)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // as above
}
