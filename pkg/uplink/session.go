// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/uplink/spool"
)

// Orders carries out what the server asks. Its methods are called one at a time,
// from the goroutine that receives, and must not block: an order waits in the
// implementation, never on the wire. Messages belong to the callee.
type Orders interface {
	// Capture is called once for each capture id, however often it is delivered.
	Capture(*diagonv1.CaptureRequest)
	// Cancel names a capture that may be unknown or over.
	Cancel(id, reason string)
	// Settings is desired state. Within one connection generations only rise; a
	// server that lost its memory may begin again with a lower one.
	Settings(*diagonv1.Settings)
}

// Reporter answers what the node is and how it is. Its methods are called from
// one of the session's goroutines and must not block; the session does not
// change what it is given.
type Reporter interface {
	// Registration need not fill node, boot id, instance id and captures: the session does.
	Registration() *diagonv1.DaemonRegistrationRequest
	// Health need not fill the spool's numbers.
	Health() *diagonv1.Health
	// Losses are counters since the agent's start, one for each place.
	Losses() []*diagonv1.Loss
	Capabilities() []*diagonv1.Capability
	Devices() []*diagonv1.Device
}

// Identity says whose batches these are.
type Identity struct {
	Node   string
	BootID string // /proc/sys/kernel/random/boot_id
}

// A Session is the agent's side of the conversation with one server. All its
// methods may be called from several goroutines.
type Session struct {
	cfg      Config
	channel  Channel
	id       Identity
	instance string
	orders   Orders
	reporter Reporter
	lost     collector.Lost
	log      *slog.Logger

	keys   *keychain
	spool  *spool.Spool
	seen   *seen
	outbox *outbox
	counts counts
	up     link
	slots  chan struct{} // one token for each upload that runs
}

// maxUploads bounds the artifacts on their way at the same time.
const maxUploads = 2

// New opens the spool and prepares a session; Run starts it. When cfg.Data cannot
// be written the session warns and keeps its batches in memory. The error wraps
// spool.ErrLocked when another agent has the folder.
func New(cfg Config, id Identity, orders Orders, reporter Reporter, lost collector.Lost, log *slog.Logger) (*Session, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	if id.Node == "" {
		return nil, errors.New("uplink: the node has no name")
	}
	channel, err := ParseChannel(cfg.Channel, cfg.TLS)
	if err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	sp, err := openSpool(cfg, id.BootID, lost, log)
	if err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	s := &Session{
		cfg:      cfg,
		channel:  channel,
		id:       id,
		instance: rand.Text(),
		orders:   orders,
		reporter: reporter,
		lost:     lost,
		log:      log,
		spool:    sp,
		outbox:   newOutbox(cfg.KeepaliveTime + 2*cfg.KeepaliveTimeout),
		keys:     &keychain{caFile: cfg.CAFile, certFile: cfg.CertFile, keyFile: cfg.KeyFile, serverName: cfg.ServerName, log: log},
		slots:    make(chan struct{}, maxUploads),
	}
	s.up.changed = make(chan struct{})

	seenFile := ""
	if cfg.Data != "" && !sp.Stats().InMemory {
		seenFile = filepath.Join(cfg.Data, "orders-seen")
	}
	if s.seen, err = openSeen(seenFile); err != nil {
		sp.Close()
		return nil, fmt.Errorf("uplink: %w", err)
	}
	return s, nil
}

// openSpool opens the spool on disk, or in memory where the disk says no.
func openSpool(cfg Config, bootID string, lost collector.Lost, log *slog.Logger) (*spool.Spool, error) {
	var why error
	if cfg.Data != "" {
		sp, err := spool.Open(filepath.Join(cfg.Data, "spool"), bootID, cfg.Spool, lost)
		if err == nil {
			return sp, nil
		}
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		why = err
	}
	log.Warn("No data folder can be written: what is not sent yet is kept in memory and lost when the agent ends.",
		"data", cfg.Data, "bound_bytes", cfg.MemoryBytes, "error", why)
	small := cfg.Spool
	small.Bytes = min(small.Bytes, cfg.MemoryBytes)
	return spool.OpenMemory(bootID, small, lost)
}

// Run keeps the session connected until ctx is done, and returns nil then, with every
// goroutine and socket of its own released. Whatever fails in between is logged, told
// by Stats, and tried again. It is called once.
func (s *Session) Run(ctx context.Context) error {
	wait := backoff{min: s.cfg.BackoffMin, max: s.cfg.BackoffMax}
	for {
		started := time.Now()
		err := s.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) > wait.bound && s.counts.registeredSince(started) {
			wait.reset()
		}
		s.counts.failed(err)
		delay := wait.next(err)
		s.log.Warn("Connection to the backend ended.", "address", s.channel.Address(), "error", err, "retry_in", delay)
		if !sleep(ctx, delay) {
			return nil
		}
	}
}

// PushBatch gives a batch a node, boot id, sequence and checksum and puts it into
// the spool. It waits for the disk and never for the network. A batch that
// cannot be spooled is counted as lost at "spool" and the error, logged here, is returned.
// The batch belongs to the session.
func (s *Session) PushBatch(b *diagonv1.Batch) error {
	b.Node, b.BootId = s.id.Node, s.id.BootID
	b.Crc32C = crc32.Checksum(b.ProfileZstd, castagnoli)
	_, err := s.spool.Append(b.Samples, func(sequence uint64) ([]byte, error) {
		b.Sequence = sequence
		raw, err := proto.Marshal(b)
		if err == nil && len(raw) > s.cfg.BatchBytes {
			err = fmt.Errorf("%d bytes are more than a batch may have (%d)", len(raw), s.cfg.BatchBytes)
		}
		return raw, err
	})
	if err != nil {
		s.counts.unspooled(b.Samples)
		s.lost("spool", max(b.Samples, 1)) // a batch of readings only is a loss too
		s.log.Error("A batch is lost.", "samples", b.Samples, "error", err)
		return err
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ReportCapture tells the server how a capture stands. Of each capture the newest
// state is kept, and told again after a reconnect, until the server can be
// trusted to have it.
func (s *Session) ReportCapture(u *diagonv1.CaptureUpdate) { s.outbox.capture(u) }

// ReportSettings tells the server whether settings were applied; the newest counts.
func (s *Session) ReportSettings(st *diagonv1.SettingsStatus) { s.outbox.settingsStatus(st) }

// Flush waits until the server holds every batch, or until ctx is done.
func (s *Session) Flush(ctx context.Context) error {
	for {
		left := s.spool.Stats().Batches
		if left == 0 {
			return nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("uplink: %d batches stay in the spool: %w", left, context.Cause(ctx))
		}
	}
}

// Close lets go of the spool, after Run has returned.
func (s *Session) Close() error { return errors.Join(s.spool.Close(), s.seen.close()) }

// A link is the connection while it is of use: from the registration on.
type link struct {
	mu      sync.Mutex
	client  diagonv1.DiagnosticsClient // nil while there is none
	ctx     context.Context            // done when the link is
	changed chan struct{}              // closed by set, which makes a new one
}

// set says that client may be used until ctx is done.
func (l *link) set(ctx context.Context, c diagonv1.DiagnosticsClient) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.client = ctx, c
	close(l.changed)
	l.changed = make(chan struct{})
}

// clear says that there is no connection.
func (l *link) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.client = nil, nil
}

// wait answers the client of the present or next connection.
func (l *link) wait(ctx context.Context) (context.Context, diagonv1.DiagnosticsClient, error) {
	for {
		l.mu.Lock()
		up, client, changed := l.ctx, l.client, l.changed
		l.mu.Unlock()
		if client != nil {
			return up, client, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-changed:
		}
	}
}
