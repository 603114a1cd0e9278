// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"fmt"
	"math"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// Stacks adds up the values of t by stack. Frames of one place share a Location,
// and their Address is the Location's Offset: where a file was mapped is not kept.
func (s *Store) Stacks(ctx context.Context, t profile.Type, sel store.Selection, limit int) (store.Weights, error) {
	var out store.Weights
	err := s.with(ctx, "stacks", sel, func(ctx context.Context, l lease) error {
		f, err := s.sampleFilter(ctx, l, sel)
		if err != nil {
			return err
		}
		sums, err := s.sums(ctx, l, f, t, limit)
		if err != nil {
			return err
		}
		if out.Stacks, err = s.name(ctx, l, sums); err != nil {
			return err
		}
		if out.Losses, err = s.losses(ctx, l, f); err != nil {
			return err
		}
		out.Period, err = s.period(ctx, l, f)
		return err
	})
	if err != nil {
		return store.Weights{}, err
	}
	return out, nil
}

// saturate adds up as far as a BIGINT goes: no total that a person reads is near it.
const saturate = "least(sum(v), 9223372036854775807)::BIGINT"

// sums adds up values by stack id. Each partition's rows are added up before they meet
// the others': that bounds the memory by stacks and not by rows.
func (s *Store) sums(ctx context.Context, l lease, f *filter, t profile.Type, limit int) (map[uint64]int64, error) {
	sums := make(map[uint64]int64)
	if f.nothing || !f.matchesType(t.String()) {
		return sums, nil
	}
	err := s.ask(ctx, l, question{
		each: func(p *partition) clause {
			return sqlf("SELECT stack_id, sum(value) AS v FROM %s.samples WHERE type = %d AND %s GROUP BY stack_id",
				p.catalog, typeNumbers[t], f.samplesOf(p))
		},
		// More than limit+1 of one statement need not be carried to know that there are too many.
		outer: fmt.Sprintf("SELECT stack_id, %s FROM (%%s) GROUP BY stack_id LIMIT %d", saturate, int64(limit)+1),
		row: func(scan func(...any) error) error {
			var (
				id    uint64
				value int64
			)
			if err := scan(&id, &value); err != nil {
				return err
			}
			sums[id] = add(sums[id], value)
			if len(sums) > limit {
				return fmt.Errorf("%w: more than %d stacks: ask for less time, or select by labels", store.ErrTooLarge, limit)
			}
			return nil
		},
	})
	return sums, err
}

// add adds without wrapping around.
func add(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	if b < 0 && a < math.MinInt64-b {
		return math.MinInt64
	}
	return a + b
}

// losses adds up what was lost by node and place. Losses have no subject, so
// matchers on other labels than node leave them in.
func (s *Store) losses(ctx context.Context, l lease, f *filter) ([]store.NodeLoss, error) {
	byPlace := make(map[[2]string]uint64)
	var order [][2]string
	err := s.ask(ctx, l, question{
		each: func(p *partition) clause {
			return sqlf("SELECT node, place, count AS v FROM %s.losses WHERE %s", p.catalog, f.rowsOf(p))
		},
		outer: "SELECT node, place, least(sum(v), 18446744073709551615)::UBIGINT FROM (%s) GROUP BY ALL ORDER BY ALL",
		row: func(scan func(...any) error) error {
			var (
				key   [2]string
				count uint64
			)
			if err := scan(&key[0], &key[1], &count); err != nil {
				return err
			}
			if _, ok := byPlace[key]; !ok {
				order = append(order, key)
			}
			byPlace[key] += count
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	out := make([]store.NodeLoss, len(order))
	for i, key := range order {
		out[i] = store.NodeLoss{Node: key[0], Loss: profile.Loss{Place: key[1], Count: byPlace[key]}}
	}
	return out, nil
}

// period is the one sampling period of the selection's batches, 0 when there is none or more.
func (s *Store) period(ctx context.Context, l lease, f *filter) (int64, error) {
	periods := make(map[int64]struct{})
	err := s.ask(ctx, l, question{
		each: func(p *partition) clause {
			return sqlf("SELECT DISTINCT period_ns AS v FROM (SELECT start_ts AS ts, * FROM %s.batches) WHERE period_ns > 0 AND %s", p.catalog, f.rowsOf(p))
		},
		outer: "SELECT DISTINCT v FROM (%s)",
		row: func(scan func(...any) error) error {
			var ns int64
			if err := scan(&ns); err != nil {
				return err
			}
			periods[ns] = struct{}{}
			return nil
		},
	})
	if err != nil || len(periods) != 1 {
		return 0, err
	}
	for ns := range periods {
		return ns, nil
	}
	return 0, nil
}
