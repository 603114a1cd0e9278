// SPDX-License-Identifier: Apache-2.0

// Package web is the server's HTTP side: it puts the page, the API and the probes
// behind one port, and serves the calls about nodes and captures itself. What the
// calls mean is decided in registry and captures, what profiles say in query.
//
// The API changes something by POST and DELETE alone, and takes those from
// its own page and from programs, not from other sites in a browser.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"diagon.dev/diagon/pkg/server/artifacts"
	"diagon.dev/diagon/pkg/server/captures"
	"diagon.dev/diagon/pkg/server/registry"
)

// Config is what an operator decides about HTTP.
type Config struct {
	Hosts []string // names under which the server is asked, beside the loopback's, when it listens on the loopback only
	Write time.Duration
}

// DefaultConfig answers within two minutes.
func DefaultConfig() Config { return Config{Write: 2 * time.Minute} }

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if c.Write <= 0 {
		return fmt.Errorf("http-timeout: %v is not positive", c.Write)
	}
	return nil
}

// Parts is what the port leads to.
type Parts struct {
	Registry  *registry.Registry
	Captures  *captures.Manager
	Artifacts *artifacts.Store
	Query     http.Handler // the rest of /api/v1
	Page      http.Handler // everything else
	Metrics   prometheus.Gatherer
	Ready     func() []error // why the server cannot do its work now
}

const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeaders    = 64 << 10
	maxBody       = 1 << 20
)

// NewServer makes the HTTP server for a listener. Serve and Shutdown are the caller's.
func NewServer(cfg Config, p Parts, ln net.Listener, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler(cfg, p, isLoopback(ln.Addr()), log),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      cfg.Write,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what strangers send is no error of ours
	}
}

func handler(cfg Config, p Parts, loopback bool, log *slog.Logger) http.Handler {
	a := &api{p: p, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/v1/nodes", a.nodes)
	mux.HandleFunc("GET /api/v1/captures", a.listCaptures)
	mux.HandleFunc("POST /api/v1/captures", a.createCapture)
	mux.HandleFunc("GET /api/v1/captures/{id}", a.getCapture)
	mux.HandleFunc("DELETE /api/v1/captures/{id}", a.cancelCapture)
	mux.HandleFunc("GET /api/v1/captures/{id}/artifacts/{name}", a.artifact)
	mux.Handle("/api/v1/", p.Query)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fmt.Errorf("%s: no such call; the API is under /api/v1", r.URL.Path))
	})
	mux.Handle("/", p.Page)

	var h http.Handler = mux
	h = sameOrigin(h)
	if loopback {
		h = knownHost(cfg.Hosts, h)
	}
	return h
}

// sameOrigin keeps other sites from making a browser change something here. Programs send
// neither Sec-Fetch-Site nor Origin and pass.
func sameOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, errors.New("a page of another origin may not change anything here"))
	}))
	return guard.Handler(next)
}

// knownHost keeps a name that was made to point at the loopback (DNS rebinding) from
// reading what is only meant for this machine.
func knownHost(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		ip := net.ParseIP(host)
		known := host == "localhost" || strings.HasSuffix(host, ".localhost") || (ip != nil && ip.IsLoopback()) || slices.Contains(hosts, host)
		if !known {
			fail(w, http.StatusForbidden, fmt.Errorf("host %q: this server listens on the loopback and answers to localhost; name other hosts with --http-hosts", host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Shutdown ends an HTTP server: gently within d, then at once.
func Shutdown(srv *http.Server, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close()
	}
}
