// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"diagon.dev/diagon/pkg/profile"
)

var (
	alice = &profile.Subject{PID: 1, Comm: "alice"}
	bob   = &profile.Subject{PID: 2, Comm: "bob"}
	main_ = &profile.Location{Lines: []profile.Line{{Function: "main"}}}
	hot   = &profile.Location{Lines: []profile.Line{{Function: "hot"}}}
)

func sampleOf(s *profile.Subject, thread string, locations ...*profile.Location) profile.Sample {
	out := profile.Sample{Subject: s, Thread: thread, Values: profile.Values{profile.Samples: 1, profile.CPU: 10}}
	for i, l := range locations {
		out.Stack = append(out.Stack, profile.Frame{Address: uint64(i), Location: l})
	}
	return out
}

func lostNothing(t *testing.T) func(string, uint64) {
	return func(place string, n uint64) { t.Errorf("lost %d at %s", n, place) }
}

func TestAWindowAddsUpWhatIsTheSame(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []profile.Sample
		want int
	}{
		{"one stack of one thread twice", []profile.Sample{sampleOf(alice, "t", hot, main_), sampleOf(alice, "t", hot, main_)}, 1},
		{"two processes", []profile.Sample{sampleOf(alice, "t", hot), sampleOf(bob, "t", hot)}, 2},
		{"two thread names", []profile.Sample{sampleOf(alice, "t", hot), sampleOf(alice, "u", hot)}, 2},
		{"the same frames the other way round", []profile.Sample{sampleOf(alice, "t", hot, main_), sampleOf(alice, "t", main_, hot)}, 2},
		{"a longer stack", []profile.Sample{sampleOf(alice, "t", hot), sampleOf(alice, "t", hot, main_)}, 2},
		{"two addresses that nobody looked up", []profile.Sample{
			{Subject: alice, Stack: profile.Stack{{Address: 1}}}, {Subject: alice, Stack: profile.Stack{{Address: 2}}},
		}, 2},
		{"two requests of one device", []profile.Sample{{Subject: alice, Device: "gpu0", Request: "a"}, {Subject: alice, Device: "gpu0", Request: "b"}}, 2},
		{"one place at two addresses of two processes' mappings", []profile.Sample{
			{Subject: alice, Stack: profile.Stack{{Address: 1, Location: hot}}}, {Subject: alice, Stack: profile.Stack{{Address: 2, Location: hot}}},
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWindow(time.Time{}, lostNothing(t))
			for _, s := range tt.in {
				w.Put(s)
			}
			b, samples := w.take(time.Now())
			if len(b.Records) != tt.want {
				t.Errorf("%d records, want %d", len(b.Records), tt.want)
			}
			if int(samples) != len(tt.in) {
				t.Errorf("%d samples, want %d", samples, len(tt.in))
			}
		})
	}
}

func TestNothingGetsLostInAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWindow(time.Time{}, func(place string, n uint64) { t.Fatalf("lost %d at %s", n, place) })
		want := map[string]int64{}
		for range rapid.IntRange(0, 200).Draw(t, "samples") {
			who := rapid.SampledFrom([]*profile.Subject{alice, bob}).Draw(t, "who")
			stack := rapid.SliceOfN(rapid.SampledFrom([]*profile.Location{main_, hot, nil}), 0, 3).Draw(t, "stack")
			s := sampleOf(who, "t", stack...)
			want[who.Comm+" "+s.Stack.String()] += s.Values[profile.CPU]
			w.Put(s)
		}
		b, _ := w.take(time.Now())
		got := map[string]int64{}
		for _, r := range b.Records {
			got[r.Subject.Comm+" "+r.Stack.String()] += r.Values[profile.CPU]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestAFullWindowCountsWhatItCannotHold(t *testing.T) {
	lost := uint64(0)
	w := newWindow(time.Time{}, func(place string, n uint64) {
		if place != "window" {
			t.Errorf("lost at %s", place)
		}
		lost += n
	})
	for i := range maxRecords + 5 {
		w.Put(profile.Sample{Subject: alice, Stack: profile.Stack{{Address: uint64(i)}}, Values: profile.Values{profile.Samples: 1}})
	}
	w.Put(profile.Sample{Subject: alice, Stack: profile.Stack{{Address: 0}}, Values: profile.Values{profile.Samples: 1}})
	b, samples := w.take(time.Now())
	if lost != 5 || samples != maxRecords+1 || len(b.Records) != maxRecords {
		t.Errorf("lost %d, %d samples, %d records; want 5, %d, %d", lost, samples, len(b.Records), maxRecords+1, maxRecords)
	}
}

func TestAWindowSaysWhatOneSampleStandsFor(t *testing.T) {
	w := newWindow(time.Time{}, lostNothing(t))
	if b, _ := w.take(time.Now()); b.PeriodNS != 0 {
		t.Errorf("an empty window has a period of %d", b.PeriodNS)
	}
	w.Put(sampleOf(alice, "t", hot))
	w.Put(profile.Sample{Subject: alice, Values: profile.Values{profile.OffCPU: 1000}})
	if b, _ := w.take(time.Now()); b.PeriodNS != 10 {
		t.Errorf("period = %d, want 10", b.PeriodNS)
	}
}

func BenchmarkWindowPut(b *testing.B) {
	w := newWindow(time.Time{}, func(string, uint64) {})
	var locations []*profile.Location
	for range 30 {
		locations = append(locations, &profile.Location{})
	}
	s := sampleOf(alice, "t", locations...)
	for b.Loop() {
		w.Put(s)
	}
}
