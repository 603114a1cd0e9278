// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"diagon.dev/diagon/pkg/agent"
)

// checkProcesses says which of the chosen processes cannot be sampled, and why.
func checkProcesses(pids []int) error {
	for _, pid := range pids {
		if pid < 1 {
			return usagef("record: --pid: %d is no process", pid)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--pid %d: there is no such process here", pid)
		}
		if err != nil {
			return fmt.Errorf("--pid %d: %w", pid, err)
		}
		if group := field(string(status), "Tgid"); group != strconv.Itoa(pid) {
			return fmt.Errorf("--pid %d: is a thread of process %s; choose that", pid, group)
		}
	}
	return nil
}

// field is a line's value of /proc/PID/status.
func field(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// A usage is what a process has used and does now, as far as /proc tells.
type usage struct {
	cpu     time.Duration
	state   string // "S", or "" when it has gone
	threads int
}

// living is false of a zombie too, except where only its first thread has ended.
func (u usage) living() bool {
	return u.state != "" && u.state != "X" && (u.state != "Z" || u.threads > 1)
}

func usedBy(pids []int) map[int]usage {
	used := make(map[int]usage, len(pids))
	for _, pid := range pids {
		used[pid] = usageOf(pid)
	}
	return used
}

// usageOf reads fields 3, 14, 15 and 20 of /proc/PID/stat (proc(5)), which are counted here
// from behind the name, since that may hold spaces.
func usageOf(pid int) usage {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 18 {
		return usage{}
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every architecture that diagon runs on
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	threads, _ := strconv.Atoi(fields[17])
	return usage{cpu: time.Duration(user+system) * tick, state: fields[0], threads: threads}
}

// whyNone explains a recording without samples by what is known.
func whyNone(o recordOptions, w agent.Window, before map[int]usage, command *held) string {
	period := time.Second / time.Duration(o.hz)
	took := w.End.Sub(w.Start).Round(time.Millisecond)
	for _, loss := range w.Losses {
		if loss.Place == "ring" || loss.Place == "decode" || loss.Place == "queue" {
			return fmt.Sprintf("%d were lost at %s", loss.Count, loss.Place)
		}
	}
	if command != nil {
		return fmt.Sprintf("in %v %s used less CPU than the %v between two samples; raise --rate", took, command.name, period.Round(time.Millisecond))
	}
	if len(o.pids) == 0 {
		return fmt.Sprintf("every CPU was idle for %v; record longer", took)
	}
	var each []string
	for _, pid := range o.pids {
		each = append(each, fmt.Sprintf("process %d %s", pid, before[pid].since(usageOf(pid), took, period)))
	}
	return strings.Join(each, ", ")
}

// since says what a process did meanwhile.
func (before usage) since(now usage, took, period time.Duration) string {
	states := map[string]string{"S": "sleeps", "D": "waits for a device", "T": "is stopped", "t": "is held by a debugger", "Z": "has ended", "I": "is idle"}
	used := now.cpu - before.cpu
	switch {
	case now.state == "":
		return "has ended"
	case used > 0:
		return fmt.Sprintf("used %v of CPU in %v and was never met by a sample; one comes every %v, so raise --rate or -d", used, took, period.Round(time.Millisecond))
	case states[now.state] != "":
		return fmt.Sprintf("used no CPU in %v: it %s", took, states[now.state])
	}
	return fmt.Sprintf("used no CPU in %v", took)
}
