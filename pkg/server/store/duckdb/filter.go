// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"diagon.dev/diagon/pkg/server/store"
)

// A filter is a Selection as SQL. Which of its conditions a partition needs depends on what that holds.
type filter struct {
	sel      store.Selection
	from, to int64
	nodes    []string // that match, sorted; nil when all do
	subjects []clause // conditions on a row of subjects
	nothing  bool     // no row can match
}

// nanos is a time as the tables write it, cut to what they can say.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(minTime):
		return 0
	case t.After(maxTime):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// newFilter turns the matchers on nodes into a list of nodes.
func newFilter(l lease, sel store.Selection) *filter {
	f := &filter{sel: sel, from: nanos(sel.From), to: nanos(sel.To)}
	for _, m := range sel.Matchers {
		if m.Name == "node" {
			f.matchNodes(l, m)
		}
	}
	f.nothing = f.nodes != nil && len(f.nodes) == 0
	return f
}

func (f *filter) matchNodes(l lease, m *labels.Matcher) {
	if f.nodes == nil {
		all := make(map[string]struct{})
		for _, p := range l {
			p.mu.Lock()
			maps.Copy(all, p.nodes)
			p.mu.Unlock()
		}
		f.nodes = slices.AppendSeq([]string{}, maps.Keys(all))
		slices.Sort(f.nodes)
	}
	f.nodes = slices.DeleteFunc(f.nodes, func(node string) bool { return !m.Matches(node) })
}

// sampleFilter adds the matchers on the labels of samples. Matchers are
// evaluated by Prometheus' code and not by DuckDB's regular expressions, so that they mean what they
// mean elsewhere: a pattern is tried on each value there is, and SQL gets the
// values that match.
func (s *Store) sampleFilter(ctx context.Context, l lease, sel store.Selection) (*filter, error) {
	f := newFilter(l, sel)
	for _, m := range sel.Matchers {
		if m.Name == "node" || m.Name == model.MetricNameLabel {
			continue
		}
		expr, ok := labelExpr(m.Name)
		if !ok {
			f.nothing = f.nothing || !m.Matches("")
			continue
		}
		switch m.Type {
		case labels.MatchEqual:
			f.subjects = append(f.subjects, clause{expr + " = ?", []any{m.Value}})
		case labels.MatchNotEqual:
			f.subjects = append(f.subjects, clause{expr + " <> ?", []any{m.Value}})
		default:
			values, err := s.matching(ctx, l, expr, m)
			if err != nil {
				return nil, err
			}
			f.nothing = f.nothing || len(values) == 0
			f.subjects = append(f.subjects, clause{expr + " IN (SELECT unnest(?::VARCHAR[]))", []any{values}})
		}
	}
	return f, nil
}

// matching lists the values of a label that m matches, over all subjects of the lease.
func (s *Store) matching(ctx context.Context, l lease, expr string, m *labels.Matcher) ([]string, error) {
	found := make(map[string]struct{})
	err := s.ask(ctx, l, question{
		each:  func(p *partition) clause { return sqlf("SELECT DISTINCT %s AS v FROM %s.subjects", expr, p.catalog) },
		outer: "SELECT DISTINCT v FROM (%s)",
		row: func(scan func(...any) error) error {
			var v string
			if err := scan(&v); err != nil {
				return err
			}
			if m.Matches(v) {
				found[v] = struct{}{}
			}
			return nil
		},
	})
	return slices.Collect(maps.Keys(found)), err
}

// rowsOf is the condition on a table's rows: time, node and capture. What holds
// for every row of the partition is left out: it would cost a column's reading.
func (f *filter) rowsOf(p *partition) clause {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []clause
	if f.from > p.first {
		all = append(all, clause{"ts >= ?", []any{f.from}})
	}
	if f.to <= p.last {
		all = append(all, clause{"ts < ?", []any{f.to}})
	}
	if f.nodes != nil && !f.hasOnly(p.nodes) {
		all = append(all, clause{"node IN (SELECT unnest(?::VARCHAR[]))", []any{f.nodes}})
	}
	if p.captures {
		all = append(all, clause{"capture = ?", []any{clean(f.sel.Capture)}})
	}
	return and(all...)
}

// hasOnly reports whether every node of a partition matches.
func (f *filter) hasOnly(nodes map[string]struct{}) bool {
	for node := range nodes {
		if _, ok := slices.BinarySearch(f.nodes, node); !ok {
			return false
		}
	}
	return true
}

// samplesOf is the condition on a partition's samples.
func (f *filter) samplesOf(p *partition) clause {
	where := f.rowsOf(p)
	if len(f.subjects) == 0 {
		return where
	}
	return sqlf("%s AND subject_id IN (SELECT subject_id FROM %s.subjects WHERE %s)", where, p.catalog, and(f.subjects...))
}

// matchesType applies matchers on __name__, which for a sample is its type.
func (f *filter) matchesType(name string) bool {
	for _, m := range f.sel.Matchers {
		if m.Name == model.MetricNameLabel && !m.Matches(name) {
			return false
		}
	}
	return true
}
