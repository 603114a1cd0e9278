// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"
)

// policy reads the settings that decide who may watch a kernel.
func (h *host) policy(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: "kernel-policy", Works: true}
	lockdown := h.lockdown()
	jit := h.sysctl("net.core.bpf_jit_enable")
	f.Detail = said(
		"perf_event_paranoid", h.sysctl("kernel.perf_event_paranoid"),
		"kptr_restrict", h.sysctl("kernel.kptr_restrict"),
		"unprivileged_bpf_disabled", h.sysctl("kernel.unprivileged_bpf_disabled"),
		"bpf_jit_enable", jit,
		"lockdown", lockdown,
		"seccomp", map[bool]string{true: "filter", false: "off"}[h.seccomp()],
	)
	switch {
	case lockdown == "confidentiality":
		f.Works = false
		f.Why = "lockdown is at confidentiality: BPF programs may not read kernel memory"
		f.Do = "boot with lockdown=integrity or without lockdown"
	case jit == "0":
		f.Works, f.Optional = false, true
		f.Why = "net.core.bpf_jit_enable is 0: BPF programs are interpreted, several times slower"
		f.Do = "sysctl -w net.core.bpf_jit_enable=1"
	}
	return f
}

// said lists the pairs that have a value.
func said(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, pairs[i]+"="+pairs[i+1])
		}
	}
	return strings.Join(list, " ")
}

// lockdown is the mode in force, "" when the kernel does not say: "none [integrity] confidentiality".
func (h *host) lockdown() string {
	modes, err := read(h.sys("kernel/security/lockdown"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(modes, "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}

// seccomp reports whether system calls of this process pass a filter.
func (h *host) seccomp() bool {
	status, err := read(h.proc("self", "status"))
	return err == nil && statusField(status, "Seccomp") == "2" // SECCOMP_MODE_FILTER
}

// Inodes of the namespaces that the kernel starts with (include/linux/proc_ns.h). They
// never change.
const (
	initialUserNamespace = 0xEFFFFFFD
	initialPIDNamespace  = 0xEFFFFFFC
)

// initial reports whether this process lives in the namespace of that kind that the
// kernel started with.
func (h *host) initial(kind string, inode uint64) bool {
	var st unix.Stat_t
	return unix.Stat(h.proc("self", "ns", kind), &st) == nil && st.Ino == inode
}
