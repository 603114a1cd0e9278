// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bytes"
	"strings"
)

// idLength is how many hex digits a container id has, in every runtime in use.
const idLength = 64

// containerID finds the container in /proc/PID/cgroup: lines of
// "hierarchy:controllers:path" (cgroups(7)), on cgroup v1 one a hierarchy, on v2
// one in all. The id is the last element of the path, under these forms:
//
//	/docker/ID                                      cgroupfs driver
//	/kubepods/burstable/podUID/ID                   cgroupfs driver, Kubernetes
//	/system.slice/docker-ID.scope                   systemd driver
//	/kubepods.slice/…/cri-containerd-ID.scope       systemd driver, Kubernetes
//	/machine.slice/libpod-ID.scope/container        podman, one level below
//
// The innermost id counts: a container in a container is the inner one.
func containerID(cgroup []byte) string {
	for line := range bytes.SplitSeq(cgroup, []byte{'\n'}) {
		parts := strings.SplitN(string(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		if id := idInPath(parts[2]); id != "" {
			return id
		}
	}
	return ""
}

func idInPath(path string) string {
	elements := strings.Split(path, "/")
	for i := len(elements) - 1; i >= 0; i-- {
		name := strings.TrimSuffix(elements[i], ".scope")
		if dash := strings.LastIndexByte(name, '-'); dash >= 0 {
			name = name[dash+1:]
		}
		if isID(name) {
			return name
		}
	}
	return ""
}

func isID(s string) bool {
	if len(s) != idLength {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
