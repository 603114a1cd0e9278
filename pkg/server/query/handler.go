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
	"slices"

	"github.com/klauspost/compress/gzhttp"

	"diagon.dev/diagon/pkg/server/store"
)

// Handler answers /api/v1/types, labels, labels/NAME/values, profiles, diff and series
// from st. Each answer has a deadline; when too many questions run, more are told to come
// again. The caller has validated cfg.
func Handler(st store.Store, cfg Config, log *slog.Logger) http.Handler {
	h := &handler{store: st, cfg: cfg, log: log, admission: newAdmission(cfg.MaxQueries)}
	mux := http.NewServeMux()
	selecting := slices.Clip([]string{"query", "from", "to", "capture"})
	for path, c := range map[string]call{
		"/api/v1/types":                {h.types, costOfList, selecting},
		"/api/v1/labels":               {h.labels, costOfList, selecting},
		"/api/v1/labels/{name}/values": {h.labelValues, costOfList, append(selecting, "limit")},
		"/api/v1/profiles":             {h.profiles, costOfProfile, append(selecting, "type", "format", "max_nodes")},
		"/api/v1/diff":                 {h.diff, costOfDiff, append(selecting, "type", "format", "max_nodes", "base_query", "base_from", "base_to")},
		"/api/v1/series":               {h.series, costOfList, append(selecting, "metric", "step")},
	} {
		mux.Handle("GET "+path, h.bounded(c))
	}
	mux.HandleFunc("GET /api/v1/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, fmt.Errorf("%s %s: %w; docs/http-api.md lists them", r.Method, r.URL.Path, errNoCall))
	})
	return gzhttp.GzipHandler(mux)
}

type handler struct {
	store     store.Store
	cfg       Config
	log       *slog.Logger
	admission admission
}

// A call is what a path answers, and what that may cost.
type call struct {
	answer answer
	cost   func(params) int64
	takes  []string // the parameters that it reads
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

// bounded gives an answer admission, a deadline, and its errors a status.
func (h *handler) bounded(c call) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := parseParams(r.URL.RawQuery)
		if err == nil {
			err = p.only(c.takes)
		}
		if err != nil {
			h.fail(w, r, err)
			return
		}
		leave, ok := h.admission.enter(c.cost(p))
		if !ok {
			w.Header().Set("Retry-After", "1")
			h.fail(w, r, errBusy)
			return
		}
		defer leave() // when the answer is written: until then it is in memory
		ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Timeout)
		defer cancel()
		var out bytes.Buffer
		b, err := made(ctx, c.answer, p, r, &out)
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

// made is the body of an answer, written to out.
func made(ctx context.Context, a answer, p params, r *http.Request, out *bytes.Buffer) (body, error) {
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
