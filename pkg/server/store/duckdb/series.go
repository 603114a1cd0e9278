// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// Steps begin at multiples of step since the Unix epoch, so that asking again a moment
// later moves no point.

// Readings answers the mean of a metric over each step, one series for each
// node and set of labels. Steps without a reading have no point.
func (s *Store) Readings(ctx context.Context, metric string, sel store.Selection, step time.Duration) ([]store.Series, error) {
	if step <= 0 {
		return nil, fmt.Errorf("duckdb: readings: step is %v, it must be positive", step)
	}
	var out []store.Series
	err := s.with(ctx, "readings of "+metric, sel, func(ctx context.Context, l lease) error {
		f := newFilter(l, sel)
		out = nil
		if f.nothing {
			return nil
		}
		matching, err := s.matchingSeries(ctx, l, metric, sel.Matchers)
		if err != nil || len(matching) == 0 {
			return err
		}
		means, err := s.means(ctx, l, f, slices.Collect(maps.Keys(matching)), step)
		for key, points := range means {
			out = append(out, store.Series{Metric: metric, Labels: withNode(matching[key.series], key.node), Points: points.list(step)})
		}
		sortSeries(out)
		return err
	})
	return out, err
}

// matchingSeries reads the label sets of a metric that the matchers accept; those on nodes are the filter's.
func (s *Store) matchingSeries(ctx context.Context, l lease, metric string, matchers []*labels.Matcher) (map[uint64]profile.Labels, error) {
	found := make(map[uint64]profile.Labels)
	err := s.ask(ctx, l, question{
		each: func(p *partition) clause {
			return clause{fmt.Sprintf("SELECT series_id, label_names, label_values FROM %s.series WHERE metric = ?", p.catalog), []any{clean(metric)}}
		},
		outer: "SELECT series_id, any_value(label_names), any_value(label_values) FROM (%s) GROUP BY series_id",
		row: func(scan func(...any) error) error {
			var (
				id            uint64
				names, values any
			)
			if err := scan(&id, &names, &values); err != nil {
				return err
			}
			ls, err := labelSet(names, values)
			if err != nil {
				return fmt.Errorf("series %016x: %w", id, err)
			}
			for _, m := range matchers {
				value := ls.Get(m.Name)
				if m.Name == model.MetricNameLabel {
					value = metric
				}
				if m.Name != "node" && !m.Matches(value) {
					return nil
				}
			}
			found[id] = ls
			return nil
		},
	})
	return found, err
}

func labelSet(names, values any) (profile.Labels, error) {
	n, _ := names.([]any)
	v, _ := values.([]any)
	if len(n) != len(v) {
		return nil, fmt.Errorf("%d names of labels and %d values", len(n), len(v))
	}
	out := make(profile.Labels, len(n))
	for i := range n {
		name, okName := n[i].(string)
		value, okValue := v[i].(string)
		if !okName || !okValue {
			return nil, fmt.Errorf("a label is %T and %T", n[i], v[i])
		}
		out[i] = profile.Label{Name: name, Value: value}
	}
	return out, nil
}

type seriesKey struct {
	node   string
	series uint64
}

// mean is a sum and how many, or how much, it is of.
type mean struct{ sum, weight float64 }

// points is a series by number of step.
type points map[int64]mean

func (p points) list(step time.Duration) []store.Point {
	out := make([]store.Point, 0, len(p))
	for _, bucket := range slices.Sorted(maps.Keys(p)) {
		out = append(out, store.Point{Time: time.Unix(0, bucket*int64(step)).UTC(), Value: p[bucket].sum / p[bucket].weight})
	}
	return out
}

func (s *Store) means(ctx context.Context, l lease, f *filter, series []uint64, step time.Duration) (map[seriesKey]points, error) {
	out := make(map[seriesKey]points)
	err := s.ask(ctx, l, question{
		each: func(p *partition) clause {
			return sqlf("SELECT node, series_id, ts // %d AS bucket, sum(value) AS total, count(*) AS n FROM %s.readings WHERE %s AND series_id IN (SELECT unnest(%s)) GROUP BY ALL",
				int64(step), p.catalog, f.rowsOf(p), clause{"?::UBIGINT[]", []any{series}})
		},
		outer: "SELECT node, series_id, bucket, sum(total), sum(n)::BIGINT FROM (%s) GROUP BY ALL",
		row: func(scan func(...any) error) error {
			var (
				key       seriesKey
				bucket, n int64
				total     float64
			)
			if err := scan(&key.node, &key.series, &bucket, &total, &n); err != nil {
				return err
			}
			if out[key] == nil {
				out[key] = make(points)
			}
			m := out[key][bucket]
			out[key][bucket] = mean{m.sum + total, m.weight + float64(n)}
			return nil
		},
	})
	return out, err
}

// withNode puts the label node among the others.
func withNode(ls profile.Labels, node string) profile.Labels {
	out := make(profile.Labels, 0, len(ls)+1)
	for _, l := range ls {
		if l.Name != "node" {
			out = append(out, l)
		}
	}
	i, _ := slices.BinarySearchFunc(out, "node", func(l profile.Label, name string) int { return cmp.Compare(l.Name, name) })
	return slices.Insert(out, i, profile.Label{Name: "node", Value: node})
}

func sortSeries(all []store.Series) {
	key := func(s store.Series) string {
		var b strings.Builder
		for _, l := range s.Labels {
			fmt.Fprintf(&b, "%s\xff%s\xff", l.Name, l.Value)
		}
		return b.String()
	}
	slices.SortFunc(all, func(a, b store.Series) int { return cmp.Compare(key(a), key(b)) })
}
