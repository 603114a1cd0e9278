// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// host is the machine as this process may see it, with the facts that several probes need.
type host struct {
	cfg  Config
	held capabilitySet
}

func look(cfg Config) *host {
	h := &host{cfg: cfg}
	h.held = h.heldCapabilities()
	return h
}

func (h *host) proc(path ...string) string { return filepath.Join(h.cfg.Proc, filepath.Join(path...)) }
func (h *host) sys(path ...string) string  { return filepath.Join(h.cfg.Sys, filepath.Join(path...)) }

// maxFile is more than any file holds that is read here whole.
const maxFile = 64 << 10

// read returns a small file without the white space around it.
func read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile))
	return strings.TrimSpace(string(raw)), err
}

// sysctl reads a kernel setting, "" when it is not there or not for us.
func (h *host) sysctl(name string) string {
	value, err := read(h.proc("sys", strings.ReplaceAll(name, ".", "/")))
	if err != nil {
		return ""
	}
	return value
}
