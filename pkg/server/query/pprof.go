// SPDX-License-Identifier: Apache-2.0

package query

import (
	"io"
	"maps"
	"slices"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/server/store"
)

// WritePprof writes weights as a pprof file, in gzip. What was lost is in its comments.
func WritePprof(w io.Writer, t profile.Type, weights store.Weights, sel store.Selection) error {
	b := profile.Batch{Start: sel.From, End: sel.To, Losses: lossesByPlace(weights.Losses)}
	if t == profile.CPU || t == profile.Samples {
		b.PeriodNS = weights.Period
	}
	for _, weight := range weights.Stacks {
		r := profile.Record{Stack: weight.Stack}
		r.Values[t] = weight.Value
		b.Records = append(b.Records, r)
	}
	return pprofio.Encode(w, &b, pprofio.Meta{})
}

// lossesByPlace adds the nodes up: a pprof file speaks of one.
func lossesByPlace(losses []store.NodeLoss) []profile.Loss {
	sums := make(map[string]uint64)
	for _, l := range losses {
		sums[l.Place] += l.Count
	}
	var out []profile.Loss
	for _, place := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, profile.Loss{Place: place, Count: sums[place]})
	}
	return out
}
