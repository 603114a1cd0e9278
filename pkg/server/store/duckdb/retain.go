// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"diagon.dev/diagon/pkg/server/store"
)

// Retain drops whole partitions, oldest first, and says how many bytes the
// store takes afterwards on disk. What was set aside as damaged counts, and goes first.
// Dropping waits for the questions that read the partition.
func (s *Store) Retain(ctx context.Context, r store.Retention, now time.Time) (int64, error) {
	if r.Age > 0 {
		oldest := now.Add(-r.Age)
		for _, p := range s.snapshot() {
			if p.end().After(oldest) {
				continue
			}
			if err := s.drop(ctx, p, "age"); err != nil {
				return 0, err
			}
		}
		if err := s.dropAside(func(p *partition, _ int64) bool { return !p.end().After(oldest) }); err != nil {
			return 0, err
		}
	}
	bytes, err := s.bytes()
	if err != nil || r.Bytes <= 0 || bytes <= r.Bytes {
		return bytes, err
	}
	err = s.dropAside(func(_ *partition, size int64) bool {
		drop := bytes > r.Bytes
		if drop {
			bytes -= size
		}
		return drop
	})
	if err != nil {
		return 0, err
	}
	for _, p := range s.snapshot() {
		if bytes, err = s.bytes(); err != nil || bytes <= r.Bytes {
			return bytes, err
		}
		if err := s.drop(ctx, p, "bytes"); err != nil {
			return 0, err
		}
	}
	return s.bytes()
}

// drop deletes a partition once nobody reads it.
func (s *Store) drop(ctx context.Context, p *partition, why string) error {
	if err := p.use.Acquire(ctx, everyone); err != nil {
		return fmt.Errorf("duckdb: retain: wait for the readers of %s: %w", p.path, err)
	}
	defer p.use.Release(everyone)
	bytes := p.bytes()
	if err := s.remove(ctx, p); err != nil {
		return fmt.Errorf("duckdb: retain: drop %s: %w", p.path, err)
	}
	s.log.Info("partition dropped", "partition", p.path, "bytes", bytes, "because", why)
	return nil
}

// dropAside deletes files that were set aside, those that drop chooses.
func (s *Store) dropAside(drop func(p *partition, size int64) bool) error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("duckdb: retain: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), corruptExt)
		if !ok {
			continue
		}
		p, ok := parsePartition(s.cfg.Dir, strings.TrimSuffix(name, walExt))
		info, err := e.Info()
		if !ok || err != nil || !drop(p, info.Size()) {
			continue
		}
		if err := os.Remove(filepath.Join(s.cfg.Dir, e.Name())); err != nil {
			return fmt.Errorf("duckdb: retain: %w", err)
		}
	}
	return nil
}

// bytes adds up the files of the store's folder.
func (s *Store) bytes() (int64, error) {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return 0, fmt.Errorf("duckdb: %w", err)
	}
	var sum int64
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err == nil && info.Mode().IsRegular():
			sum += info.Size()
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return 0, fmt.Errorf("duckdb: %w", err)
		}
	}
	return sum, nil
}
