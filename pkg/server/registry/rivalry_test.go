// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// TestSuccessorRemembersWhoTookTurns lets instances register one after the other, a minute apart.
func TestSuccessorRemembersWhoTookTurns(t *testing.T) {
	const old, fresh = "0193a1b2-old00001", "0193a1b2-new00002"
	for _, tt := range []struct {
		name      string
		instances []string
		want      string // said of the last
	}{
		{"a restart is no rivalry", []string{old, fresh}, ""},
		{"one that comes back is", []string{old, fresh, old},
			"two agents took turns as this node (…old00001, …new00002): give each its own --node; shown until 12:12 UTC"},
		{"a third that follows is not accused", []string{old, fresh, old, "third"},
			"two agents took turns as this node (…old00001, …new00002): give each its own --node; shown until 12:12 UTC"},
		{"the same stream again is no turn", []string{old, old, old}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			var r record
			for _, i := range tt.instances {
				r = successor(r, &diagonv1.DaemonRegistrationRequest{Node: "n", InstanceId: i}, "server", now)
				now = now.Add(time.Minute)
			}
			got := ""
			if !r.Rivalry.Seen.IsZero() {
				got = r.Rivalry.String()
			}
			if got != tt.want {
				t.Errorf("said: %s\nwant: %s", got, tt.want)
			}
		})
	}
}
