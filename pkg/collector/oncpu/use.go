// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"sync"

	"github.com/cilium/ebpf"

	"diagon.dev/diagon/pkg/collector"
)

// use adds up what the programs cost, over every Run.
type use struct {
	mu     sync.Mutex
	kernel *kernel // nil while Run does not run
	past   collector.KernelUse
}

// watch begins to count k; the function it returns ends that, while k is still open.
func (u *use) watch(k *kernel) (stop func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kernel = k
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.past = u.sum()
		u.past.MapBytes = 0
		u.kernel = nil
	}
}

func (u *use) read() collector.KernelUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sum()
}

// sum is past and present together. What the kernel does not tell counts nothing.
func (u *use) sum() collector.KernelUse {
	total := collector.KernelUse{Programs: make([]collector.ProgramUse, len(programNames))}
	for i, name := range programNames {
		total.Programs[i].Name = name
		if len(u.past.Programs) > 0 {
			total.Programs[i] = u.past.Programs[i]
		}
	}
	if u.kernel == nil {
		return total
	}

	for i, p := range []*ebpf.Program{u.kernel.Oncpu, u.kernel.Follow} {
		if stats, err := p.Stats(); err == nil {
			total.Programs[i].Runs += stats.RunCount
			total.Programs[i].RunTime += stats.Runtime
		}
	}
	for _, m := range []*ebpf.Map{u.kernel.Samples, u.kernel.Chosen, u.kernel.Scratch, u.kernel.Lost} {
		if info, err := m.Info(); err == nil {
			bytes, _ := info.Memlock()
			total.MapBytes += bytes
		}
	}
	return total
}

// programNames are the programs in the order in which sum reads them.
var programNames = [...]string{kernProgOncpu, kernProgFollow}
