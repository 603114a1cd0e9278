// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// WriteFolded writes one line a stack, root first: "main;work;read_[k] 42".
func WriteFolded(w io.Writer, weights []store.Weight) error {
	sums := make(map[string]int64)
	for _, weight := range weights {
		sums[foldedStack(weight.Stack)] += weight.Value
	}
	out := bufio.NewWriter(w)
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(out, "%s %d\n", stack, sums[stack])
	}
	return out.Flush()
}

// WriteFoldedDiff writes each stack with its value in the base and in the
// selection, in this order, as difffolded.pl does.
func WriteFoldedDiff(w io.Writer, weights, base []store.Weight) error {
	sums := make(map[string][2]int64)
	for side, list := range [][]store.Weight{base, weights} {
		for _, weight := range list {
			name := foldedStack(weight.Stack)
			pair := sums[name]
			pair[side] += weight.Value
			sums[name] = pair
		}
	}
	out := bufio.NewWriter(w)
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(out, "%s %d %d\n", stack, sums[stack][0], sums[stack][1])
	}
	return out.Flush()
}

// separators are what ends a frame and a line of folded text; a function's name may hold them.
var separators = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

func foldedStack(s profile.Stack) string {
	var names []string
	for _, f := range slices.Backward(s) {
		l := f.Location
		if l == nil {
			l = &profile.Location{Realm: f.Realm, Offset: f.Address}
		}
		for _, name := range slices.Backward(l.Names()) {
			names = append(names, separators.Replace(name))
		}
	}
	if len(names) == 0 {
		return noStack.Lines[0].Function
	}
	return strings.Join(names, ";")
}
