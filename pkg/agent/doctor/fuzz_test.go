// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFiles puts the same bytes wherever something is read: every finding still comes, and one
// that does not work says why.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("CapEff:\t000001ffffffffff\nSeccomp:\t2\n"))
	f.Add([]byte("4:memory:/a/../../..\n0::/kubepods\n:::\n"))
	f.Add([]byte("7 (a) b) S 1 7 7 0 -1 4194560 0"))
	f.Add([]byte("none [integrity confidentiality"))
	f.Add([]byte("ffffffff81000000 T _stext\n"))
	root := f.TempDir()
	cfg := Config{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys"), Data: root}
	files := []string{
		"proc/self/status", "proc/self/cgroup", "proc/7/stat", "proc/7/maps", "proc/kallsyms", "proc/pressure/cpu",
		"proc/sys/kernel/kptr_restrict", "proc/sys/net/core/bpf_jit_enable", "sys/kernel/security/lockdown",
		"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(root, file), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		h := look(cfg)
		findings := append(h.capabilities(),
			h.policy(t.Context()), h.kernelSymbols(t.Context()), h.processFiles(t.Context()), h.hostPIDs(t.Context()),
			h.cgroups(t.Context()), h.pressure(t.Context()), h.memoryLimit(t.Context()))
		for _, f := range findings {
			if !f.Works && f.Why == "" {
				t.Errorf("%s does not work and does not say why", f.Name)
			}
		}
	})
}
