// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	pprof "github.com/google/pprof/profile"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

var update = flag.Bool("update", false, "rewrite testdata")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// frame makes a frame of words: "main@busy", "[k]schedule", "?lib.so+10" for one without a name.
func frame(text string) profile.Frame {
	realm := profile.RealmUser
	if rest, ok := strings.CutPrefix(text, "[k]"); ok {
		realm, text = profile.RealmKernel, rest
	}
	name, module, _ := strings.Cut(text, "@")
	l := &profile.Location{Realm: realm, Offset: 0x10}
	if module != "" {
		l.Mapping = &profile.Mapping{Path: "/usr/lib/" + module}
	}
	for inline := range strings.SplitSeq(name, "<") { // "inner<outer": inlined
		if inline != "" {
			l.Lines = append(l.Lines, profile.Line{Function: inline, File: inline + ".c", Number: 7})
		}
	}
	return profile.Frame{Realm: realm, Location: l}
}

// weight makes a stack of words, outermost first as folded text has them.
func weight(value int64, frames ...string) store.Weight {
	w := store.Weight{Value: value}
	for _, text := range slices.Backward(frames) {
		w.Stack = append(w.Stack, frame(text))
	}
	return w
}

var sample = store.Weights{
	Stacks: []store.Weight{
		weight(50, "main@busy", "work@busy", "spin@busy"),
		weight(30, "main@busy", "work@busy"),
		weight(9, "main@busy", "inner<outer@busy", "[k]sys_read@[kernel]"),
		weight(5, "main@busy", "@libc.so.6"),
		weight(3, "main@busy", "work@busy", "main@busy", "work@busy"),
		weight(2, "lone;some@other"),
		weight(1),
	},
	Losses: []store.NodeLoss{{Node: "a", Loss: profile.Loss{Place: "ring", Count: 4}}, {Node: "b", Loss: profile.Loss{Place: "ring", Count: 3}}},
	Period: 52631578,
}

var base = store.Weights{Stacks: []store.Weight{
	weight(20, "main@busy", "work@busy", "spin@busy"),
	weight(7, "main@busy", "gone@busy"),
}}

var sampleSelection = store.Selection{From: noon, To: noon.Add(10 * time.Second)}

func TestFormats(t *testing.T) {
	text := func(write func(*bytes.Buffer) error) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	indented := func(v any) func(*testing.T) []byte {
		return text(func(b *bytes.Buffer) error {
			e := json.NewEncoder(b)
			e.SetIndent("", " ")
			return e.Encode(v)
		})
	}
	for _, tt := range []struct {
		name, file string
		write      func(t *testing.T) []byte
	}{
		{"a flame graph", "flamegraph.json", indented(NewFlameGraph(profile.CPU, sample, 100))},
		{"a flame graph with its small frames put together", "flamegraph_cut.json", indented(NewFlameGraph(profile.CPU, sample, 3))},
		{"a flame graph of nothing", "flamegraph_empty.json", indented(NewFlameGraph(profile.CPU, store.Weights{}, 3))},
		{"a diff", "diff.json", indented(NewDiff(profile.CPU, sample, base, 100))},
		{"a table", "top.json", indented(NewTop(profile.CPU, sample, 100))},
		{"a table cut short", "top_cut.json", indented(NewTop(profile.CPU, sample, 2))},
		{"folded text", "folded.txt", text(func(b *bytes.Buffer) error { return WriteFolded(b, sample.Stacks) })},
		{"a folded diff", "folded_diff.txt", text(func(b *bytes.Buffer) error { return WriteFoldedDiff(b, sample.Stacks, base.Stacks) })},
		{"a speedscope file", "speedscope.json", indented(NewSpeedscope(profile.CPU, sample))},
		{"a pprof file", "pprof.txt", func(t *testing.T) []byte { return pprofText(t) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			golden(t, tt.file, tt.write(t))
		})
	}
}

// pprofText reads a pprof file back and writes it as google/pprof prints it.
func pprofText(t *testing.T) []byte {
	var b bytes.Buffer
	if err := WritePprof(&b, profile.CPU, sample, sampleSelection); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(p.String())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite it with -update)\n got %s\nwant %s", path, got, want)
	}
}

// drawWeights makes stacks over few functions, so that paths meet.
func drawWeights(t *rapid.T, label string) []store.Weight {
	locations := make([]profile.Frame, 6)
	for i := range locations {
		locations[i] = frame(string(rune('a'+i)) + "@m")
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Weight {
		path := rapid.SliceOfN(rapid.SampledFrom(locations), 0, 8).Draw(t, "stack")
		return store.Weight{Stack: path, Value: rapid.Int64Range(0, 1000).Draw(t, "value")}
	}), 0, 40).Draw(t, label)
}

func TestNumbersOfAFlameGraphAddUpWhateverMaxNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, b := store.Weights{Stacks: drawWeights(t, "weights")}, store.Weights{Stacks: drawWeights(t, "base")}
		maxNodes := rapid.IntRange(1, 60).Draw(t, "max_nodes")
		g := NewDiff(profile.CPU, w, b, maxNodes)
		for side, list := range [][]store.Weight{w.Stacks, b.Stacks} {
			var want int64
			for _, weight := range list {
				want += weight.Value
			}
			value, self, total := g.Value, g.Self, g.Total
			if side == 1 {
				value, self, total = g.BaseValue, g.BaseSelf, *g.BaseTotal
			}
			checkColumns(t, g, value, self, want)
			if total != want {
				t.Fatalf("total is %d, want %d", total, want)
			}
		}
		var named, rest int
		var restValue int64
		for i, f := range g.Function {
			if f >= 0 {
				named++
				continue
			}
			rest++
			restValue += g.Value[i]
		}
		if named > maxNodes {
			t.Fatalf("%d named frames, at most %d were asked for", named, maxNodes)
		}
		if (rest > 0) != (g.Cut != nil) || g.Cut != nil && (g.Cut.Value != restValue || g.Cut.Nodes < rest) {
			t.Fatalf("cut is %+v and there are %d frames put together, of %d", g.Cut, rest, restValue)
		}
	})
}

// checkColumns checks that each frame is worth itself and its children, and all selfs the total.
func checkColumns(t *rapid.T, g FlameGraph, value, self []int64, want int64) {
	var selfs, roots int64
	var open []int // the path to the frame, by index
	below := make([]int64, len(value))
	for i, depth := range g.Depth {
		if int(depth) > len(open) {
			t.Fatalf("frame %d is at depth %d below one at depth %d", i, depth, len(open)-1)
		}
		open = open[:depth]
		if depth == 0 {
			roots += value[i]
		} else {
			below[open[depth-1]] += value[i]
		}
		open = append(open, i)
		selfs += self[i]
	}
	for i := range value {
		if value[i] != self[i]+below[i] {
			t.Fatalf("frame %d is worth %d, itself %d and its children %d", i, value[i], self[i], below[i])
		}
	}
	if selfs != want || roots != want {
		t.Fatalf("selfs add up to %d and outermost frames to %d, want %d", selfs, roots, want)
	}
}
