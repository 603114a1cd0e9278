// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"

	driver "github.com/duckdb/duckdb-go/v2"

	"diagon.dev/diagon/pkg/profile"
)

// known remembers which identifiers a partition's dictionaries hold. Forgetting
// is harmless: a row is then written twice.
type known struct{ stacks, frames, subjects, series map[uint64]struct{} }

func newKnown() *known {
	return &known{make(map[uint64]struct{}), make(map[uint64]struct{}), make(map[uint64]struct{}), make(map[uint64]struct{})}
}

func (k *known) len() int { return len(k.stacks) + len(k.frames) + len(k.subjects) + len(k.series) }

// add takes over what a transaction wrote.
func (k *known) add(written *known) {
	for _, pair := range [][2]map[uint64]struct{}{
		{k.stacks, written.stacks}, {k.frames, written.frames}, {k.subjects, written.subjects}, {k.series, written.series},
	} {
		for id := range pair[1] {
			pair[0][id] = struct{}{}
		}
	}
}

// writtenAtOnce bounds the partitions whose identifiers are remembered: the
// hour's, and those of late batches.
const writtenAtOnce = 4

// knownOf finds or reads the identifiers of a partition.
func (w *batchWriter) knownOf(ctx context.Context, p *partition) (*known, error) {
	if k, ok := w.known[p]; ok && k.len() < w.cfg.DictionaryIDs {
		return k, nil
	}
	if len(w.known) >= writtenAtOnce {
		clear(w.known)
	}
	k := newKnown()
	for _, t := range []struct {
		ids         map[uint64]struct{}
		table, name string
	}{{k.stacks, "stacks", "stack_id"}, {k.frames, "frames", "frame_id"}, {k.subjects, "subjects", "subject_id"}, {k.series, "series", "series_id"}} {
		if err := w.readIDs(ctx, t.ids, fmt.Sprintf("SELECT DISTINCT %s FROM %s.%s LIMIT %d", t.name, p.catalog, t.table, w.cfg.DictionaryIDs/8)); err != nil {
			return nil, fmt.Errorf("read the dictionaries of %s: %w", p.path, err)
		}
	}
	w.known[p] = k
	return k, nil
}

func (w *batchWriter) readIDs(ctx context.Context, into map[uint64]struct{}, question string) error {
	result, err := w.db.QueryContext(ctx, question)
	if err != nil {
		return err
	}
	defer result.Close()
	for result.Next() {
		var id uint64
		if err := result.Scan(&id); err != nil {
			return err
		}
		into[id] = struct{}{}
	}
	return result.Err()
}

// insert writes batches in one transaction, durable when it returns nil.
func (w *batchWriter) insert(ctx context.Context, p *partition, batches []*rows) error {
	k, err := w.knownOf(ctx, p)
	if err != nil {
		return err
	}
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	written := newKnown()
	err = conn.Raw(func(c any) error {
		return appendRows(c.(sqldriver.Conn), unquote(p.catalog), batches, k, written)
	})
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// A commit that fails has ended its transaction already; whatever state this
		// connection is in, nobody gets it again.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		return err
	}
	k.add(written)
	return syncDir(w.cfg.Dir)
}

// appendRows hands the batches' rows to DuckDB's appenders, one for each table.
func appendRows(conn sqldriver.Conn, catalog string, batches []*rows, k, written *known) error {
	a := appenders{conn: conn, catalog: catalog, open: make(map[string]*driver.Appender)}
	for _, b := range batches {
		if err := a.batch(b, k, written); err != nil {
			return errors.Join(err, a.close())
		}
	}
	return a.close()
}

type appenders struct {
	conn    sqldriver.Conn
	catalog string
	open    map[string]*driver.Appender
}

func (a *appenders) to(table string) (*driver.Appender, error) {
	if ap, ok := a.open[table]; ok {
		return ap, nil
	}
	ap, err := driver.NewAppender(a.conn, a.catalog, "main", table)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", table, err)
	}
	a.open[table] = ap
	return ap, nil
}

func (a *appenders) row(table string, values ...sqldriver.Value) error {
	ap, err := a.to(table)
	if err != nil {
		return err
	}
	if err := ap.AppendRow(values...); err != nil {
		return fmt.Errorf("append to %s: %w", table, err)
	}
	return nil
}

func (a *appenders) close() error {
	var err error
	for table, ap := range a.open {
		if e := ap.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("append to %s: %w", table, e))
		}
	}
	return err
}

func (a *appenders) batch(b *rows, k, written *known) error {
	node := b.stream.node
	err := a.row("batches", node, b.stream.boot, b.sequence, b.agentVersion, b.capture, b.start, b.end, b.period, b.first, b.last)
	if err != nil {
		return err
	}
	if err := a.samples(b); err != nil {
		return err
	}
	for _, r := range b.readings {
		if err := a.row("readings", r.ts, node, r.series, r.value, b.capture); err != nil {
			return err
		}
	}
	for _, l := range b.losses {
		if err := a.row("losses", b.start, node, clean(l.Place), l.Count, b.capture); err != nil {
			return err
		}
	}
	return a.dictionaries(b, k, written)
}

// samples is the one hot loop: everything that does not change between rows is boxed once.
func (a *appenders) samples(b *rows) error {
	if len(b.samples) == 0 {
		return nil
	}
	ap, err := a.to("samples")
	if err != nil {
		return err
	}
	row := []sqldriver.Value{b.start, b.stream.node, nil, nil, nil, nil, b.capture}
	for _, s := range b.samples {
		row[2], row[3], row[4], row[5] = s.subject, s.typ, s.stack, s.value
		if err := ap.AppendRow(row...); err != nil {
			return fmt.Errorf("append to samples: %w", err)
		}
	}
	return nil
}

// dictionaries writes what the batch speaks of and the partition does not know.
func (a *appenders) dictionaries(b *rows, k, written *known) error {
	for id, frames := range b.stacks {
		if fresh(id, k.stacks, written.stacks) {
			if err := a.row("stacks", id, frames); err != nil {
				return err
			}
		}
	}
	for id, l := range b.frames {
		if fresh(id, k.frames, written.frames) {
			if err := a.frame(id, l); err != nil {
				return err
			}
		}
	}
	for id, s := range b.subjects {
		if fresh(id, k.subjects, written.subjects) {
			err := a.row("subjects", id, int64(s.PID), s.Comm, s.Thread, s.ContainerID, s.Namespace, s.Pod, s.Container,
				s.Workload, s.WorkloadKind, s.Rank, s.Device, s.Ioctl)
			if err != nil {
				return err
			}
		}
	}
	for id, s := range b.series {
		if fresh(id, k.series, written.series) {
			names, values := make([]string, len(s.labels)), make([]string, len(s.labels))
			for i, l := range s.labels {
				names[i], values[i] = clean(l.Name), clean(l.Value)
			}
			if err := a.row("series", id, clean(s.metric), names, values); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *appenders) frame(id uint64, l *profile.Location) error {
	var mapping, build sqldriver.Value
	if l.Mapping != nil {
		mapping, build = clean(l.Mapping.Path), clean(l.Mapping.BuildID)
	}
	if len(l.Lines) == 0 {
		return a.row("frames", id, uint32(0), nil, nil, int64(0), mapping, build, l.Offset, l.Realm.String())
	}
	for i, line := range l.Lines {
		err := a.row("frames", id, uint32(i), clean(line.Function), clean(line.File), int64(line.Number), mapping, build, l.Offset, l.Realm.String())
		if err != nil {
			return err
		}
	}
	return nil
}

// fresh reports whether an identifier is in neither set, and puts it into written.
func fresh(id uint64, known, written map[uint64]struct{}) bool {
	if _, ok := known[id]; ok {
		return false
	}
	if _, ok := written[id]; ok {
		return false
	}
	written[id] = struct{}{}
	return true
}
