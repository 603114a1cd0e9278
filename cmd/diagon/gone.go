// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goneEvery is how often the chosen processes are looked for.
const goneEvery = 100 * time.Millisecond

// untilGone waits until the processes and the children that they fork meanwhile have all
// ended, and is false when ctx ends first. Where the kernel does not list children
// (CONFIG_PROC_CHILDREN), and for one whose parent goes at once, it does not wait.
func untilGone(ctx context.Context, pids []int) bool {
	living, earlier := make(map[int]bool), make(map[int]bool)
	for _, pid := range pids {
		living[pid] = true
		for _, child := range childrenOf(pid) {
			earlier[child] = true // not recorded: it was forked before
		}
	}
	for _, pid := range pids {
		delete(earlier, pid)
	}
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		for pending := slices.Collect(maps.Keys(living)); len(pending) > 0; pending = pending[1:] {
			pid := pending[0]
			for _, child := range childrenOf(pid) {
				if !living[child] && !earlier[child] {
					living[child] = true
					pending = append(pending, child)
				}
			}
			if !usageOf(pid).living() {
				delete(living, pid)
			}
		}
		if len(living) == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// childrenOf lists what the threads of a process have forked: /proc/PID/task/TID/children (proc(5)).
func childrenOf(pid int) []int {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none: it has ended
	var children []int
	for _, task := range tasks {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for word := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// goneText says that a recording ended with its processes.
func goneText(pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("process %d has ended, and the recording with it", pids[0])
	}
	return fmt.Sprintf("all %d processes have ended, and the recording with them", len(pids))
}
