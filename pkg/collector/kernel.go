// SPDX-License-Identifier: Apache-2.0

package collector

import "time"

// KernelUse is what a collector's BPF programs cost in the kernel. A collector
// that has some answers Kernel() KernelUse, from any goroutine, whether or not
// it runs.
type KernelUse struct {
	Programs []ProgramUse
	MapBytes uint64 // memory of the maps as the kernel accounts it; 0 while the collector does not run
}

// ProgramUse counts the runs of one BPF program over the collector's life. The
// kernel counts only while somebody asked it to (kernel.bpf_stats_enabled or
// BPF_ENABLE_STATS); otherwise both numbers stand still.
type ProgramUse struct {
	Name    string
	Runs    uint64
	RunTime time.Duration
}
