// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is the inode of the namespace that the kernel starts with
// (PROC_PID_INIT_INO in include/linux/proc_ns.h). It never changes.
const initialPIDNamespace = 0xEFFFFFFC

// procPIDNamespace is the inode of the PID namespace whose numbers /proc shows, or 0 when
// that is the initial one. It is this process's own, unless somebody mounted the /proc of
// an outer namespace here; there process 1 is one of that namespace.
func procPIDNamespace() (uint32, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("which PID namespace /proc shows: %w", err)
	}
	of := "/proc/self/ns/pid"
	if levels(status) > 1 {
		of = "/proc/1/ns/pid"
	}
	var st unix.Stat_t
	if err := unix.Stat(of, &st); err != nil {
		return 0, fmt.Errorf("which PID namespace /proc shows: %s: %w", of, err)
	}
	if st.Ino == initialPIDNamespace {
		return 0, nil
	}
	return uint32(st.Ino), nil
}

// levels counts the numbers of the NSpid line of /proc/self/status (proc(5)): one for each
// namespace from that of /proc down to the process's own.
func levels(status []byte) int {
	for line := range bytes.Lines(status) {
		if numbers, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			return len(bytes.Fields(numbers))
		}
	}
	return 1
}
