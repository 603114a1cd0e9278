// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestMemoryMark(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bytes   int64
		environ []string
		ok      bool
	}{
		{"the flag decides", 1 << 30, []string{"HOME=/"}, true},
		{"the variable that Go itself reads goes first", 1 << 30, []string{"GOMEMLIMIT=2GiB"}, false},
		{"an empty variable counts as not set", 1 << 30, []string{"GOMEMLIMIT="}, true},
		{"nothing means no mark", 0, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if limit, ok := memoryMark(tt.bytes, tt.environ); ok != tt.ok || limit != tt.bytes {
				t.Errorf("got %d, %v; want %d, %v", limit, ok, tt.bytes, tt.ok)
			}
		})
	}
}
