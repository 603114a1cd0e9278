// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pressure reads what the kernel says about waiting for CPU, memory and disk.
func (h *host) pressure(ctx context.Context) Finding {
	f := Finding{Area: AreaHost, Name: "pressure", Optional: true}
	if _, err := read(h.proc("pressure", "cpu")); err != nil { // EOPNOTSUPP when compiled in and turned off
		f.Why = err.Error() + ": no pressure readings"
		f.Do = "boot with psi=1"
		return f
	}
	f.Works, f.Detail = true, "waiting for CPU, memory and disk is told"
	return f
}

// needMemory is the bound that the agent keeps itself, BPF maps included.
const needMemory = 256 << 20

// memoryLimit looks for the lowest limit on this process's memory.
func (h *host) memoryLimit(ctx context.Context) Finding {
	f := Finding{Area: AreaHost, Name: "memory-limit"}
	limit, where := h.lowestLimit()
	switch {
	case where == "":
		f.Works, f.Detail = true, "none"
	case limit >= needMemory:
		f.Works, f.Detail = true, size(limit)
	default:
		f.Why = fmt.Sprintf("%s is %s, and the agent may use %s: the kernel would end it", where, size(limit), size(needMemory))
		f.Do = "raise the limit (Kubernetes: resources.limits.memory: 256Mi)"
	}
	return f
}

// lowestLimit goes from this process's group up to the root. Inside a container the
// group's path may be one of the host's, of which only the root is mounted.
func (h *host) lowestLimit() (limit uint64, where string) {
	own, err := read(h.proc("self", "cgroup"))
	if err != nil {
		return 0, ""
	}
	top, file, group := h.sys("fs/cgroup"), "memory.max", ""
	if v1, ok := controllers(own)["memory"]; ok {
		top, file, group = filepath.Join(top, "memory"), "memory.limit_in_bytes", v1
	} else if _, v2, ok := strings.Cut("\n"+own, "\n0::"); ok {
		group, _, _ = strings.Cut(v2, "\n")
	}
	for dir := filepath.Join("/", group); ; dir = filepath.Dir(dir) {
		path := filepath.Join(top, dir, file)
		// "max", and the largest number of version 1, mean no limit.
		if text, err := read(path); err == nil {
			n, err := strconv.ParseUint(text, 10, 64)
			if err == nil && n < 1<<60 && (where == "" || n < limit) {
				limit, where = n, path
			}
		}
		if dir == "/" {
			return limit, where
		}
	}
}

// needDisk is what the spool may take before the oldest of it goes.
const needDisk = 256 << 20

// disk looks at the place for the spool, without making it.
func (h *host) disk(ctx context.Context) Finding {
	f := Finding{Area: AreaHost, Name: "disk"}
	dir, err := filepath.Abs(h.cfg.Data)
	for err == nil {
		if _, missing := os.Stat(dir); missing == nil || dir == "/" {
			break
		}
		dir = filepath.Dir(dir)
	}
	var st unix.Statfs_t
	if err == nil {
		err = unix.Statfs(dir, &st)
	}
	if err == nil {
		err = unix.Access(dir, unix.W_OK)
	}
	if err != nil {
		f.Why = fmt.Sprintf("%s: %v: while the server is away, profiles are lost", dir, err)
		f.Do = "give the agent a folder it may write, with --data"
		return f
	}
	free := st.Bavail * uint64(st.Bsize)
	f.Detail = fmt.Sprintf("%s free at %s", size(free), dir)
	f.Works = free >= needDisk
	if !f.Works {
		f.Why = fmt.Sprintf("%s free at %s: the spool may take %s", size(free), dir, size(needDisk))
		f.Do = "make room, or choose another folder with --data"
	}
	return f
}

// tracefs is where tracepoints are named; the driver-call collector will need it.
func (h *host) tracefs(ctx context.Context) Finding {
	f := Finding{Area: AreaLater, Name: "tracefs", Optional: true}
	_, err := os.ReadDir(h.sys("kernel/tracing/events/syscalls"))
	if err != nil {
		f.Why = err.Error()
		f.Do = "mount -t tracefs tracefs " + h.sys("kernel/tracing")
		return f
	}
	f.Works, f.Detail = true, "tracepoints have names"
	return f
}

// size writes bytes for a person.
func size(n uint64) string {
	for _, u := range []struct {
		name  string
		shift uint
	}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if whole := float64(n) / float64(uint64(1)<<u.shift); whole >= 1 {
			return strconv.FormatFloat(whole, 'f', precision(whole), 64) + " " + u.name
		}
	}
	return strconv.FormatUint(n, 10) + " bytes"
}

// precision leaves small numbers one digit behind the point.
func precision(x float64) int {
	if x < 10 && x != float64(int(x)) {
		return 1
	}
	return 0
}
