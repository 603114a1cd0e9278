// SPDX-License-Identifier: Apache-2.0

// Package doctor answers one question: what can this host do for diagon, and what
// stands in the way of the rest?
//
// Every probe does the thing itself, loads a program or opens a file, and lets go of
// it again. No version number is read: distributions backport, and containers forbid.
package doctor

import (
	"context"
)

// A Finding is one capability of the host.
type Finding struct {
	Area     string `json:"area"`             // what it is for; one of the Area constants
	Name     string `json:"name"`             // stable, fit for a label: "kernel-symbols"
	Works    bool   `json:"works"`            //
	Optional bool   `json:"optional"`         // little is lost without it, or nothing yet
	Detail   string `json:"detail,omitempty"` // what was found: "on 2 CPUs"
	Why      string `json:"why,omitempty"`    // why it does not work, and what that costs
	Do       string `json:"do,omitempty"`     // what would change that; empty when nothing is to be done
}

// What findings are for, in the order in which Examine returns them.
const (
	AreaSampling     = "sampling"
	AreaNames        = "names"
	AreaProcesses    = "processes"
	AreaHost         = "host"
	AreaLater        = "later" // nothing uses it yet
	AreaCapabilities = "capabilities"
)

// Names of findings that others ask for.
const (
	OnCPU         = "oncpu"          // the CPU profile works
	HostPIDs      = "host-pids"      // every process of the host can be seen
	KernelSymbols = "kernel-symbols" // kernel frames get names
)

// Config says where to look.
type Config struct {
	Proc string // where procfs is mounted: "/proc"
	Sys  string // where sysfs is mounted: "/sys"
	Data string // the folder that the agent keeps its spool in; it need not exist yet
}

// DefaultConfig looks where Linux has things.
func DefaultConfig() Config {
	return Config{Proc: "/proc", Sys: "/sys", Data: "/var/lib/diagon"}
}

// Examine looks at everything, in well under a second, and leaves nothing behind. When
// ctx is done, what is left is reported as not looked at.
func Examine(ctx context.Context, cfg Config) []Finding {
	h := look(cfg)
	var findings []Finding
	for _, probe := range []func(context.Context) Finding{
		h.onCPU, h.follow, h.perfEvents, h.ringBuffer, h.kernelTypes, h.policy, h.statistics,
		h.kernelSymbols, h.processFiles, h.deletedFiles, h.debugFiles,
		h.hostPIDs, h.userNamespace, h.cgroups,
		h.pressure, h.memoryLimit, h.disk,
		h.tracefs, h.helpers,
	} {
		findings = append(findings, probe(ctx))
	}
	return append(findings, h.capabilities()...)
}

// Find returns the finding of that name.
func Find(findings []Finding, name string) (Finding, bool) {
	for _, f := range findings {
		if f.Name == name {
			return f, true
		}
	}
	return Finding{}, false
}

// Reason is why and what to do in one line, "" when the thing works.
func (f Finding) Reason() string {
	switch {
	case f.Works:
		return ""
	case f.Do == "":
		return f.Why
	}
	return f.Why + "; " + f.Do
}
