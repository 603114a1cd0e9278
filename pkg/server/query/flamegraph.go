// SPDX-License-Identifier: Apache-2.0

package query

import (
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// A FlameGraph is a tree of calls in preorder, in columns.
type FlameGraph struct {
	Type      string     `json:"type"`
	Unit      string     `json:"unit"`
	Total     int64      `json:"total"`
	BaseTotal *int64     `json:"base_total,omitempty"`
	Functions []Function `json:"functions"`
	Function  []int32    `json:"function"` // index into Functions; -1: the small frames of its parent, put together
	Depth     []int32    `json:"depth"`    // 0 is the outermost frame
	Value     []int64    `json:"value"`    // with everything above it
	Self      []int64    `json:"self"`
	BaseValue []int64    `json:"base_value,omitempty"`
	BaseSelf  []int64    `json:"base_self,omitempty"`
	Cut       *Cut       `json:"cut"`
	Losses    []Loss     `json:"losses"`
	From      string     `json:"from"`
	To        string     `json:"to"`
}

// A Cut says how much of an answer was put together, or left out, and what that weighs.
type Cut struct {
	Nodes int   `json:"nodes"`
	Value int64 `json:"value"`
}

// A Loss is what a node dropped, and where.
type Loss struct {
	Node  string `json:"node"`
	Place string `json:"place"`
	Count uint64 `json:"count"`
}

// NewFlameGraph shapes weights into a flame graph of at most maxNodes named frames.
// The lighter ones are put together below their parent, so the numbers still
// add up: the values at depth 0, and all selfs, are each the sum of all weights.
func NewFlameGraph(t profile.Type, w store.Weights, maxNodes int) FlameGraph {
	tr := newTree()
	tr.add(w.Stacks, 0)
	return tr.columns(t, w.Losses, maxNodes, false)
}

// NewDiff is a flame graph with the numbers of a base beside its own.
func NewDiff(t profile.Type, w, base store.Weights, maxNodes int) FlameGraph {
	tr := newTree()
	tr.add(w.Stacks, 0)
	tr.add(base.Stacks, 1)
	return tr.columns(t, append(append([]store.NodeLoss(nil), w.Losses...), base.Losses...), maxNodes, true)
}

// columns writes the tree down.
func (t *tree) columns(typ profile.Type, losses []store.NodeLoss, maxNodes int, diff bool) FlameGraph {
	g := FlameGraph{
		Type: typ.String(), Unit: typ.Unit(), Total: t.nodes[0].value[0],
		Functions: []Function{}, Function: []int32{}, Depth: []int32{}, Value: []int64{}, Self: []int64{},
		Losses: lossesOf(losses),
	}
	if diff {
		g.BaseTotal, g.BaseValue, g.BaseSelf = &t.nodes[0].value[1], []int64{}, []int64{}
	}
	kept := t.keep(maxNodes)
	w := columnWriter{FlameGraph: &g, tree: t, diff: diff, children: t.children(kept), renumbered: make(map[int32]int32)}
	w.rest = make([][2]int64, len(t.nodes))
	for i, n := range t.nodes[1:] {
		if kept[i+1] {
			continue
		}
		w.dropped++
		if kept[n.parent] {
			w.rest[n.parent][0] += n.value[0]
			w.rest[n.parent][1] += n.value[1]
		}
	}
	w.hasRest = make([]bool, len(t.nodes))
	for i, n := range t.nodes[1:] {
		if !kept[i+1] && kept[n.parent] {
			w.hasRest[n.parent] = true
		}
	}
	w.below(0)
	if w.dropped > 0 {
		g.Cut = &Cut{Nodes: w.dropped, Value: w.droppedValue}
	}
	return g
}

type columnWriter struct {
	*FlameGraph
	tree         *tree
	diff         bool
	children     [][]int32
	rest         [][2]int64 // by node: its children that were not kept
	hasRest      []bool
	renumbered   map[int32]int32
	dropped      int
	droppedValue int64
}

// below writes what is under a node. Its depth is that of a stack, which agents and pprofio bound.
func (w *columnWriter) below(parent int32) {
	for _, i := range w.children[parent] {
		n := w.tree.nodes[i]
		w.put(w.functionOf(n.function), n.depth, n.value, n.self)
		w.below(i)
	}
	if w.hasRest[parent] {
		w.put(-1, w.tree.nodes[parent].depth+1, w.rest[parent], w.rest[parent])
		w.droppedValue += w.rest[parent][0]
	}
}

func (w *columnWriter) put(function, depth int32, value, self [2]int64) {
	w.Function = append(w.Function, function)
	w.Depth = append(w.Depth, depth)
	w.Value = append(w.Value, value[0])
	w.Self = append(w.Self, self[0])
	if w.diff {
		w.BaseValue = append(w.BaseValue, value[1])
		w.BaseSelf = append(w.BaseSelf, self[1])
	}
}

// functionOf numbers the functions that are shown.
func (w *columnWriter) functionOf(f int32) int32 {
	n, ok := w.renumbered[f]
	if !ok {
		n = int32(len(w.Functions))
		w.renumbered[f] = n
		w.Functions = append(w.Functions, w.tree.list[f])
	}
	return n
}

func lossesOf(losses []store.NodeLoss) []Loss {
	out := make([]Loss, len(losses))
	for i, l := range losses {
		out[i] = Loss{Node: l.Node, Place: l.Place, Count: l.Count}
	}
	return out
}
