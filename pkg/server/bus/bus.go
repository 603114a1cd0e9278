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
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"
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
	storeBytes  = 1 << 30
	memoryBytes = 64 << 20
	syncEvery   = 10 * time.Second
	// roomNeeded is what the disk must have for records to be written at all.
	roomNeeded = 16 << 20
	// maxPayload bounds one message, and so one record.
	maxPayload = 1 << 20
)

// A Bus is one server's connection to the others.
type Bus struct {
	Conn *nats.Conn

	js       jetstream.JetStream
	replicas int
	srv      *server.Server // nil when NATS is external
	dir      string         // of the embedded one
	storage  jetstream.StorageType
	scratch  string // a folder of this run alone, to be removed; "" for none
	log      *slog.Logger

	failed atomic.Bool // the last write found no answer

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

	if err := b.chooseStorage(cfg); err != nil {
		return err
	}
	if b.srv, err = embed(cfg, b.dir, b.log); err != nil {
		return err
	}
	if b.Conn, err = nats.Connect("", append(opts, nats.InProcessServer(b.srv))...); err != nil {
		return fmt.Errorf("bus: connect to the embedded NATS: %w", err)
	}
	return nil
}

// chooseStorage decides where the embedded NATS keeps its records: in cfg.Dir, or for this one run
// in memory when that disk is full. JetStream shuts itself down at the first write that
// finds no room, and a server that cannot know its nodes could not even say so.
func (b *Bus) chooseStorage(cfg Config) error {
	b.dir = cfg.Dir
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(cfg.Dir, &fs); err != nil {
		return fmt.Errorf("bus: statfs %s: %w", cfg.Dir, err)
	}
	free := int64(fs.Bavail) * fs.Bsize
	if free >= roomNeeded {
		return nil
	}
	b.log.Error("disk is full: nodes and captures of earlier runs are not read, and those of this run are kept in memory until the next start",
		"dir", cfg.Dir, "free_bytes", free, "needed_bytes", roomNeeded)
	b.storage = jetstream.MemoryStorage
	var err error
	if b.dir, err = os.MkdirTemp("/dev/shm", "diagon-"); err != nil {
		if b.dir, err = os.MkdirTemp("", "diagon-"); err != nil {
			return fmt.Errorf("bus: the disk of %s is full, and no other folder can be made: %w", cfg.Dir, err)
		}
	}
	b.scratch = b.dir
	return nil
}

// embed starts NATS in this process.
func embed(cfg Config, dir string, log *slog.Logger) (*server.Server, error) {
	opts := &server.Options{
		ServerName:         "diagon",
		JetStream:          true,
		StoreDir:           dir,
		JetStreamMaxStore:  storeBytes,
		JetStreamMaxMemory: memoryBytes,
		SyncInterval:       syncEvery,
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
	if b.stuck() {
		return errors.New("bus: the embedded NATS cannot write its records: nodes and captures stand still; is the disk full?")
	}
	return nil
}

// stuck says that the embedded NATS must be started again: a stream that met a full disk takes
// nothing more, and gives no answer, also when there is room again.
func (b *Bus) stuck() bool {
	return b.srv != nil && (b.failed.Load() || !b.srv.JetStreamEnabled())
}

// Revive starts the embedded NATS's records again after a write failed; it does nothing when none did. It is for
// the caller to know that the disk has room again.
func (b *Bus) Revive() error {
	if !b.stuck() {
		return nil
	}
	if err := b.srv.ShutdownJetStream(); err != nil {
		return fmt.Errorf("bus: stop the embedded NATS's records: %w", err)
	}
	err := b.srv.EnableJetStream(&server.JetStreamConfig{
		StoreDir: b.dir, MaxStore: storeBytes, MaxMemory: memoryBytes, SyncInterval: syncEvery,
	})
	if err != nil {
		return fmt.Errorf("bus: start the embedded NATS's records again: %w", err)
	}
	b.failed.Store(false)
	b.log.Info("embedded NATS keeps records again")
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
	if b.scratch != "" {
		defer os.RemoveAll(b.scratch)
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
