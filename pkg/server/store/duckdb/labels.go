// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// Types lists the sample types that the selection holds, in their order.
func (s *Store) Types(ctx context.Context, sel store.Selection) ([]profile.Type, error) {
	var out []profile.Type
	err := s.with(ctx, "types", sel, func(ctx context.Context, l lease) error {
		f, err := s.sampleFilter(ctx, l, sel)
		if err != nil || f.nothing {
			return err
		}
		found := make(map[uint8]bool)
		err = s.ask(ctx, l, question{
			each: func(p *partition) clause {
				return sqlf("SELECT DISTINCT type FROM %s.samples WHERE %s", p.catalog, f.samplesOf(p))
			},
			outer: "SELECT DISTINCT type FROM (%s)",
			row: func(scan func(...any) error) error {
				var number uint8
				err := scan(&number)
				found[number] = true
				return err
			},
		})
		out = nil
		for t := range profile.Type(profile.NumTypes) {
			if found[typeNumbers[t]] && f.matchesType(t.String()) {
				out = append(out, t)
			}
		}
		return err
	})
	return out, err
}

// LabelNames lists the labels of the selection's samples that have a value, sorted.
func (s *Store) LabelNames(ctx context.Context, sel store.Selection) ([]string, error) {
	var out []string
	err := s.with(ctx, "label names", sel, func(ctx context.Context, l lease) error {
		f, err := s.sampleFilter(ctx, l, sel)
		if err != nil || f.nothing {
			return err
		}
		found := make(map[string]bool)
		var present []string
		for _, label := range subjectLabels {
			present = append(present, fmt.Sprintf("coalesce(bool_or(%s <> ''), false)", label.expr))
		}
		err = s.ask(ctx, l, question{
			each: func(p *partition) clause {
				return sqlf("SELECT * FROM %s.subjects WHERE subject_id IN (SELECT DISTINCT subject_id FROM %s.samples WHERE %s)",
					p.catalog, p.catalog, f.samplesOf(p))
			},
			outer: "SELECT count(*) > 0, " + strings.Join(present, ", ") + " FROM (%s)",
			row: func(scan func(...any) error) error {
				var some bool
				has, targets := make([]bool, len(present)), []any{&some}
				for i := range has {
					targets = append(targets, &has[i])
				}
				if err := scan(targets...); err != nil {
					return err
				}
				found["node"] = found["node"] || some
				for i, label := range subjectLabels {
					found[label.name] = found[label.name] || has[i]
				}
				return nil
			},
		})
		maps.DeleteFunc(found, func(_ string, has bool) bool { return !has })
		out = slices.Sorted(maps.Keys(found))
		return err
	})
	return out, err
}

// LabelValues lists the values of a label of samples, sorted; of "node", also those
// of nodes that sent no samples; of "__name__", the metrics of readings.
func (s *Store) LabelValues(ctx context.Context, name string, sel store.Selection, limit int) (values []string, cut bool, err error) {
	err = s.with(ctx, "values of label "+name, sel, func(ctx context.Context, l lease) error {
		found := make(map[string]struct{})
		row := func(scan func(...any) error) error {
			var v string
			err := scan(&v)
			found[v] = struct{}{}
			return err
		}
		q, err := s.valuesQuestion(ctx, l, name, sel, limit)
		if err != nil || q.each == nil {
			values, cut = nil, false
			return err
		}
		q.row = row
		if err := s.ask(ctx, l, q); err != nil {
			return err
		}
		values = slices.Sorted(maps.Keys(found))
		cut = len(values) > limit
		values = values[:min(limit, len(values))]
		return nil
	})
	return values, cut, err
}

// valuesQuestion asks for the first values in order, one more than limit. It
// asks nothing when nothing can match.
func (s *Store) valuesQuestion(ctx context.Context, l lease, name string, sel store.Selection, limit int) (question, error) {
	outer := fmt.Sprintf("SELECT DISTINCT v FROM (%%s) WHERE v <> '' ORDER BY v LIMIT %d", int64(limit)+1)
	if name == model.MetricNameLabel {
		return question{each: metricsOf(newFilter(l, sel)), outer: outer}, nil
	}
	f, err := s.sampleFilter(ctx, l, sel)
	if err != nil || f.nothing {
		return question{}, err
	}
	if name == "node" {
		return question{each: nodesOf(f), outer: outer}, nil
	}
	expr, ok := labelExpr(name)
	if !ok {
		return question{}, nil
	}
	return question{outer: outer, each: func(p *partition) clause {
		return sqlf("SELECT DISTINCT %s AS v FROM %s.subjects WHERE subject_id IN (SELECT DISTINCT subject_id FROM %s.samples WHERE %s)",
			expr, p.catalog, p.catalog, f.samplesOf(p))
	}}, nil
}

func metricsOf(f *filter) func(*partition) clause {
	return func(p *partition) clause {
		return sqlf("SELECT DISTINCT metric AS v FROM %s.series WHERE series_id IN (SELECT DISTINCT series_id FROM %s.readings WHERE %s)",
			p.catalog, p.catalog, f.rowsOf(p))
	}
}

func nodesOf(f *filter) func(*partition) clause {
	return func(p *partition) clause {
		if len(f.subjects) == 0 {
			return sqlf("SELECT DISTINCT node AS v FROM (SELECT start_ts AS ts, * FROM %s.batches) WHERE %s", p.catalog, f.rowsOf(p))
		}
		return sqlf("SELECT DISTINCT node AS v FROM %s.samples WHERE %s", p.catalog, f.samplesOf(p))
	}
}
