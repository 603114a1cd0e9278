// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"diagon.dev/diagon/pkg/profile"
)

// writeFolded writes one line a stack, "root;…;leaf 12", sorted; the number counts samples.
func writeFolded(w io.Writer, b *profile.Batch) error {
	lines := make(map[string]int64)
	for i := range b.Records {
		lines[foldedStack(b.Records[i].Stack)] += b.Records[i].Values[profile.Samples]
	}
	for _, stack := range slices.Sorted(maps.Keys(lines)) {
		if _, err := fmt.Fprintf(w, "%s %d\n", stack, lines[stack]); err != nil {
			return err
		}
	}
	return nil
}

// separators end a frame, a stack or a line, and a function's name may hold each.
var separators = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// foldedStack goes from the root to the leaf.
func foldedStack(stack profile.Stack) string {
	if len(stack) == 0 {
		return "[no stack]"
	}
	var names []string
	for _, f := range slices.Backward(stack) {
		if f.Location == nil {
			names = append(names, fmt.Sprintf("0x%x", f.Address))
			continue
		}
		for _, name := range slices.Backward(f.Location.Names()) {
			names = append(names, separators.Replace(name))
		}
	}
	return strings.Join(names, ";")
}
