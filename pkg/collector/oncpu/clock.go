// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// wallClockOffset is what to add to boot time, which samples are stamped with,
// to get wall time. It changes whenever the wall clock is set, so it is read
// anew for each drain: boot time itself never steps and counts suspension.
func wallClockOffset() (time.Duration, error) {
	var boot, wall unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return 0, fmt.Errorf("read boot clock: %w", err)
	}
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
		return 0, fmt.Errorf("read wall clock: %w", err)
	}
	return time.Duration(wall.Nano() - boot.Nano()), nil
}
