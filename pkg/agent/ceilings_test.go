// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"
)

func TestTheNodeHasTheLastWord(t *testing.T) {
	c := Ceilings{Hz: 100, Duration: time.Minute, Kinds: []string{"cpu"}}
	if hz, said := c.rate(99); hz != 99 || said != "" {
		t.Errorf("a rate below the ceiling became %d, %q", hz, said)
	}
	if hz, said := c.rate(997); hz != 100 || said != "rate clamped from 997 to this node's ceiling of 100 Hz" {
		t.Errorf("a rate above the ceiling became %d, %q", hz, said)
	}
	if d, said := c.duration(time.Hour); d != time.Minute || said != "duration clamped from 1h0m0s to this node's ceiling of 1m0s" {
		t.Errorf("a duration above the ceiling became %v, %q", d, said)
	}
	if c.allows("xprof") {
		t.Error("a kind that is not listed is allowed")
	}
}
