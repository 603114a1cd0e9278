// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is the inode of the namespace that the kernel starts with
// (PROC_PID_INIT_INO in include/linux/proc_ns.h). It never changes.
const initialPIDNamespace = 0xEFFFFFFC

// nestedPIDNamespace is the inode of the PID namespace this process lives in,
// or 0 when that is the initial one.
func nestedPIDNamespace() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("which PID namespace this is: /proc/self/ns/pid: %w", err)
	}
	if st.Ino == initialPIDNamespace {
		return 0, nil
	}
	return uint32(st.Ino), nil
}
