// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"slices"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// A Top is a table of functions, by self, greatest first.
type Top struct {
	Type   string `json:"type"`
	Unit   string `json:"unit"`
	Total  int64  `json:"total"`
	Rows   []Row  `json:"rows"`
	Cut    *Cut   `json:"cut"` // rows left out, and their self
	Losses []Loss `json:"losses"`
}

// A Row is one function, wherever it was called from.
type Row struct {
	Function string `json:"function"`
	Module   string `json:"module"`
	File     string `json:"file"`
	Realm    string `json:"realm"`
	Self     int64  `json:"self"`
	Total    int64  `json:"total"` // a function that calls itself counts once in a stack
}

// NewTop shapes weights into a table of at most maxRows functions.
func NewTop(t profile.Type, w store.Weights, maxRows int) Top {
	fs := newFunctions()
	var (
		self, total []int64
		seen        []int // by function: the last stack that it was met in, counted from 1
		sum         int64
	)
	for i, weight := range w.Stacks {
		sum += weight.Value
		leaf := int32(-1)
		fs.walk(weight.Stack, func(f int32) {
			for int(f) >= len(seen) {
				self, total, seen = append(self, 0), append(total, 0), append(seen, 0)
			}
			if seen[f] != i+1 {
				seen[f] = i + 1
				total[f] += weight.Value
			}
			leaf = f
		})
		self[leaf] += weight.Value
	}
	rows := make([]Row, len(fs.list))
	for i, f := range fs.list {
		rows[i] = Row{Function: f.Name, Module: f.Module, File: f.File, Realm: f.Realm, Self: self[i], Total: total[i]}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Function, b.Function),
			cmp.Compare(a.Module, b.Module), cmp.Compare(a.File, b.File))
	})
	out := Top{Type: t.String(), Unit: t.Unit(), Total: sum, Rows: rows, Losses: lossesOf(w.Losses)}
	if len(rows) > maxRows {
		out.Cut = &Cut{Nodes: len(rows) - maxRows}
		for _, r := range rows[maxRows:] {
			out.Cut.Value += r.Self
		}
		out.Rows = rows[:maxRows]
	}
	return out
}
