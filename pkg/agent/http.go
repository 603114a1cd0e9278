// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"diagon.dev/diagon/pkg/collector"
)

// listen opens the address of the agent's own pages, so that a port in use is told at start.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for --http: %w; choose another address with --http", err)
	}
	return l, nil
}

// serve answers /metrics, /healthz and /readyz until ctx is done.
func (a *agent) serve(ctx context.Context, l net.Listener) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics{a},
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	stop := context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(closing) != nil {
			_ = srv.Close()
		}
	})
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve --http: %w", err)
	}
	return nil
}

// ready says why the agent does not do its work, nil when it does. A server that cannot
// be reached is no reason: the spool keeps what is sampled.
func (a *agent) ready() error {
	for _, s := range a.runner.States() {
		if s.Phase != collector.Running && s.Phase != collector.Unavailable {
			return fmt.Errorf("collector %s is %s: %v", s.Name, s.Phase, s.Err)
		}
	}
	return nil
}
