// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"diagon.dev/diagon/pkg/server/artifacts"
	"diagon.dev/diagon/pkg/server/captures"
)

const (
	defaultLimit = 100
	maxLimit     = 10_000

	// artifactTime bounds a download: a whole artifact of 4 GiB at 10 Mbit/s.
	artifactTime = time.Hour
)

// api serves the calls about nodes and captures.
type api struct {
	p   Parts
	log *slog.Logger
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	errs := a.p.Ready()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(errs) == 0 {
		fmt.Fprintln(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, err := range errs {
		fmt.Fprintln(w, err)
	}
}

func (a *api) nodes(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"nodes": a.p.Registry.Nodes()})
}

func (a *api) listCaptures(w http.ResponseWriter, r *http.Request) {
	limit := defaultLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			fail(w, http.StatusBadRequest, fmt.Errorf("limit: %q is not between 1 and %d", text, maxLimit))
			return
		}
		limit = n
	}
	answer(w, http.StatusOK, map[string]any{"captures": a.p.Captures.List(limit)})
}

func (a *api) createCapture(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, errors.New("the body must be JSON, with Content-Type: application/json"))
		return
	}
	req, err := readRequest(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		status := http.StatusBadRequest
		if tooBig := new(http.MaxBytesError); errors.As(err, &tooBig) {
			status = http.StatusRequestEntityTooLarge
		}
		fail(w, status, fmt.Errorf("body: %w", err))
		return
	}
	c, err := a.p.Captures.Create(r.Context(), req)
	if err != nil {
		a.failCapture(w, err)
		return
	}
	w.Header().Set("Location", "/api/v1/captures/"+c.ID)
	answer(w, http.StatusCreated, c)
}

// readRequest reads one JSON object and nothing behind it.
func readRequest(r io.Reader) (captures.Request, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var req captures.Request
	if err := dec.Decode(&req); err != nil {
		return captures.Request{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return captures.Request{}, errors.New("something follows the JSON object")
	}
	return req, nil
}

func (a *api) getCapture(w http.ResponseWriter, r *http.Request) {
	c, err := a.p.Captures.Get(r.PathValue("id"))
	if err != nil {
		a.failCapture(w, err)
		return
	}
	answer(w, http.StatusOK, c)
}

func (a *api) cancelCapture(w http.ResponseWriter, r *http.Request) {
	c, err := a.p.Captures.Cancel(r.Context(), r.PathValue("id"))
	if err != nil {
		a.failCapture(w, err)
		return
	}
	answer(w, http.StatusOK, c)
}

func (a *api) failCapture(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, captures.ErrInvalid):
		fail(w, http.StatusBadRequest, err)
	case errors.Is(err, captures.ErrNotFound):
		fail(w, http.StatusNotFound, err)
	default:
		a.log.Error("call about a capture failed", "err", err)
		fail(w, http.StatusServiceUnavailable, err)
	}
}

func (a *api) artifact(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("name")
	if _, err := a.p.Captures.Get(id); err != nil { // an id that is one names no other folder
		a.failCapture(w, err)
		return
	}
	file, info, err := a.p.Artifacts.Read(r.Context(), id, name)
	if errors.Is(err, artifacts.ErrNotFound) {
		fail(w, http.StatusNotFound, err)
		return
	}
	if err != nil {
		a.log.Error("artifact cannot be read", "capture", id, "name", name, "err", err)
		fail(w, http.StatusInternalServerError, err)
		return
	}
	defer file.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(artifactTime))
	h := w.Header()
	if info.ContentType != "" {
		h.Set("Content-Type", info.ContentType)
	}
	// Whatever an agent calls its file, a browser must not run it as a page of ours.
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+info.SHA256+`"`)
	http.ServeContent(w, r, name, info.Modified, file)
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

func fail(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"error": err.Error()})
}
