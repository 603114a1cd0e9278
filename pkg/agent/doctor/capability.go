// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// capabilitySet is a set of Linux capabilities, a bit each, as /proc/PID/status writes it.
type capabilitySet uint64

func (s capabilitySet) has(c uint) bool { return s>>c&1 == 1 }

// capabilities that diagon uses, and what is lost without each. The losses were measured
// under setpriv, each capability taken away alone.
var capabilities = []struct {
	number   uint
	name     string
	optional bool
	within   []uint // capabilities that include this one
	cost     string
}{
	{number: unix.CAP_BPF, name: "CAP_BPF", within: []uint{unix.CAP_SYS_ADMIN},
		cost: "no BPF map can be made: no profile at all"},
	{number: unix.CAP_PERFMON, name: "CAP_PERFMON", within: []uint{unix.CAP_SYS_ADMIN},
		cost: "no program can be loaded and no whole CPU sampled: no profile at all"},
	{number: unix.CAP_SYS_PTRACE, name: "CAP_SYS_PTRACE",
		cost: "the files of other processes cannot be read: their frames stay without names"},
	{number: unix.CAP_DAC_READ_SEARCH, name: "CAP_DAC_READ_SEARCH", within: []uint{unix.CAP_DAC_OVERRIDE},
		cost: "files of other users cannot be read: fewer names, no rank of their jobs"},
	{number: unix.CAP_SYSLOG, name: "CAP_SYSLOG",
		cost: "the kernel hides its addresses: kernel frames stay without names"},
	{number: unix.CAP_CHECKPOINT_RESTORE, name: "CAP_CHECKPOINT_RESTORE", within: []uint{unix.CAP_SYS_ADMIN},
		cost: "deleted files that still run cannot be opened: their frames stay without names"},
	{number: unix.CAP_SYS_ADMIN, name: "CAP_SYS_ADMIN", optional: true,
		cost: "the kernel's BPF statistics cannot be turned on: the agent does not know what it costs there"},
}

// heldCapabilities reads the effective set of this process.
func (h *host) heldCapabilities() capabilitySet {
	status, err := read(h.proc("self", "status"))
	if err != nil {
		return 0
	}
	set, _ := strconv.ParseUint(statusField(status, "CapEff"), 16, 64)
	return capabilitySet(set)
}

// statusField returns a line's value of /proc/PID/status, "" when there is none.
func statusField(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// can reports whether the process may do what a capability stands for.
func (s capabilitySet) can(number uint) bool {
	if s.has(number) {
		return true
	}
	for _, c := range capabilities {
		if c.number != number {
			continue
		}
		for _, other := range c.within {
			if s.has(other) {
				return true
			}
		}
	}
	return false
}

// missing names those of the numbers that the process does not hold, as "CAP_A and CAP_B".
func (s capabilitySet) missing(numbers ...uint) string {
	var names []string
	for _, c := range capabilities {
		for _, number := range numbers {
			if c.number == number && !s.can(number) {
				names = append(names, c.name)
			}
		}
	}
	return strings.Join(names, " and ")
}

// capabilities says of each whether this process holds it.
func (h *host) capabilities() []Finding {
	var findings []Finding
	for _, c := range capabilities {
		f := Finding{Area: AreaCapabilities, Name: c.name, Optional: c.optional, Works: h.held.can(c.number)}
		switch {
		case !f.Works:
			f.Why, f.Do = c.cost, grant(c.name)
		case !h.held.has(c.number):
			f.Detail = "by a wider one"
		}
		findings = append(findings, f)
	}
	return findings
}

// grant says how a process comes by a capability.
func grant(names string) string { return "run as root, or grant " + names }
