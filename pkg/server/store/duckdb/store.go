// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/duckdb/duckdb-go/v2"
	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/server/store"
)

// Store keeps batches in DuckDB files. Open makes one.
type Store struct {
	cfg  Config
	log  *slog.Logger
	db   *sql.DB // an empty database in memory, to which partitions are attached
	lock *os.File

	mu         sync.RWMutex // guards partitions, the slice
	partitions []*partition // oldest first

	dict atomic.Pointer[dictionary]

	queue   chan *request
	closing chan struct{} // closed by Close
	stopped chan struct{} // closed by the writer, when it is done
	closed  sync.Once
}

var _ store.Store = (*Store)(nil)

// Open opens the store in cfg.Dir and makes it if there is none. A full disk is
// no error; Append will say so. Partitions whose bytes are damaged are set aside
// under the extension .corrupt, with an error in the log, and the rest is served.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := makePrivate(cfg.Dir); err != nil {
		return nil, fmt.Errorf("duckdb: make the store's folder: %w", err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("duckdb: %w", err)
	}
	cfg.Dir = dir
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	db, err := engine(cfg)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	s := &Store{
		cfg: cfg, log: log, db: db, lock: lock,
		queue: make(chan *request, queued), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.dict.Store(newDictionary())
	if err := s.load(ctx); err != nil {
		_ = db.Close()
		_ = lock.Close()
		return nil, err
	}
	go s.write()
	return s, nil
}

// makePrivate makes the folder, or takes from others what an earlier one let them do: DuckDB
// makes its files readable to all, and a profile tells what runs on every node.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return os.Chmod(dir, mode&0o750)
	}
	return nil
}

// lockDir keeps a second process out. The lock goes with the process, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("duckdb: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("duckdb: %s is in use by another process: stop it or choose another folder: %w", dir, err)
	}
	return f, nil
}

// connections bounds the questions that run at once; others wait.
const connections = 8

// engine starts DuckDB. Its own database stays empty and in memory.
func engine(cfg Config) (*sql.DB, error) {
	connector, err := driver.NewConnector("", nil)
	if err != nil {
		return nil, fmt.Errorf("duckdb: start: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	for _, set := range []string{
		fmt.Sprintf("SET memory_limit = '%dB'", cfg.MemoryBytes),
		fmt.Sprintf("SET threads = %d", cfg.Threads),
		"SET temp_directory = " + quote(filepath.Join(cfg.Dir, "tmp")),
		fmt.Sprintf("SET max_temp_directory_size = '%dB'", 4*cfg.MemoryBytes),
		// The order of rows means nothing here, and keeping it costs memory.
		"SET preserve_insertion_order = false",
		// The writer decides when to checkpoint: a commit that also checkpoints can
		// fail after the rows are durable, and then nobody knows.
		"SET checkpoint_threshold = '1TB'",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET lock_configuration = true",
	} {
		if _, err := db.Exec(set); err != nil {
			_ = db.Close()
			return nil, fmt.Errorf("duckdb: %s: %w", set, err)
		}
	}
	return db, nil
}

// load finds the partitions and reads what each holds.
func (s *Store) load(ctx context.Context) error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("duckdb: %w", err)
	}
	for _, e := range entries {
		p, ok := parsePartition(s.cfg.Dir, e.Name())
		if !ok {
			continue
		}
		keep, err := s.loadPartition(ctx, p)
		if err != nil {
			return fmt.Errorf("duckdb: %w", err)
		}
		if keep {
			s.partitions = append(s.partitions, p)
		}
		s.detachIdle(ctx)
	}
	slices.SortFunc(s.partitions, (*partition).before)
	return nil
}

// loadPartition reads what p holds; false means that it was damaged and set
// aside, or empty and removed.
func (s *Store) loadPartition(ctx context.Context, p *partition) (keep bool, err error) {
	info, err := os.Stat(p.path)
	if err == nil && info.Size() == 0 {
		err = errUnfinished
	}
	if err == nil {
		err = p.attach(ctx, s)
	}
	if err == nil {
		err = s.readContents(ctx, p)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errUnfinished):
		return false, s.remove(ctx, p)
	case isDamage(err):
		return false, s.setAside(ctx, p, err)
	}
	return false, err
}

// Close waits for what is being written, refuses what comes later, and lets go of the files.
func (s *Store) Close() error {
	var err error
	s.closed.Do(func() {
		close(s.closing)
		<-s.stopped
		s.mu.Lock()
		partitions := s.partitions
		s.mu.Unlock()
		for _, p := range partitions {
			ctx, cancel := context.WithTimeout(context.Background(), s.cfg.QueryTimeout)
			if held := p.use.Acquire(ctx, everyone); held == nil {
				p.mu.Lock()
				p.gone = true
				p.mu.Unlock()
				// On a full disk the log cannot be written out; it is read again by the next Open.
				if e := p.detach(ctx, s); e != nil && !isFull(e) {
					err = errors.Join(err, e)
				}
				p.use.Release(everyone)
			}
			cancel()
		}
		err = errors.Join(err, s.db.Close(), s.lock.Close())
	})
	if err != nil {
		return fmt.Errorf("duckdb: close: %w", err)
	}
	return nil
}

// errClosed is what is answered after Close.
var errClosed = errors.New("duckdb: the store is closed")

// detachIdle closes the files least recently used while too many are open.
func (s *Store) detachIdle(ctx context.Context) {
	for _, p := range s.idle() {
		if !p.use.TryAcquire(everyone) {
			continue
		}
		if err := p.detach(ctx, s); err != nil {
			s.log.Warn("partition stays open", "partition", p.path, "error", err)
		}
		p.use.Release(everyone)
	}
}

// idle lists the attached partitions beyond the bound, least recently used first.
func (s *Store) idle() []*partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	type used struct {
		p  *partition
		at time.Time
	}
	var attached []used
	for _, p := range s.partitions {
		p.mu.Lock()
		if p.attached {
			attached = append(attached, used{p, p.lastUse})
		}
		p.mu.Unlock()
	}
	excess := len(attached) - s.cfg.MaxAttached
	if excess <= 0 {
		return nil
	}
	slices.SortFunc(attached, func(a, b used) int { return a.at.Compare(b.at) })
	out := make([]*partition, excess)
	for i := range out {
		out[i] = attached[i].p
	}
	return out
}

// syncDir makes new and deleted names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
