// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

func (s suite) matchers(t *testing.T) {
	rank := func(node, comm, rank string, value int64) profile.Record {
		r := record(comm, value, node+"-"+comm+rank)
		r.Subject = &profile.Subject{PID: 40 + int(value), Comm: comm, Rank: rank, Workload: "llama"}
		r.Device, r.Request, r.Thread = "gpu0", "NV_ESC", "worker"
		return r
	}
	st := s.fresh(t,
		batch("a", 1, noon, rank("a", "train", "1", 1), rank("a", "train", "12", 2)),
		batch("b", 1, noon, rank("b", "serve", "2", 4), record("sh", 8, "b-sh")),
		batch("b", 2, noon.Add(-3*time.Hour), rank("b", "serve", "2", 16)),
	)
	all := []string{"a-train1 1", "a-train12 2", "b-serve2 20", "b-sh 8"}
	for _, tt := range []struct {
		name     string
		matchers []string
		want     []string
	}{
		{"none", nil, all},
		{"equal", []string{"comm=train"}, all[:2]},
		{"equal to what nobody has", []string{"comm=nobody"}, nil},
		{"not equal", []string{"comm!=train"}, all[2:]},
		{"regular expression, anchored at both ends", []string{"rank=~1"}, all[:1]},
		{"regular expression", []string{"rank=~1.*"}, all[:2]},
		{"negated regular expression", []string{"rank!~1.*"}, all[2:]},
		{"alternatives", []string{"comm=~train|sh"}, []string{all[0], all[1], all[3]}},
		{"a missing label is empty", []string{"rank="}, all[3:]},
		{"a label that is present", []string{"rank!="}, all[:3]},
		{"a regular expression that matches the empty text", []string{"rank=~(2)?"}, all[2:]},
		{"a label that no sample has equals only the empty text", []string{"nonesuch="}, all},
		{"a label that no sample has", []string{"nonesuch=x"}, nil},
		{"the node", []string{"node=b"}, all[2:]},
		{"the node by regular expression", []string{"node=~a|c"}, all[:2]},
		{"not the node", []string{"node!=a"}, all[2:]},
		{"a node that is not there", []string{"node=c"}, nil},
		{"several at once", []string{"node=a", "comm=train", "rank!=1"}, all[1:2]},
		{"several on one label", []string{"rank=~1.*", "rank!=12"}, all[:1]},
		{"the pid as text", []string{"pid=41"}, all[:1]},
		{"the pid by regular expression", []string{"pid=~4[12]"}, all[:2]},
		{"thread, device and driver request", []string{"thread=worker", "device=gpu0", "ioctl=NV_ESC", "workload=llama"}, all[:3]},
		{"text that would end a string of SQL", []string{"comm=' OR 1=1 --"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantStacks(t, st, selecting(t, always, tt.matchers...), lines(tt.want...))
		})
	}
}

func (s suite) addUp(t *testing.T) {
	other := record("x", 20, "leaf", "main")
	other.Thread = "worker"
	st := s.fresh(t,
		batch("a", 1, noon, record("x", 1, "leaf", "main"), other),
		batch("b", 1, noon, record("y", 300, "leaf", "main"), record("y", 4000, "main")),
		batch("a", 2, noon.Add(-2*time.Hour), record("x", 50000, "leaf", "main")),
	)
	wantStacks(t, st, always, lines("main;leaf 50321", "main 4000"))
}

func (s suite) types(t *testing.T) {
	r := record("x", 0, "main")
	for i := range r.Values {
		r.Values[i] = int64(i + 1)
	}
	only := record("y", 3, "other")
	st := s.fresh(t, batch("a", 1, noon, r), batch("b", 1, noon, only))
	for typ := range profile.Type(profile.NumTypes) {
		sel := selecting(t, always, "comm=x")
		if got, want := folded(ask(t, st, typ, sel)), fmt.Sprintf("main %d", int(typ)+1); got != want {
			t.Errorf("%v: got %q, want %q", typ, got, want)
		}
	}
	for _, tt := range []struct {
		matchers []string
		want     string
	}{
		{nil, "[samples cpu offcpu ioctl ioctl_time launch starved device_busy device_energy device_op]"},
		{[]string{"node=b"}, "[cpu]"},
		{[]string{"comm=nobody"}, "[]"},
	} {
		got, err := st.Types(t.Context(), selecting(t, always, tt.matchers...))
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("types of %v = %v, %v, want %s", tt.matchers, got, err, tt.want)
		}
	}
}

func (s suite) frames(t *testing.T) {
	mapping := &profile.Mapping{Path: "/opt/lib.so.1", BuildID: "00ff"}
	locations := []*profile.Location{
		{Realm: profile.RealmUser, Mapping: mapping, Offset: 0xfffffffffffffff0, Lines: []profile.Line{
			{Function: "inner<T>(int, 'x')", File: "/src/inner.h", Number: 12},
			{Function: "middle"},
			{Function: "outer", File: "outer.cc", Number: 3},
		}},
		{Realm: profile.RealmUser, Mapping: mapping, Offset: 0x10}, // unresolved
		{Realm: profile.RealmUser, Offset: 0x7fff12345678},         // in no mapping
		{Realm: profile.RealmUser, Mapping: &profile.Mapping{}},    // in one without a name
		{Realm: profile.RealmKernel, Mapping: &profile.Mapping{Path: "[kernel]"}, Lines: []profile.Line{{Function: "schedule"}}},
		{Realm: profile.RealmSynthetic, Lines: []profile.Line{{Function: "[accelerators]"}}},
		{Realm: profile.RealmUser, Mapping: mapping, Offset: 0x10, Lines: []profile.Line{{Function: ""}}},
	}
	var path profile.Stack
	for i, l := range locations {
		path = append(path, profile.Frame{Realm: l.Realm, Address: uint64(i), Location: l})
	}
	bare := profile.Stack{{Realm: profile.RealmKernel, Address: 0xffffffff81000000}}
	same := stack("main")
	st := s.fresh(t, batch("a", 1, noon,
		profile.Record{Stack: path, Values: profile.Values{profile.CPU: 4}},
		profile.Record{Stack: bare, Values: profile.Values{profile.CPU: 3}},
		profile.Record{Stack: append(stack("leaf"), same...), Values: profile.Values{profile.CPU: 2}},
		profile.Record{Stack: stack("main"), Values: profile.Values{profile.CPU: 1}},
	))
	got := ask(t, st, profile.CPU, always)
	if len(got.Stacks) != 4 {
		t.Fatalf("%d stacks, want 4", len(got.Stacks))
	}
	byValue := make(map[int64]profile.Stack)
	for _, w := range got.Stacks {
		byValue[w.Value] = w.Stack
	}
	if len(byValue[4]) != len(locations) {
		t.Fatalf("%d frames, want %d", len(byValue[4]), len(locations))
	}
	for i, want := range locations {
		f := byValue[4][i]
		if !reflect.DeepEqual(f.Location, want) || f.Realm != want.Realm {
			t.Errorf("frame %d\n got %+v (realm %v)\nwant %+v", i, f.Location, f.Realm, want)
		}
	}
	want := &profile.Location{Realm: profile.RealmKernel, Offset: 0xffffffff81000000}
	if len(byValue[3]) != 1 || !reflect.DeepEqual(byValue[3][0].Location, want) {
		t.Errorf("a frame that nobody looked up came back as %+v", byValue[3])
	}
	if byValue[2][1].Location != byValue[1][0].Location {
		t.Error("equal places came back as two locations")
	}
	if byValue[4][0].Location.Mapping != byValue[4][1].Location.Mapping {
		t.Error("one mapping came back as two")
	}
}

func (s suite) oddText(t *testing.T) {
	r := record("a\x00b\xff'\"\\", 5, "f\xfe\x00g")
	r.Subject.Pod = "pod\nwith 日本"
	b := batch("node\xff", 1, noon, r)
	b.Readings = []profile.Reading{{Time: noon, Metric: "m", Labels: profile.Labels{{Name: "l", Value: "v\xff\x00"}}, Value: 1}}
	b.Losses = []profile.Loss{{Place: "p\xff", Count: 1}}
	st := s.fresh(t, b)
	mustAppend(t, st, b)
	if w := ask(t, st, profile.CPU, selecting(t, always, "pod=pod\nwith 日本")); len(w.Stacks) != 1 || w.Stacks[0].Value != 5 {
		t.Errorf("stacks = %v", w.Stacks)
	}
}

func (s suite) losses(t *testing.T) {
	lossy := func(node string, sequence uint64, start time.Time, losses ...profile.Loss) store.Batch {
		b := batch(node, sequence, start, record("x", 1, "main"))
		b.Losses = losses
		return b
	}
	st := s.fresh(t,
		lossy("b", 1, noon, profile.Loss{Place: "ring", Count: 1}, profile.Loss{Place: "exited", Count: 5}),
		lossy("a", 1, noon, profile.Loss{Place: "ring", Count: 3}),
		lossy("a", 2, noon.Add(-2*time.Hour), profile.Loss{Place: "ring", Count: 40}),
	)
	for _, tt := range []struct {
		name string
		sel  store.Selection
		want string
	}{
		{"all", always, "[{a {ring 43}} {b {exited 5}} {b {ring 1}}]"},
		{"of a node", selecting(t, always, "node=b"), "[{b {exited 5}} {b {ring 1}}]"},
		{"of a time", store.Selection{From: noon, To: noon.Add(time.Hour)}, "[{a {ring 3}} {b {exited 5}} {b {ring 1}}]"},
		{"other labels leave them in, for they may be of that subject", selecting(t, always, "comm=nobody", "node=a"), "[{a {ring 43}}]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(ask(t, st, profile.CPU, tt.sel).Losses); got != tt.want {
				t.Errorf("losses = %s, want %s", got, tt.want)
			}
		})
	}
}

func (s suite) period(t *testing.T) {
	other := batch("b", 1, noon, record("x", 1, "main"))
	other.PeriodNS = 10_000_000
	unknown := batch("c", 1, noon, record("x", 1, "main"))
	unknown.PeriodNS = 0
	st := s.fresh(t, batch("a", 1, noon, record("x", 1, "main")), other, unknown)
	for _, tt := range []struct {
		matcher string
		want    int64
	}{{"node=a", 52631578}, {"node=b", 10_000_000}, {"node=~a|b", 0}, {"node=~a|c", 52631578}, {"node=c", 0}} {
		if got := ask(t, st, profile.CPU, selecting(t, always, tt.matcher)).Period; got != tt.want {
			t.Errorf("period of %s = %d, want %d", tt.matcher, got, tt.want)
		}
	}
}
