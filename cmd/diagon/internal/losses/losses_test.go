// SPDX-License-Identifier: Apache-2.0

package losses

import (
	"strconv"
	"testing"

	"diagon.dev/diagon/pkg/profile"
)

func TestText(t *testing.T) {
	ring, exited, exec := profile.Loss{Place: "ring", Count: 12}, profile.Loss{Place: "exited", Count: 3}, profile.Loss{Place: "exec", Count: 1}
	for _, tt := range []struct {
		name string
		list []profile.Loss
		want string
		lost bool
	}{
		{name: "nothing is said to be nothing", want: "nothing"},
		{name: "what is missing is lost", list: []profile.Loss{ring, {Place: "queue", Count: 1}}, want: "12 at ring, 1 at queue", lost: true},
		{name: "what has no names is not lost", list: []profile.Loss{exec, exited}, want: "nothing; without names: 1 at exec, 3 at exited"},
		{name: "both stand apart", list: []profile.Loss{exited, ring}, want: "12 at ring; without names: 3 at exited", lost: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Text(tt.list, func(n uint64) string { return strconv.FormatUint(n, 10) })
			if got != tt.want || Lost(tt.list) != tt.lost {
				t.Errorf("got %q, lost %v; want %q, %v", got, Lost(tt.list), tt.want, tt.lost)
			}
		})
	}
}
