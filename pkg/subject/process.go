// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A process is what /proc/PID says of one.
type process struct {
	comm        string
	start       uint64
	containerID string
	rank        string
}

// How much of each file is read: more than the kernel writes, or than matters.
const (
	statBytes    = 4 << 10
	cgroupBytes  = 64 << 10
	environBytes = 256 << 10
)

// read reads what /proc says of a process. A file that may not be read leaves its
// facts empty; a process that is not there is an error.
func read(proc string, pid int) (process, error) {
	p, err := readIdentity(proc, pid)
	if err != nil {
		return process{}, err
	}
	dir := filepath.Join(proc, strconv.Itoa(pid))
	if cgroup, err := readFile(filepath.Join(dir, "cgroup"), cgroupBytes); err == nil {
		p.containerID = containerID(cgroup)
	}
	if environ, err := readFile(filepath.Join(dir, "environ"), environBytes); err == nil {
		p.rank = rank(environ)
	}
	return p, nil
}

// readIdentity reads a process's name and when it began.
func readIdentity(proc string, pid int) (process, error) {
	path := filepath.Join(proc, strconv.Itoa(pid), "stat")
	stat, err := readFile(path, statBytes)
	if err != nil {
		return process{}, err
	}
	p, err := parseStat(stat)
	if err != nil {
		return process{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// startField is the place of starttime behind the name, which ends with the last
// ")": proc(5), field 22 of stat, where the state is field 3.
const startField = 22 - 3

// parseStat understands /proc/PID/stat. A name may hold spaces and parentheses.
func parseStat(stat []byte) (process, error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, errors.New("no name in parentheses")
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= startField {
		return process{}, fmt.Errorf("%d fields behind the name, want more than %d", len(fields), startField)
	}
	start, err := strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("start time: %w", err)
	}
	return process{comm: strings.ToValidUTF8(string(stat[open+1:end]), "\uFFFD"), start: start}, nil
}

// rankVariables hold a process's place in a distributed job, in the order of how
// directly they say it: torchrun and most launchers; Slurm; Open MPI; MPICH and
// Intel MPI; an indexed Kubernetes Job.
var rankVariables = []string{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JOB_COMPLETION_INDEX"}

// rank finds a process's rank in its environment, "" when it has none. Nothing else
// of the environment is kept.
func rank(environ []byte) string {
	found := make(map[string]string, len(rankVariables))
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		name, value, ok := strings.Cut(string(variable), "=")
		if _, err := strconv.ParseUint(value, 10, 31); !ok || err != nil {
			continue
		}
		found[name] = value
	}
	for _, name := range rankVariables {
		if value, ok := found[name]; ok {
			return value
		}
	}
	return ""
}
