// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ceilings are the node's last word on what a server may ask of it.
type Ceilings struct {
	Hz       int           // samples a second on each CPU, of the always-on profile and of captures
	Duration time.Duration // of a capture
	Kinds    []string      // of captures; none: captures are off
}

// kindCPU is the capture that this agent knows: CPU stacks of the node or of some processes.
const kindCPU = "cpu"

// DefaultCeilings let a server ask for what a person would.
func DefaultCeilings() Ceilings {
	return Ceilings{Hz: 997, Duration: 10 * time.Minute, Kinds: []string{kindCPU}}
}

// Validate names the field that is out of bounds.
func (c Ceilings) Validate() error {
	if c.Hz < 1 || c.Hz > 999 {
		return fmt.Errorf("max-rate: %d is not between 1 and 999", c.Hz)
	}
	if c.Duration < time.Second {
		return fmt.Errorf("max-capture-duration: %v is less than 1s", c.Duration)
	}
	for _, k := range c.Kinds {
		if k != kindCPU {
			return fmt.Errorf("capture-kinds: %q is none of: %s", k, kindCPU)
		}
	}
	return nil
}

func (c Ceilings) allows(kind string) bool { return slices.Contains(c.Kinds, kind) }

// rate clamps what was asked for; said tells the asker, "" when nothing was clamped.
func (c Ceilings) rate(asked int) (hz int, said string) {
	if asked > c.Hz {
		return c.Hz, fmt.Sprintf("rate clamped from %d to this node's ceiling of %d Hz", asked, c.Hz)
	}
	return asked, ""
}

func (c Ceilings) duration(asked time.Duration) (d time.Duration, said string) {
	if asked > c.Duration {
		return c.Duration, fmt.Sprintf("duration clamped from %v to this node's ceiling of %v", asked, c.Duration)
	}
	return asked, ""
}

// sentence joins what is not empty.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
