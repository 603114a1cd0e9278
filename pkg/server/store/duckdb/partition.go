// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// A partition is one database file: the batches of one hour, with the
// dictionaries they need. It is dropped by deleting the file.
type partition struct {
	name    string // "20261201T15-000": the hour in UTC, and a number among the hour's files
	path    string
	catalog string // what SQL calls it
	hour    time.Time
	number  int

	// use is shared by those who ask and write, and held whole by the one who
	// detaches, drops or sets aside.
	use *semaphore.Weighted

	mu       sync.Mutex // guards what follows
	attached bool
	gone     bool // dropped or set aside: nothing may attach it again
	lastUse  time.Time
	contents
}

// contents is what is known of a partition without asking it.
type contents struct {
	held        held
	nodes       map[string]struct{}
	first, last int64 // timestamps of its rows; last < first when there are none
	captures    bool  // it holds samples of captures
	profiles    bool  // it holds samples of the always-on profile
}

// everyone is the weight that leaves no other user.
const everyone = 1 << 30

const (
	partitionExt = ".duckdb"
	walExt       = ".wal"     // DuckDB's, appended to the file's name
	corruptExt   = ".corrupt" // ours, for what was set aside
	hourLayout   = "20060102T15"
)

func newPartition(dir string, hour time.Time, number int) *partition {
	name := fmt.Sprintf("%s-%03d", hour.UTC().Format(hourLayout), number)
	return &partition{
		name:     name,
		path:     dir + string(os.PathSeparator) + name + partitionExt,
		catalog:  `"p` + name + `"`,
		hour:     hour.UTC(),
		number:   number,
		use:      semaphore.NewWeighted(everyone),
		contents: emptyContents(),
	}
}

func emptyContents() contents {
	return contents{held: make(held), nodes: make(map[string]struct{}), first: 1}
}

// parsePartition reads a file's name; ok is false for files that are no partitions.
func parsePartition(dir, file string) (p *partition, ok bool) {
	name, ok := strings.CutSuffix(file, partitionExt)
	if !ok {
		return nil, false
	}
	date, digits, ok := strings.Cut(name, "-")
	if !ok {
		return nil, false
	}
	hour, err := time.Parse(hourLayout, date)
	if err != nil {
		return nil, false
	}
	var number int
	if _, err := fmt.Sscanf(digits, "%d", &number); err != nil || number < 0 {
		return nil, false
	}
	p = newPartition(dir, hour, number)
	return p, p.name == name
}

// before orders partitions by age.
func (p *partition) before(q *partition) int {
	if c := p.hour.Compare(q.hour); c != 0 {
		return c
	}
	return p.number - q.number
}

// end is the first instant that no batch of the partition begins at.
func (p *partition) end() time.Time { return p.hour.Add(time.Hour) }

// bytes is what the partition takes on disk.
func (p *partition) bytes() int64 {
	var sum int64
	for _, path := range []string{p.path, p.path + walExt} {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// share waits for a place among the partition's users and sees that it is
// attached. It answers errGone for a partition that was dropped meanwhile.
func (p *partition) share(ctx context.Context, s *Store) error {
	if err := p.use.Acquire(ctx, 1); err != nil {
		return err
	}
	if err := p.attach(ctx, s); err != nil {
		p.use.Release(1)
		return err
	}
	return nil
}

func (p *partition) attach(ctx context.Context, s *Store) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return errGone
	}
	p.lastUse = s.cfg.Now()
	if p.attached {
		return nil
	}
	if _, err := s.db.ExecContext(ctx, fmt.Sprintf("ATTACH %s AS %s", quote(p.path), p.catalog)); err != nil {
		return fmt.Errorf("attach %s: %w", p.path, err)
	}
	p.attached = true
	return nil
}

// detach lets go of the file, writing out its log if there is room. The caller holds everyone.
func (p *partition) detach(ctx context.Context, s *Store) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.attached {
		return nil
	}
	_, err := s.db.ExecContext(ctx, "DETACH "+p.catalog)
	if err != nil && p.stillAttached(ctx, s) {
		return fmt.Errorf("detach %s: %w", p.path, err)
	}
	p.attached = false
	return nil
}

// stillAttached asks DuckDB: on a full disk DETACH fails to write out the log and
// detaches all the same. The log is then read by whoever attaches the file again.
func (p *partition) stillAttached(ctx context.Context, s *Store) bool {
	var n int
	err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM duckdb_databases() WHERE database_name = ?", unquote(p.catalog)).Scan(&n)
	return err != nil || n > 0
}

// quote makes a SQL string of a path.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
