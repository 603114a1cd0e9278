// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// inode is what tells one socket, pipe or namespace from another of its kind.
var inode = regexp.MustCompile(`\[\d+\]`)

// held counts what this process holds of the kernel, by kind: open files by
// path, BPF programs, maps, links and perf events as anon_inode:bpf-prog,
// anon_inode:[perf_event] and so on, and mappings of BPF maps.
func held(t *testing.T) map[string]int {
	t.Helper()
	count := make(map[string]int)

	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err != nil { // the one that ReadDir itself had open
			continue
		}
		count[inode.ReplaceAllString(target, "")]++
	}

	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	count["mapping of a BPF map"] = strings.Count(string(maps), "anon_inode:bpf-map")
	return count
}
