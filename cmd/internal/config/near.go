// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// didYouMean words a question for the known name nearest to name, "" when none is near.
func didYouMean(prefix, name string, known []string) string {
	const most = 64 // nobody mistypes a longer name, and the distance costs its square
	if len(name) > most {
		return ""
	}
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
	best, nearest := 1+max(1, len(name)/3), ""
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(fold(name), fold(k)); d < best {
			best, nearest = d, k
		}
	}
	if nearest == "" {
		return ""
	}
	return "; did you mean " + prefix + nearest + "?"
}

// distance counts the bytes to insert, drop, replace or swap with their
// neighbour in order to turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
