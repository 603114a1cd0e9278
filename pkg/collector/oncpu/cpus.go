// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"fmt"
	"strconv"
	"strings"
)

// maxCPU bounds what a list may ask for; Linux supports 8,192 CPUs at most.
const maxCPU = 1 << 13

// parseCPUs reads the kernel's list format: "0-3,8,10-11".
func parseCPUs(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("cpu list %q: %w", part, err)
		}
		to, err := strconv.ParseUint(last, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("cpu list %q: %w", part, err)
		}
		if to < from || to >= maxCPU || len(cpus) > maxCPU {
			return nil, fmt.Errorf("cpu list %q: no such range", part)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, nil
}
