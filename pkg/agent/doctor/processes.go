// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// hostPIDs asks whether this process counts processes as the whole host does.
func (h *host) hostPIDs(ctx context.Context) Finding {
	f := Finding{Area: AreaProcesses, Name: HostPIDs}
	if _, err := os.Stat(h.proc("self", "ns", "pid")); err != nil {
		f.Why = err.Error() + ": this /proc belongs to other processes"
		f.Do = "mount -t proc proc " + h.cfg.Proc
		return f
	}
	if number, err := os.Readlink(h.proc("self")); err == nil && number != strconv.Itoa(os.Getpid()) {
		f.Why = fmt.Sprintf("%s counts this process as %s, the kernel as %d: it belongs to another PID namespace, and samples may get the names of other processes", h.cfg.Proc, number, os.Getpid())
		f.Do = "mount -t proc proc " + h.cfg.Proc
		return f
	}
	if !h.initial("pid", initialPIDNamespace) {
		f.Why = "this process lives in a PID namespace of its own: processes outside of it are sampled, without names"
		f.Do = "share the host's (Kubernetes: hostPID: true; Docker: --pid=host)"
		return f
	}
	if _, err := os.Stat(h.proc("1")); err != nil {
		f.Why = err.Error() + ": /proc is mounted with hidepid and shows one's own processes only"
		f.Do = grant("CAP_SYS_PTRACE") + ", or mount -o remount,hidepid=0 /proc"
		return f
	}
	f.Works, f.Detail = true, "every process of the host has its own number here"
	return f
}

// userNamespace matters because the kernel asks for capabilities in the first one.
func (h *host) userNamespace(ctx context.Context) Finding {
	f := Finding{Area: AreaProcesses, Name: "user-namespace"}
	if h.initial("user", initialUserNamespace) {
		f.Works, f.Detail = true, "the host's"
		return f
	}
	f.Why = "this process lives in a user namespace: its capabilities do not count for the kernel"
	f.Do = "run as the host's root (Kubernetes: hostUsers: true; Docker: --userns=host)"
	return f
}

// cgroups says which hierarchy tells containers apart.
func (h *host) cgroups(ctx context.Context) Finding {
	f := Finding{Area: AreaProcesses, Name: "cgroups"}
	own, err := read(h.proc("self", "cgroup"))
	if err != nil {
		f.Why = err.Error() + ": samples carry no container"
		f.Do = "use a kernel built with CONFIG_CGROUPS"
		return f
	}
	f.Works = true
	switch v2, v1 := strings.Contains("\n"+own, "\n0::"), len(controllers(own)) > 0; {
	case v1 && v2:
		f.Detail = "version 1, with 2 beside it"
	case v2:
		f.Detail = "version 2"
	default:
		f.Detail = "version 1"
	}
	return f
}

// controllers maps each controller of version 1 to the group's path. A line of
// /proc/PID/cgroup reads "4:memory:/docker/0123"; version 2 has the one line "0::/path".
func controllers(cgroup string) map[string]string {
	paths := make(map[string]string)
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || parts[1] == "" || strings.HasPrefix(parts[1], "name=") {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			paths[name] = parts[2]
		}
	}
	return paths
}
