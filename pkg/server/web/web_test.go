// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"testing"
	"time"
)

// Whatever is asked for, what is granted lies within the bounds.
func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{
		`{"kind": "cpu", "targets": {"nodes": ["n"], "pids": [1]}, "duration": "10s", "hz": 99, "deadline": "60s"}`,
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": "-1s"}`,
		`{"duration": 1e400}`,
		`[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := readRequest(bytes.NewReader(body))
		if err != nil || r.Validate() != nil {
			return
		}
		if d := time.Duration(r.Duration); d <= 0 || d > 10*time.Minute || r.Hz < 0 || r.Hz > 997 || len(r.Targets.Nodes) == 0 {
			t.Errorf("granted %+v", r)
		}
	})
}
