// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"fmt"
	"slices"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// A Function is what a frame of an answer is called.
type Function struct {
	Name   string `json:"name"` // module+0xOFFSET when there is no name
	Module string `json:"module"`
	File   string `json:"file"`
	Realm  string `json:"realm"`
}

// functions numbers functions in the order in which they are met.
type functions struct {
	list   []Function
	number map[Function]int32
	at     map[*profile.Location][]int32 // outermost first
}

func newFunctions() *functions {
	return &functions{number: make(map[Function]int32), at: make(map[*profile.Location][]int32)}
}

// of lists the functions at a location, outermost first.
func (fs *functions) of(l *profile.Location) []int32 {
	if numbers, ok := fs.at[l]; ok {
		return numbers
	}
	var numbers []int32
	for _, f := range named(l) {
		n, ok := fs.number[f]
		if !ok {
			n = int32(len(fs.list))
			fs.number[f] = n
			fs.list = append(fs.list, f)
		}
		numbers = append(numbers, n)
	}
	fs.at[l] = numbers
	return numbers
}

// named lists what a location is called, outermost function first. There is always one.
func named(l *profile.Location) []Function {
	f := Function{Realm: l.Realm.String(), Name: fmt.Sprintf("%s+0x%x", l.Mapping.Name(), l.Offset)}
	if l.Mapping != nil {
		f.Module = l.Mapping.Name()
	}
	if !l.Named() {
		return []Function{f}
	}
	out := make([]Function, 0, len(l.Lines))
	for _, line := range slices.Backward(l.Lines) {
		g := f
		g.File = line.File
		if line.Function != "" {
			g.Name = line.Function
		}
		out = append(out, g)
	}
	return out
}

// noStack is what a stack without frames is called, so that its weight is seen.
var noStack = &profile.Location{Realm: profile.RealmSynthetic, Lines: []profile.Line{{Function: "[no stack]"}}}

// walk calls visit for each function of a stack, outermost first. There is always one.
func (fs *functions) walk(s profile.Stack, visit func(function int32)) {
	if len(s) == 0 {
		visit(fs.of(noStack)[0])
	}
	for i := range slices.Backward(s) {
		l := s[i].Location
		if l == nil {
			l = &profile.Location{Realm: s[i].Realm, Offset: s[i].Address}
			for _, f := range fs.of(l) {
				visit(f)
			}
			delete(fs.at, l)
			continue
		}
		for _, f := range fs.of(l) {
			visit(f)
		}
	}
}

// A node is a function reached by one path of calls. Numbers come in pairs: of the
// selection, and of the base that it is compared with.
type node struct {
	function    int32
	parent      int32
	depth       int32
	value, self [2]int64
}

// tree is the paths of calls, each node behind its parent. Node 0 is above all.
type tree struct {
	*functions
	nodes []node
	child map[childKey]int32
}

type childKey struct{ parent, function int32 }

func newTree() *tree {
	return &tree{
		functions: newFunctions(),
		nodes:     []node{{function: -1, parent: -1, depth: -1}},
		child:     make(map[childKey]int32),
	}
}

// add puts weights into the tree; side is 0 for the selection and 1 for the base.
func (t *tree) add(weights []store.Weight, side int) {
	for _, w := range weights {
		at := int32(0)
		t.nodes[0].value[side] += w.Value
		t.walk(w.Stack, func(function int32) {
			at = t.below(at, function)
			t.nodes[at].value[side] += w.Value
		})
		t.nodes[at].self[side] += w.Value
	}
}

func (t *tree) below(parent, function int32) int32 {
	key := childKey{parent, function}
	if n, ok := t.child[key]; ok {
		return n
	}
	n := int32(len(t.nodes))
	t.child[key] = n
	t.nodes = append(t.nodes, node{function: function, parent: parent, depth: t.nodes[parent].depth + 1})
	return n
}

// keep chooses the heaviest nodes, at most limit of them, none without its parent.
func (t *tree) keep(limit int) []bool {
	kept := make([]bool, len(t.nodes))
	kept[0] = true
	if len(t.nodes)-1 <= limit {
		for i := range kept {
			kept[i] = true
		}
		return kept
	}
	order := make([]int32, 0, len(t.nodes)-1)
	for i := range t.nodes[1:] {
		order = append(order, int32(i+1))
	}
	weight := func(i int32) int64 { return t.nodes[i].value[0] + t.nodes[i].value[1] }
	// Of equal weights the earlier comes first, and a parent is earlier than its children.
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	for _, i := range order[:limit] {
		kept[i] = kept[t.nodes[i].parent]
	}
	return kept
}

// children lists each node's children among those kept, in the order of their names, so
// that a picture that is drawn again stays where it was.
func (t *tree) children(kept []bool) [][]int32 {
	out := make([][]int32, len(t.nodes))
	for i := 1; i < len(t.nodes); i++ {
		if kept[i] {
			parent := t.nodes[i].parent
			out[parent] = append(out[parent], int32(i))
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b int32) int {
			return compareFunctions(t.list[t.nodes[a].function], t.list[t.nodes[b].function])
		})
	}
	return out
}

func compareFunctions(a, b Function) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module), cmp.Compare(a.File, b.File), cmp.Compare(a.Realm, b.Realm))
}
