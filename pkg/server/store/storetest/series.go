// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

func (s suite) labelNames(t *testing.T) {
	full := record("train", 1, "main")
	full.Subject = &profile.Subject{PID: 9, Comm: "train", ContainerID: "c0", Namespace: "ml", Pod: "p", Container: "c",
		Workload: "w", WorkloadKind: "Job", Rank: "0"}
	full.Thread, full.Device, full.Request = "t", "gpu0", "NV"
	st := s.fresh(t, batch("a", 1, noon, full), batch("b", 1, noon, record("sh", 1, "main")), batch("c", 1, noon))
	for _, tt := range []struct{ matcher, want string }{
		{"node=~.*", "[comm container container_id device ioctl namespace node pid pod rank thread workload workload_kind]"},
		{"node=b", "[comm node pid]"},
		{"comm=nobody", "[]"},
	} {
		got, err := st.LabelNames(t.Context(), selecting(t, always, tt.matcher))
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("names of %s = %v, %v, want %s", tt.matcher, got, err, tt.want)
		}
	}
}

func (s suite) labelValues(t *testing.T) {
	reading := batch("c", 1, noon)
	reading.Readings = []profile.Reading{
		{Time: noon, Metric: "host_load", Value: 1},
		{Time: noon, Metric: "host_memory_used_bytes", Value: 1},
	}
	st := s.fresh(t,
		batch("b", 1, noon, record("sh", 1, "main"), record("train", 1, "main")),
		batch("a", 1, noon.Add(-2*time.Hour), record("bash", 1, "main"), record("sh", 1, "main")),
		reading,
	)
	near := store.Selection{From: noon, To: noon.Add(time.Hour)}
	for _, tt := range []struct {
		name  string
		label string
		sel   store.Selection
		limit int
		want  string
	}{
		{"sorted, each once", "comm", always, 10, "[bash sh train] false"},
		{"cut", "comm", always, 2, "[bash sh] true"},
		{"as many as the limit is no cut", "comm", always, 3, "[bash sh train] false"},
		{"within the time", "comm", near, 10, "[sh train] false"},
		{"of a node", "comm", selecting(t, always, "node=a"), 10, "[bash sh] false"},
		{"the pid is text", "pid", always, 10, "[7] false"},
		{"nodes, also those that only read", "node", always, 10, "[a b c] false"},
		{"nodes that have a comm", "node", selecting(t, always, "comm=bash"), 10, "[a] false"},
		{"a label that nobody has", "rank", always, 10, "[] false"},
		{"a label that there is not", "nonesuch", always, 10, "[] false"},
		{"metrics", "__name__", always, 10, "[host_load host_memory_used_bytes] false"},
		{"metrics of another node", "__name__", selecting(t, always, "node=a"), 10, "[] false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values, cut, err := st.LabelValues(t.Context(), tt.label, tt.sel, tt.limit)
			if got := fmt.Sprint(values, cut); err != nil || got != tt.want {
				t.Errorf("values = %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func (s suite) readings(t *testing.T) {
	at := func(seconds int, mode string, value float64) profile.Reading {
		return profile.Reading{Time: noon.Add(time.Duration(seconds) * time.Second), Metric: "cpu_ratio",
			Labels: profile.Labels{{Name: "mode", Value: mode}, {Name: "zone", Value: "z"}}, Value: value}
	}
	first := batch("a", 1, noon)
	first.Readings = []profile.Reading{at(0, "user", 1), at(5, "user", 2), at(9, "user", 6), at(5, "system", 10)}
	second := batch("a", 2, noon.Add(10*time.Second))
	second.Readings = []profile.Reading{at(10, "user", 4), at(31, "user", 8)}
	earlier := batch("b", 1, noon.Add(-time.Hour))
	earlier.Readings = []profile.Reading{at(-3600, "user", 7), {Time: noon.Add(-time.Hour), Metric: "other", Value: 1}}
	st := s.fresh(t, first, second, earlier)
	for _, tt := range []struct {
		name string
		sel  store.Selection
		step time.Duration
		want string
	}{
		{"ten seconds", selecting(t, always, "node=a"), 10 * time.Second, lines(
			"cpu_ratio{mode=user,node=a,zone=z} 12:00:00=3 12:00:10=4 12:00:30=8",
			"cpu_ratio{mode=system,node=a,zone=z} 12:00:00=10")},
		{"an hour", selecting(t, always, "mode=user"), time.Hour, lines(
			"cpu_ratio{mode=user,node=a,zone=z} 12:00:00=4.2",
			"cpu_ratio{mode=user,node=b,zone=z} 11:00:00=7")},
		{"the time is the reading's, not its batch's", store.Selection{From: noon.Add(20 * time.Second), To: noon.Add(time.Minute)}, time.Second,
			"cpu_ratio{mode=user,node=a,zone=z} 12:00:31=8"},
		{"a label that is missing is empty", selecting(t, always, "comm=", "mode=system"), time.Minute,
			"cpu_ratio{mode=system,node=a,zone=z} 12:00:00=10"},
		{"nothing matches", selecting(t, always, "mode=idle"), time.Minute, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := st.Readings(t.Context(), "cpu_ratio", tt.sel, tt.step)
			if err != nil || written(got) != tt.want {
				t.Errorf("readings (%v)\n got %s\nwant %s", err, written(got), tt.want)
			}
		})
	}
}

func (s suite) rates(t *testing.T) {
	// A window of ten seconds, each with 20 units of CPU: 2 a second.
	st := s.fresh(t,
		batch("a", 1, noon, record("x", 15, "main"), record("y", 5, "main")),
		batch("a", 2, noon.Add(10*time.Second), record("x", 40, "main")),
		batch("b", 1, noon.Add(5*time.Second), record("x", 10, "main")),
		batch("a", 3, noon.Add(-time.Hour), record("x", 30, "main")),
	)
	near := store.Selection{From: noon, To: noon.Add(time.Hour)}
	for _, tt := range []struct {
		name string
		sel  store.Selection
		step time.Duration
		want string
	}{
		{"a step as long as the window", near, 10 * time.Second, lines(
			"cpu{node=a} 12:00:00=2 12:00:10=4",
			"cpu{node=b} 12:00:00=1 12:00:10=1")},
		{"steps shorter than the window leave no gaps", selecting(t, near, "node=b"), 4 * time.Second,
			"cpu{node=b} 12:00:04=1 12:00:08=1 12:00:12=1"},
		{"a longer step is the mean", selecting(t, near, "node=a"), time.Minute, "cpu{node=a} 12:00:00=3"},
		{"a subject that was idle is 0, not missing", selecting(t, near, "node=a", "comm=y"), 10 * time.Second,
			"cpu{node=a} 12:00:00=0.5 12:00:10=0"},
		{"over hours", selecting(t, always, "node=a"), time.Hour, "cpu{node=a} 11:00:00=3 12:00:00=3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := st.Rates(t.Context(), profile.CPU, tt.sel, tt.step)
			if err != nil || written(got) != tt.want {
				t.Errorf("rates (%v)\n got %s\nwant %s", err, written(got), tt.want)
			}
		})
	}
}
