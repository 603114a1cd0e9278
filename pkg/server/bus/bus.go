// SPDX-License-Identifier: Apache-2.0

// Package bus is where the servers of one fleet meet: a NATS connection with
// JetStream behind it, and tables of small records that every server sees.
//
// By default NATS runs inside this process, keeps its records in the data
// directory and listens nowhere. Several servers share one NATS: an external
// cluster by its URL, or the embedded one of a server that was told to listen.
// What the records and the messages mean is for registry and captures to say.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config is what an operator decides about the bus.
type Config struct {
	URL      string // of an external NATS with JetStream, "nats://host:4222"; "" runs NATS in this process
	Listen   string // host:port on which the embedded NATS takes other servers; "" listens nowhere
	Dir      string // where the embedded NATS keeps its records
	Replicas int    // copies of each record in an external cluster, 1 to 5
}

// DefaultConfig runs NATS in this process, without a port.
func DefaultConfig() Config { return Config{Replicas: 1} }

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if c.URL != "" && c.Listen != "" {
		return errors.New("nats-listen: an external NATS is used (nats-url), so there is no embedded one that could listen")
	}
	if c.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			return fmt.Errorf("nats-listen: %w", err)
		}
	}
	if c.Replicas < 1 || c.Replicas > 5 {
		return fmt.Errorf("nats-replicas: %d is not between 1 and 5", c.Replicas)
	}
	return nil
}

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 5 * time.Second

	// storeBytes bounds what the embedded JetStream may write. It is set because
	// the default is a share of the free disk: on a full one no table could be opened.
	storeBytes = 1 << 30
	// maxPayload bounds one message, and so one record.
	maxPayload = 1 << 20
)

// A Bus is one server's connection to the others.
type Bus struct {
	Conn *nats.Conn

	js       jetstream.JetStream
	replicas int
	srv      *server.Server // nil when NATS is external
	log      *slog.Logger

	mu     sync.Mutex
	tables []interface{ stop() }
}

// Open starts or reaches NATS. Close releases what it made.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Bus, error) {
	b := &Bus{log: log, replicas: cfg.Replicas}
	if err := b.connect(cfg); err != nil {
		b.Close()
		return nil, err
	}
	js, err := jetstream.New(b.Conn)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("bus: jetstream: %w", err)
	}
	b.js = js

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := js.AccountInfo(ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("bus: jetstream: does that NATS run with JetStream on? %w", err)
	}
	return b, nil
}

func (b *Bus) connect(cfg Config) (err error) {
	opts := []nats.Option{
		nats.Name("diagon-server"),
		nats.MaxReconnects(-1),
		nats.ReconnectJitter(100*time.Millisecond, time.Second),
		nats.Timeout(5 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			b.log.Warn("message bus error", "subject", subject, "err", err)
		}),
	}
	if cfg.URL != "" {
		opts = append(opts,
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
				b.log.Warn("message bus is gone; captures and nodes of other servers wait for it", "err", err)
			}),
			nats.ReconnectHandler(func(c *nats.Conn) { b.log.Info("message bus is back", "url", c.ConnectedUrlRedacted()) }))
		if b.Conn, err = nats.Connect(cfg.URL, opts...); err != nil {
			return fmt.Errorf("bus: connect to the NATS of nats-url: %w", err)
		}
		return nil
	}

	if b.srv, err = embed(cfg, b.log); err != nil {
		return err
	}
	if b.Conn, err = nats.Connect("", append(opts, nats.InProcessServer(b.srv))...); err != nil {
		return fmt.Errorf("bus: connect to the embedded NATS: %w", err)
	}
	return nil
}

// embed starts NATS in this process.
func embed(cfg Config, log *slog.Logger) (*server.Server, error) {
	opts := &server.Options{
		ServerName:         "diagon",
		JetStream:          true,
		StoreDir:           cfg.Dir,
		JetStreamMaxStore:  storeBytes,
		JetStreamMaxMemory: 64 << 20,
		SyncInterval:       10 * time.Second,
		MaxPayload:         maxPayload,
		DontListen:         cfg.Listen == "",
		NoSigs:             true,
	}
	if cfg.Listen != "" {
		host, port, _ := net.SplitHostPort(cfg.Listen) // Validate has seen it
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("bus: nats-listen: port %q is not a number", port)
		}
		if n == 0 {
			n = server.RANDOM_PORT
		}
		opts.Host, opts.Port = host, n
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("bus: embedded NATS: %w", err)
	}
	lg := &natsLog{log: log}
	srv.SetLoggerV2(lg, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		srv.Shutdown()
		return nil, fmt.Errorf("bus: embedded NATS did not come up in %v: %s", startTimeout, lg.lastError())
	}
	return srv, nil
}

// URL is where another server reaches the embedded NATS; "" when nobody can.
func (b *Bus) URL() string {
	if b.srv == nil || b.srv.Addr() == nil {
		return ""
	}
	return "nats://" + b.srv.Addr().String()
}

// Up says why the bus cannot be used at this moment; nil when it can.
func (b *Bus) Up() error {
	if b.Conn == nil || !b.Conn.IsConnected() {
		return errors.New("bus: not connected to NATS")
	}
	return nil
}

// Close stops the tables, the connection and the embedded NATS.
func (b *Bus) Close() {
	b.mu.Lock()
	tables := b.tables
	b.tables = nil
	b.mu.Unlock()
	for _, t := range tables {
		t.stop()
	}
	if b.Conn != nil {
		b.Conn.Close()
	}
	if b.srv == nil {
		return
	}
	b.srv.Shutdown()
	done := make(chan struct{})
	go func() { b.srv.WaitForShutdown(); close(done) }()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		b.log.Warn("embedded NATS did not stop in time", "after", stopTimeout)
	}
}

// Token makes one subject token, and one part of a record's key, of any name:
// letters, digits, '-' and '_' stay, other bytes become =HH.
func Token(name string) string {
	var s strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			s.WriteByte(c)
		default:
			fmt.Fprintf(&s, "=%02X", c)
		}
	}
	return s.String()
}
