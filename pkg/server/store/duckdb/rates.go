// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"fmt"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// Rates answers how much of t there was per second, one series a node. A batch
// is spread evenly over its window, and a step is divided by the part of it
// that batches cover: a window longer than the step makes no gaps, and the step in
// progress is not too low. Where a node's batches cover a step and hold nothing of t, the point is 0.
func (s *Store) Rates(ctx context.Context, t profile.Type, sel store.Selection, step time.Duration) ([]store.Series, error) {
	if step <= 0 {
		return nil, fmt.Errorf("duckdb: rates: step is %v, it must be positive", step)
	}
	var out []store.Series
	err := s.with(ctx, "rates of "+t.String(), sel, func(ctx context.Context, l lease) error {
		out = nil
		f, err := s.sampleFilter(ctx, l, sel)
		if err != nil || f.nothing || !f.matchesType(t.String()) {
			return err
		}
		nodes, err := s.windows(ctx, l, f, t, step)
		if err != nil {
			return err
		}
		for node, p := range nodes {
			out = append(out, store.Series{
				Metric: t.String(),
				Labels: profile.Labels{{Name: "node", Value: node}},
				Points: p.list(step),
			})
		}
		sortSeries(out)
		return nil
	})
	return out, err
}

// windows reads what each node's batches add up to and spreads it over the steps.
// Batches that lie within one step come back added up, so there are at most a few
// rows for each node and step.
func (s *Store) windows(ctx context.Context, l lease, f *filter, t profile.Type, step time.Duration) (map[string]points, error) {
	out := make(map[string]points)
	ns := int64(step)
	err := s.ask(ctx, l, question{
		each: func(p *partition) clause {
			return sqlf(`SELECT b.node, CASE WHEN b.ts // %[1]d = b.last // %[1]d THEN b.ts // %[1]d * %[1]d ELSE b.ts END AS began,
					CASE WHEN b.ts // %[1]d = b.last // %[1]d THEN 0 ELSE b.last + 1 END AS ended,
					sum(b.last + 1 - b.ts)::DOUBLE AS covered, coalesce(sum(v.v), 0)::DOUBLE AS v
				FROM (SELECT node, ts, max(greatest(end_ts - 1, ts)) AS last FROM (SELECT start_ts AS ts, * FROM %[2]s.batches) WHERE %[3]s GROUP BY node, ts) b
				LEFT JOIN (SELECT node, ts, sum(value) AS v FROM %[2]s.samples WHERE type = %[4]d AND %[5]s GROUP BY node, ts) v USING (node, ts)
				GROUP BY ALL`, ns, p.catalog, f.rowsOf(p), typeNumbers[t], f.samplesOf(p))
		},
		outer: "SELECT node, began, ended, sum(covered), sum(v) FROM (%s) GROUP BY ALL",
		row: func(scan func(...any) error) error {
			var (
				node           string
				began, ended   int64
				covered, value float64
			)
			if err := scan(&node, &began, &ended, &covered, &value); err != nil {
				return err
			}
			if out[node] == nil {
				out[node] = make(points)
			}
			out[node].spread(began, ended, covered, value, ns)
			return nil
		},
	})
	return out, err
}

// spread adds value to the steps that a window touches. ended is 0 for what lies
// within the one step that begins at began; covered is in nanoseconds.
func (p points) spread(began, ended int64, covered, value float64, step int64) {
	if ended == 0 {
		p.put(began/step, covered, value)
		return
	}
	whole := float64(ended - began)
	for from := began; from < ended; {
		to := min(ended, (from/step+1)*step)
		part := float64(to-from) / whole
		p.put(from/step, covered*part, value*part)
		from = to
	}
}

func (p points) put(bucket int64, covered, value float64) {
	m := p[bucket]
	p[bucket] = mean{m.sum + value, m.weight + covered/float64(time.Second)}
}
