// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// snapshot is what /proc said at one time. What it did not say is nil.
type snapshot struct {
	at         time.Time
	stat       *procfs.Stat
	load       *procfs.LoadAvg
	memory     *procfs.Meminfo
	pressure   map[string]procfs.PSIStats // by resource
	network    procfs.NetDev
	disks      []blockdevice.Diskstats
	files      *files
	uptime     *float64 // seconds
	unreadable []string
}

// files is /proc/sys/fs/file-nr.
type files struct{ open, limit uint64 }

// procfsRoot reads one machine's /proc.
type procfsRoot struct {
	path  string
	fs    procfs.FS
	block blockdevice.FS
}

func open(path string) (*procfsRoot, error) {
	fs, err := procfs.NewFS(path)
	if err != nil {
		return nil, err
	}
	block, err := blockdevice.NewFS(path, path) // of /sys nothing is read
	if err != nil {
		return nil, err
	}
	return &procfsRoot{path: path, fs: fs, block: block}, nil
}

// read takes a snapshot. One source that fails does not stop the others.
func (p *procfsRoot) read(at time.Time) snapshot {
	s := snapshot{at: at, pressure: make(map[string]procfs.PSIStats)}
	try := func(source string, err error) bool {
		if err != nil && !absent(err) {
			s.unreadable = append(s.unreadable, source)
		}
		return err == nil
	}

	if stat, err := p.fs.Stat(); try("stat", err) {
		s.stat = &stat
	}
	if load, err := p.fs.LoadAvg(); try("loadavg", err) {
		s.load = load
	}
	if memory, err := p.fs.Meminfo(); try("meminfo", err) {
		s.memory = &memory
	}
	for _, resource := range resources {
		if pressure, err := p.fs.PSIStatsForResource(resource); try("pressure/"+resource, err) {
			s.pressure[resource] = pressure
		}
	}
	if network, err := p.network(); try("net/dev", err) {
		s.network = network
	}
	if disks, err := p.block.ProcDiskstats(); try("diskstats", err) {
		s.disks = disks
	}
	if files, err := p.files(); try("sys/fs/file-nr", err) {
		s.files = files
	}
	if seconds, err := p.uptime(); try("uptime", err) {
		s.uptime = &seconds
	}
	return s
}

var resources = []string{"cpu", "memory", "io"}

// absent reports whether a source is not there, rather than broken: not built
// into the kernel, or (pressure) switched off at boot, which reads say with EOPNOTSUPP.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported)
}

// network asks for the devices of process 1: in a pod with the machine's PIDs
// but a network of its own, those are the machine's.
func (p *procfsRoot) network() (procfs.NetDev, error) {
	if first, err := p.fs.Proc(1); err == nil {
		if devices, err := first.NetDev(); err == nil {
			return devices, nil
		}
	}
	return p.fs.NetDev()
}

func (p *procfsRoot) files() (*files, error) {
	raw, err := os.ReadFile(filepath.Join(p.path, "sys/fs/file-nr"))
	if err != nil {
		return nil, err
	}
	return parseFileNr(string(raw))
}

// parseFileNr reads "allocated unused limit"; since Linux 2.6 nothing is ever unused.
func parseFileNr(raw string) (*files, error) {
	fields := strings.Fields(raw)
	if len(fields) != 3 {
		return nil, fmt.Errorf("file-nr: %q has %d fields, want 3", raw, len(fields))
	}
	open, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("file-nr: %w", err)
	}
	limit, err := strconv.ParseUint(fields[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("file-nr: %w", err)
	}
	return &files{open: open, limit: limit}, nil
}

func (p *procfsRoot) uptime() (float64, error) {
	raw, err := os.ReadFile(filepath.Join(p.path, "uptime"))
	if err != nil {
		return 0, err
	}
	return parseUptime(string(raw))
}

// parseUptime reads "seconds seconds-idle".
func parseUptime(raw string) (float64, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(raw), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("uptime: %w", err)
	}
	if !(seconds >= 0 && seconds < 1e12) {
		return 0, fmt.Errorf("uptime: %q is no time", first)
	}
	return seconds, nil
}
