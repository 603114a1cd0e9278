// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// errUnfinished means a partition whose making was cut short: it has no tables, and so no data.
var errUnfinished = errors.New("partition has no tables")

// create makes the next partition of an hour, durable and empty.
func (s *Store) create(ctx context.Context, hour time.Time) (*partition, error) {
	number := 0
	s.mu.RLock()
	for _, p := range s.partitions {
		if p.hour.Equal(hour) {
			number = p.number + 1
		}
	}
	s.mu.RUnlock()
	p := newPartition(s.cfg.Dir, hour, number)
	if err := s.makeTables(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("make partition %s: %w", p.path, err), s.remove(ctx, p))
	}
	s.mu.Lock()
	s.partitions = append(s.partitions, p)
	slices.SortFunc(s.partitions, (*partition).before)
	s.mu.Unlock()
	return p, nil
}

func (s *Store) makeTables(ctx context.Context, p *partition) error {
	if err := p.attach(ctx, s); err != nil {
		return err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	statements := []string{"BEGIN", "USE " + p.catalog}
	statements = append(statements, schema...)
	statements = append(statements, fmt.Sprintf("INSERT INTO meta VALUES (%d)", schemaVersion), "COMMIT")
	for _, statement := range statements {
		if _, err = conn.ExecContext(ctx, statement); err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			break
		}
	}
	// The connection goes back to the pool and must not keep the partition in use.
	_, back := conn.ExecContext(context.WithoutCancel(ctx), "USE memory")
	return errors.Join(err, back, syncDir(s.cfg.Dir))
}

// readContents learns what an attached partition holds.
func (s *Store) readContents(ctx context.Context, p *partition) error {
	if err := s.checkVersion(ctx, p); err != nil {
		return err
	}
	result, err := s.db.QueryContext(ctx, fmt.Sprintf("SELECT node, boot_id, sequence, capture, first_ts, last_ts FROM %s.batches", p.catalog))
	if err != nil {
		return fmt.Errorf("read %s: %w", p.path, err)
	}
	defer result.Close()
	c := emptyContents()
	for result.Next() {
		var (
			st          stream
			capture     string
			sequence    uint64
			first, last int64
		)
		if err := result.Scan(&st.node, &st.boot, &sequence, &capture, &first, &last); err != nil {
			return fmt.Errorf("read %s: %w", p.path, err)
		}
		c.note(st, sequence, capture, first, last)
	}
	if err := result.Err(); err != nil {
		return fmt.Errorf("read %s: %w", p.path, err)
	}
	p.mu.Lock()
	p.contents = c
	p.mu.Unlock()
	return nil
}

func (s *Store) checkVersion(ctx context.Context, p *partition) error {
	var tables int
	err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM duckdb_tables() WHERE database_name = $1", unquote(p.catalog)).Scan(&tables)
	if err != nil {
		return fmt.Errorf("read %s: %w", p.path, err)
	}
	if tables == 0 {
		return errUnfinished
	}
	var version sql.NullInt64
	if err := s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT max(version) FROM %s.meta", p.catalog)).Scan(&version); err != nil {
		return fmt.Errorf("read %s: %w", p.path, err)
	}
	if version.Int64 != schemaVersion {
		return fmt.Errorf("%s has schema version %d and this program reads %d: move the file out of the folder, or run the version that wrote it", p.path, version.Int64, schemaVersion)
	}
	return nil
}

func unquote(catalog string) string { return catalog[1 : len(catalog)-1] }

// note adds a batch to what is known.
func (c *contents) note(st stream, sequence uint64, capture string, first, last int64) {
	c.held.add(st, sequence)
	c.nodes[st.node] = struct{}{}
	if c.last < c.first {
		c.first, c.last = first, last
	} else {
		c.first, c.last = min(c.first, first), max(c.last, last)
	}
	if capture == "" {
		c.profiles = true
	} else {
		c.captures = true
	}
}

// setAside renames a damaged partition, so that it is neither served nor lost.
// The caller holds everyone, or is the only one who knows p.
func (s *Store) setAside(ctx context.Context, p *partition, why error) error {
	err := p.detach(ctx, s)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	s.forget(p)
	s.log.Error("partition is damaged and was set aside; the rest is served",
		"partition", p.path, "renamed", p.path+corruptExt, "error", why)
	for _, path := range []string{p.path, p.path + walExt} {
		if e := os.Rename(path, path+corruptExt); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, syncDir(s.cfg.Dir))
}

// remove deletes a partition's files. The caller holds everyone, or is the only one who knows p.
func (s *Store) remove(ctx context.Context, p *partition) error {
	err := p.detach(ctx, s)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	s.forget(p)
	for _, path := range []string{p.path, p.path + walExt} {
		if e := os.Remove(path); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, syncDir(s.cfg.Dir))
}

func (s *Store) forget(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partitions = slices.DeleteFunc(slices.Clone(s.partitions), func(q *partition) bool { return q == p })
}
