// SPDX-License-Identifier: Apache-2.0

// Package server is the only place where the server's parts are joined:
//
//	agents --gRPC--> ingest --> store <-- query <--HTTP-- page, API
//	                   |  \---> artifacts <-----------/
//	                   v
//	         registry, captures --> bus (NATS) <-- the other servers
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"diagon.dev/diagon/pkg/server/artifacts"
	"diagon.dev/diagon/pkg/server/bus"
	"diagon.dev/diagon/pkg/server/captures"
	"diagon.dev/diagon/pkg/server/ingest"
	"diagon.dev/diagon/pkg/server/query"
	"diagon.dev/diagon/pkg/server/registry"
	"diagon.dev/diagon/pkg/server/store"
	"diagon.dev/diagon/pkg/server/store/duckdb"
	"diagon.dev/diagon/pkg/server/web"
	"diagon.dev/diagon/ui"
)

// How long each step of the way down may take.
const (
	streamsWithin = 5 * time.Second
	httpWithin    = 5 * time.Second
	storeWithin   = 30 * time.Second
)

// A Server is a running server.
type Server struct {
	cfg Config
	log *slog.Logger

	httpLn, grpcLn net.Listener
	bus            *bus.Bus
	store          store.Store
	registry       *registry.Registry
	captures       *captures.Manager
	artifacts      *artifacts.Store
	ingest         *ingest.Server
	grpc           *grpc.Server
	http           *http.Server
	metrics        *prometheus.Registry

	storeBytes atomic.Int64
	noRoom     atomic.Pointer[error]

	ctx    context.Context // of the loops; done when one of them fails
	cancel context.CancelFunc
	loops  *errgroup.Group

	undo     []func() // what Start did, to be undone in reverse
	stopOnce sync.Once
}

// Run serves until ctx is done, or until a part fails.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	s, err := Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	return s.Wait(ctx)
}

// Start brings a server up and returns when it serves. Wait or Stop ends it.
func Start(ctx context.Context, cfg Config, log *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log, metrics: prometheus.NewRegistry()}
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.loops, s.ctx = errgroup.WithContext(loops)
	s.cancel = cancel
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	log.Info("diagon-server serves", "page", s.URL(), "grpc", s.GRPCAddr(), "server", s.cfg.Name, "data", s.cfg.Data)
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	if err := s.listen(); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.openData, s.openStore, s.openFleet, s.openIngest, s.openWeb} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// listen comes first: a port that is taken is the commonest trouble, and cheap to find.
func (s *Server) listen() (err error) {
	if s.httpLn, err = listenOn("http", s.cfg.HTTP); err != nil {
		return err
	}
	s.onStop(func() { _ = s.httpLn.Close() })
	if s.grpcLn, err = listenOn("grpc", s.cfg.GRPC); err != nil {
		return err
	}
	s.onStop(func() { _ = s.grpcLn.Close() })
	return nil
}

// settle hands to the parts what they share, and checks the whole.
func (s *Server) settle() error {
	c := &s.cfg
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("server-name: the host has no name: %w", err)
		}
		_, port, _ := net.SplitHostPort(s.GRPCAddr())
		c.Name = host + ":" + port
	}
	c.Registry.Server, c.Ingest.Server = c.Name, c.Name
	c.Ingest.Heartbeat, c.Ingest.Silence = c.Registry.Heartbeat, c.Registry.Silence
	c.Bus.Dir = filepath.Join(c.Data, "nats")
	c.Artifacts.Dir = filepath.Join(c.Data, "artifacts")
	c.Store.Dir, c.Store.FreeBytes = filepath.Join(c.Data, "store"), c.Spare
	c.Artifacts.Spare = c.Spare
	if c.Retention.Age > 0 {
		c.Registry.NodeAge, c.Ingest.OldestBatch = c.Retention.Age, c.Retention.Age
	}
	return c.Validate()
}

func (s *Server) openData(context.Context) error {
	if err := os.MkdirAll(s.cfg.Data, 0o750); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	unlock, err := lockFolder(s.cfg.Data)
	if err != nil {
		return err
	}
	s.onStop(unlock)
	return nil
}

func (s *Server) openStore(ctx context.Context) error {
	st, err := duckdb.Open(ctx, s.cfg.Store, s.log)
	if err != nil {
		return fmt.Errorf("data: store: %w", err)
	}
	s.store = st
	s.onStop(func() { s.within("store", storeWithin, func() error { return st.Close() }) })
	return nil
}

// openFleet brings up what the servers of a fleet share.
func (s *Server) openFleet(ctx context.Context) (err error) {
	if s.bus, err = bus.Open(ctx, s.cfg.Bus, s.log); err != nil {
		return err
	}
	s.onStop(s.bus.Close)
	if s.artifacts, err = artifacts.Open(ctx, s.cfg.Artifacts, s.log); err != nil {
		return err
	}
	s.onStop(func() { _ = s.artifacts.Close() })
	if s.registry, err = registry.Open(ctx, s.bus, s.cfg.Registry, s.log, time.Now); err != nil {
		return err
	}
	if err = s.registry.Decide(ctx, s.cfg.Settings); err != nil {
		return err
	}
	if s.captures, err = captures.Open(ctx, s.bus, s.registry, s.artifacts, s.cfg.Captures, s.log, time.Now); err != nil {
		return err
	}
	s.onStop(s.captures.Close)
	s.onStop(func() { // the loops work on all of these
		s.cancel()
		_ = s.loops.Wait()
	})
	s.loop(s.registry.Run)
	s.loop(s.captures.Run)
	s.loop(s.artifacts.Run)
	s.loop(s.retain)
	return nil
}

func (s *Server) openIngest(context.Context) (err error) {
	parts := ingest.Parts{Store: s.store, Registry: s.registry, Captures: s.captures, Artifacts: s.artifacts}
	if s.ingest, err = ingest.New(s.cfg.Ingest, parts, s.metrics, s.log, time.Now); err != nil {
		return err
	}
	s.onStop(s.ingest.Close)
	if s.grpc, err = ingest.NewGRPC(s.cfg.Ingest, s.log); err != nil {
		return err
	}
	s.ingest.Register(s.grpc)
	s.checkRoom()
	s.loop(s.watchRoom)
	s.onStop(s.stopStreams)
	s.loop(func(context.Context) error { return part("grpc", s.grpc.Serve(s.grpcLn)) })
	return nil
}

func (s *Server) openWeb(context.Context) error {
	s.register()
	s.http = web.NewServer(s.cfg.Web, web.Parts{
		Registry: s.registry, Captures: s.captures, Artifacts: s.artifacts,
		Query: query.Handler(s.store, s.cfg.Query, s.log), Page: ui.Handler(),
		Metrics: s.metrics, Ready: s.notReady,
	}, s.httpLn, s.log)
	s.onStop(func() { web.Shutdown(s.http, httpWithin) })
	s.loop(func(context.Context) error {
		err := s.http.Serve(s.httpLn)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return part("http", err)
	})
	return nil
}

func part(name string, err error) error {
	if err == nil || errors.Is(err, grpc.ErrServerStopped) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// stopStreams asks the streams to end, and ends those that do not.
func (s *Server) stopStreams() {
	s.ingest.Drain()
	done := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(done) }()
	select {
	case <-done:
	case <-time.After(streamsWithin):
		s.grpc.Stop()
		<-done
	}
}

// notReady says what the server cannot do at this moment.
func (s *Server) notReady() []error {
	var errs []error
	if err := s.ingest.Full(); err != nil {
		errs = append(errs, err)
	}
	if err := s.bus.Up(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// Wait serves until ctx is done or a part fails, and then stops.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	s.Stop()
	return s.loops.Wait()
}

// Stop ends the server: first what comes in, last what is kept. It may be called more than once.
func (s *Server) Stop() {
	s.stopOnce.Do(func() {
		for _, undo := range slices.Backward(s.undo) {
			undo()
		}
		s.cancel()
	})
}

func (s *Server) onStop(f func()) { s.undo = append(s.undo, f) }
func (s *Server) loop(f func(ctx context.Context) error) {
	s.loops.Go(func() error { return f(s.ctx) })
}

// within gives a step of the way down its time, and goes on without it afterwards.
func (s *Server) within(what string, d time.Duration, f func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if err != nil {
			s.log.Error("part did not close cleanly", "part", what, "err", err)
		}
	case <-time.After(d):
		s.log.Error("part did not close in time", "part", what, "after", d)
	}
}

// URL is where the page is.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.httpLn.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// GRPCAddr is where agents dial.
func (s *Server) GRPCAddr() string { return s.grpcLn.Addr().String() }

// BusURL is where other servers reach this one's NATS; "" when it does not listen.
func (s *Server) BusURL() string { return s.bus.URL() }
