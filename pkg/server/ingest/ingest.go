// SPDX-License-Identifier: Apache-2.0

// Package ingest is the server's half of the wire: it serves the Diagnostics service.
//
// It reads what agents send and believes none of it: sizes, checksums,
// encodings and names are checked before a byte goes further. What is right goes
// to the store, the registry, the captures and the artifacts, and is
// acknowledged once it is durable there. Nothing of it is kept here, so any server of a
// fleet takes any agent at any time.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/server/artifacts"
	"diagon.dev/diagon/pkg/server/captures"
	"diagon.dev/diagon/pkg/server/registry"
	"diagon.dev/diagon/pkg/server/store"
)

// Config is what an operator decides about ingest.
type Config struct {
	Server    string        // this server's name, told to agents
	Heartbeat time.Duration // asked of agents
	Silence   int           // heartbeats that may be missing before a stream is ended

	Message  int64 // bytes of one message; a batch is one message
	Inflight int64 // bytes that all batches between the wire and the store may take, unpacked
	Credit   int64 // bytes of batches that one agent may have unacknowledged
	Agents   int   // Connect streams held, and PushProfiles streams
	Uploads  int   // artifacts on their way at once

	Register time.Duration // an agent must introduce itself within
	Append   time.Duration // the store must take a batch within
	Idle     time.Duration // an upload must go on within

	OldestBatch time.Duration // older batches are refused: the store would drop them at once
	Profile     pprofio.Limits

	Identity  Identity
	TLS       TLS
	MaxAge    time.Duration // of a connection, give or take a tenth: agents then spread anew over the servers
	AgeGrace  time.Duration // for what still runs on a connection that is too old
	Keepalive time.Duration // between pings on a silent connection
}

// DefaultConfig serves 20,000 agents in a few hundred megabytes.
func DefaultConfig() Config {
	return Config{
		Heartbeat: 15 * time.Second, Silence: 3,
		Message: 8 << 20, Inflight: 256 << 20, Credit: 4 << 20, Agents: 20_000, Uploads: 64,
		Register: 10 * time.Second, Append: 30 * time.Second, Idle: 2 * time.Minute,
		OldestBatch: 7 * 24 * time.Hour, Profile: pprofio.DefaultLimits(),
		Identity: IdentityMatch,
		MaxAge:   time.Hour, AgeGrace: 10 * time.Second, Keepalive: time.Minute,
	}
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Server == "":
		return errors.New("server-name: is empty")
	case c.Message < 1<<20 || c.Message > 64<<20:
		return fmt.Errorf("ingest-message: %d is not between 1 MiB and 64 MiB", c.Message)
	case c.Inflight < c.Message:
		return fmt.Errorf("ingest-inflight: %d is less than one message of %d bytes", c.Inflight, c.Message)
	case c.Credit < 64<<10:
		return fmt.Errorf("ingest-credit: %d is less than 64 KiB", c.Credit)
	case c.Agents < 1:
		return fmt.Errorf("ingest-agents: %d is less than 1", c.Agents)
	case c.Uploads < 1:
		return fmt.Errorf("ingest-uploads: %d is less than 1", c.Uploads)
	}
	for name, d := range map[string]time.Duration{
		"ingest-register": c.Register, "ingest-append": c.Append, "ingest-idle": c.Idle, "ingest-oldest": c.OldestBatch,
		"grpc-max-age": c.MaxAge, "grpc-age-grace": c.AgeGrace, "grpc-keepalive": c.Keepalive,
	} {
		if d <= 0 {
			return fmt.Errorf("%s: %v is not positive", name, d)
		}
	}
	if err := c.Identity.validate(); err != nil {
		return err
	}
	return c.TLS.validate()
}

// Parts is what the wire leads to.
type Parts struct {
	Store     store.Store
	Registry  *registry.Registry
	Captures  *captures.Manager
	Artifacts *artifacts.Store
}

// A Server serves the Diagnostics service.
type Server struct {
	diagonv1.UnimplementedDiagnosticsServer

	cfg     Config
	parts   Parts
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics

	unpack    *unpacker
	decoders  chan struct{}       // a place for each profile being decoded
	inflight  *semaphore.Weighted // bytes between the wire and the store
	committer *committer
	uploads   chan struct{}
	connects  atomic.Int64
	pushes    atomic.Int64

	closing   chan struct{} // closed by Close: streams end, and say that another try is welcome
	closeOnce sync.Once
	loops     sync.WaitGroup
}

// maxDecoders bounds profiles being decoded at once: each takes up to Config.Profile.Bytes unpacked.
const maxDecoders = 8

// New makes a server; Close ends it.
func New(cfg Config, parts Parts, reg prometheus.Registerer, log *slog.Logger, now func() time.Time) (*Server, error) {
	unpack, err := newUnpacker(cfg.Profile.Bytes)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	s := &Server{
		cfg: cfg, parts: parts, log: log, now: now, unpack: unpack,
		decoders: make(chan struct{}, min(runtime.GOMAXPROCS(0), maxDecoders)),
		inflight: semaphore.NewWeighted(cfg.Inflight),
		uploads:  make(chan struct{}, cfg.Uploads),
		closing:  make(chan struct{}),
	}
	s.metrics = newMetrics(reg, s)
	s.committer = newCommitter(parts.Store, cfg.Append, s.metrics, log, now)
	s.loops.Go(s.committer.run)
	return s, nil
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { diagonv1.RegisterDiagnosticsServer(r, s) }

// Drain asks every stream to end; agents come back, here or elsewhere.
func (s *Server) Drain() { s.closeOnce.Do(func() { close(s.closing) }) }

// Close ends what New started, after the gRPC server has stopped. What was received
// and not acknowledged is sent again by the agents.
func (s *Server) Close() {
	s.Drain()
	s.committer.close()
	s.loops.Wait()
	s.unpack.close()
}

// Full says why the store takes nothing at this moment; nil when it does.
func (s *Server) Full() error { return s.committer.full() }

// Hold refuses profiles for a reason that the store does not know of; nil takes them again.
func (s *Server) Hold(why error) { s.committer.hold(why) }

// received is a stream's receive loop: it only receives. Messages come on the channel, which is
// closed at the end; then err says why the stream ended, io.EOF when the agent ended it.
type received[T any] struct {
	messages chan *T
	err      error // read it after messages is closed
}

// receive starts a receive loop. It ends with the stream, at the latest when the handler returns.
func receive[Req, Resp any](s *Server, stream grpc.BidiStreamingServer[Req, Resp], depth int) *received[Req] {
	r := &received[Req]{messages: make(chan *Req, depth)}
	ctx := stream.Context()
	s.loops.Go(func() {
		defer close(r.messages)
		for {
			m, err := stream.Recv()
			if err != nil {
				r.err = err
				return
			}
			select {
			case r.messages <- m:
			case <-ctx.Done():
				r.err = context.Cause(ctx)
				return
			}
		}
	})
	return r
}
