// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagon.dev/diagon/pkg/server/store"
)

// unionOf bounds the partitions that one statement reads. One statement over
// many is faster than many statements (fewer rows come back), and its memory grows
// with their number.
const unionOf = 16

// A question is one SELECT over each partition's tables, and one over those answers.
type question struct {
	each  func(p *partition) clause // reads one partition
	outer string                    // adds up, reading from %s
	row   func(scan func(...any) error) error
}

// A clause is a piece of SQL and the values of its question marks, in their order.
type clause struct {
	sql  string
	args []any
}

// sqlf makes a clause of names that this package chose, and other clauses, and never
// of text from outside: that travels in args. Each clause among the operands brings its own.
func sqlf(format string, operands ...any) clause {
	var c clause
	for i, o := range operands {
		if inner, ok := o.(clause); ok {
			c.args = append(c.args, inner.args...)
			operands[i] = inner.sql
		}
	}
	c.sql = fmt.Sprintf(format, operands...)
	return c
}

// and joins conditions; none at all is true.
func and(all ...clause) clause {
	if len(all) == 0 {
		return clause{sql: "true"}
	}
	out := all[0]
	for _, c := range all[1:] {
		out = sqlf("%s AND %s", out, c)
	}
	return out
}

// lease is partitions attached and shared for as long as a question takes.
type lease []*partition

func (l lease) release() {
	for _, p := range l {
		p.use.Release(1)
	}
}

// lease attaches the partitions that may hold rows of the selection.
func (s *Store) lease(ctx context.Context, sel store.Selection) (lease, error) {
	var out lease
	for _, p := range s.snapshot() {
		if !p.touches(sel) {
			continue
		}
		err := p.share(ctx, s)
		switch {
		case err == nil:
			out = append(out, p)
		case errors.Is(err, errGone):
		case isDamage(err):
			if err := s.setAsideShared(ctx, p, err); err != nil {
				s.log.Error("damaged partition stays", "partition", p.path, "error", err)
			}
		default:
			out.release()
			return nil, err
		}
	}
	return out, nil
}

// touches reports whether p may hold rows of the selection.
func (p *partition) touches(sel store.Selection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sel.Capture == "" && !p.profiles || sel.Capture != "" && !p.captures {
		return false
	}
	return p.first <= p.last && p.first < nanos(sel.To) && p.last >= nanos(sel.From)
}

// setAsideShared sets a damaged partition aside that others may be using.
func (s *Store) setAsideShared(ctx context.Context, p *partition, why error) error {
	if err := p.use.Acquire(ctx, everyone); err != nil {
		return err
	}
	defer p.use.Release(everyone)
	p.mu.Lock()
	gone := p.gone
	p.mu.Unlock()
	if gone {
		return nil
	}
	return s.setAside(ctx, p, why)
}

// ask puts q to the partitions of a lease, some at a time.
func (s *Store) ask(ctx context.Context, l lease, q question) error {
	for some := range slices.Chunk(l, unionOf) {
		if err := s.askSome(ctx, some, q); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) askSome(ctx context.Context, some []*partition, q question) error {
	var (
		parts []string
		args  []any
	)
	for _, p := range some {
		c := q.each(p)
		parts = append(parts, c.sql)
		args = append(args, c.args...)
	}
	result, err := s.db.QueryContext(ctx, fmt.Sprintf(q.outer, strings.Join(parts, " UNION ALL ")), args...)
	if err != nil {
		return s.askEach(ctx, some, q, err)
	}
	defer result.Close()
	for result.Next() {
		if err := q.row(result.Scan); err != nil {
			return err
		}
	}
	return result.Err()
}

// askEach finds the damaged partition of several and answers from the others.
// DuckDB computes an answer whole before it hands out the first row, so no row
// was counted yet.
func (s *Store) askEach(ctx context.Context, some []*partition, q question, why error) error {
	if !isDamage(why) {
		return why
	}
	if len(some) == 1 {
		return damage{some[0], why}
	}
	for _, p := range some {
		if err := s.askSome(ctx, []*partition{p}, q); err != nil {
			return err
		}
	}
	return nil
}

// damage is an error that names the partition to set aside.
type damage struct {
	partition *partition
	error
}

// with answers a question's steps over a lease; when a partition turns out to be
// damaged it is set aside and everything is asked again without it. What
// steps collects, it must collect afresh each time.
func (s *Store) with(ctx context.Context, what string, sel store.Selection, steps func(ctx context.Context, l lease) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.QueryTimeout)
		defer cancel()
	}
	for {
		err := s.once(ctx, sel, steps)
		var d damage
		if errors.As(err, &d) {
			if err := s.setAsideShared(ctx, d.partition, d.error); err != nil {
				return fmt.Errorf("duckdb: %s: %w", what, err)
			}
			continue
		}
		// DuckDB says "interrupted"; the caller wants to know of the deadline.
		if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		if err != nil {
			return fmt.Errorf("duckdb: %s: %w", what, err)
		}
		return nil
	}
}

func (s *Store) once(ctx context.Context, sel store.Selection, steps func(ctx context.Context, l lease) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := s.lease(ctx, sel)
	if err != nil {
		return err
	}
	defer s.detachIdle(context.WithoutCancel(ctx))
	defer l.release()
	return steps(ctx, l)
}
