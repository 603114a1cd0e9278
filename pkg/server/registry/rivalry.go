// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"time"
)

// rivalWindow is how long two agents of one name are remembered after they last took turns.
const rivalWindow = 10 * time.Minute

// A rivalry is two agents that took turns under one name. It names both: when it is told,
// a third instance may hold the record, which had no part in it.
type rivalry struct {
	Instances [2]string `json:"instances"` // the one that came back first
	Seen      time.Time `json:"seen"`      // when they last took turns
}

// until is when there is no more reason to speak of it.
func (v rivalry) until() time.Time { return v.Seen.Add(rivalWindow) }

func (v rivalry) String() string {
	return fmt.Sprintf("two agents took turns as this node (%s, %s): give each its own --node; shown until %s",
		short(v.Instances[0]), short(v.Instances[1]), v.until().UTC().Format("15:04 UTC"))
}

// short is as much of an instance's id as tells two of them apart in a line.
func short(instance string) string {
	const enough = 8
	if len(instance) <= enough {
		return instance
	}
	return "…" + instance[len(instance)-enough:] // ids made by the clock differ at their ends
}
