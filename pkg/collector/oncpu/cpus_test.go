// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []int // nil: an error
	}{
		{name: "one CPU", in: "0\n", want: []int{0}},
		{name: "a range", in: "0-3\n", want: []int{0, 1, 2, 3}},
		{name: "holes", in: "0-1,8,10-11\n", want: []int{0, 1, 8, 10, 11}},
		{name: "nothing", in: "\n"},
		{name: "a word", in: "all"},
		{name: "a range backwards", in: "3-1"},
		{name: "a range without an end", in: "3-"},
		{name: "more CPUs than there can be", in: "0-65535"},
		{name: "a negative number", in: "-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCPUs(tt.in)
			if (err != nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
				t.Errorf("parseCPUs(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
			}
		})
	}
}

func FuzzParseCPUs(f *testing.F) {
	f.Add("0-3,8,10-11\n")
	f.Fuzz(func(t *testing.T, list string) {
		cpus, err := parseCPUs(list)
		if err == nil && (len(cpus) == 0 || len(cpus) > 2*maxCPU+1) {
			t.Errorf("%d CPUs out of %q", len(cpus), list)
		}
	})
}
