// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readBootID reads what tells one boot of this host from the next.
func readBootID() (string, error) {
	raw, err := os.ReadFile(filepath.Join(procRoot, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// hostFacts are what a person wants to know of a node first.
func hostFacts() map[string]string {
	facts := map[string]string{"architecture": runtime.GOARCH, "cpus": strconv.Itoa(runtime.NumCPU())}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		facts["kernel"] = unix.ByteSliceToString(u.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		facts["memory_bytes"] = strconv.FormatUint(info.Totalram*uint64(info.Unit), 10)
	}
	if os, err := os.ReadFile("/etc/os-release"); err == nil {
		facts["os"] = prettyName(string(os))
	}
	return facts
}

// prettyName reads PRETTY_NAME of os-release(5).
func prettyName(release string) string {
	for line := range strings.Lines(release) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}
