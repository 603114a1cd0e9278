// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Perm says what a process may do with a mapping.
type Perm uint8

// The permission bits, in the order in which the kernel prints them.
const (
	Read Perm = 1 << iota
	Write
	Exec
	Shared
)

// A Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64 // addresses, End excluded
	Offset     uint64 // of Start in the file, in bytes
	Major      uint32 // device of the file's file system; 0:0 where there is no file
	Minor      uint32
	Inode      uint64 // 0 where there is no file
	Path       string // an absolute path, a name such as "[vdso]", or "" for anonymous memory
	Perm       Perm
	Deleted    bool // the kernel says that Path no longer leads to this file
}

// Contains reports whether addr lies in the mapping.
func (m *Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

// FileOffset is where in the file addr, which the mapping contains, comes from.
func (m *Mapping) FileOffset(addr uint64) uint64 { return addr - m.Start + m.Offset }

// IsFile reports whether a file lies behind the mapping: one on disk, or one in
// memory that the kernel gives a path ("/memfd:x", "/SYSV00000000").
func (m *Mapping) IsFile() bool { return m.Inode != 0 && strings.HasPrefix(m.Path, "/") }

const deleted = " (deleted)"

var errMalformed = errors.New("malformed line")

// parse understands one line, without its newline. The mapping's path is
// left to the caller, as the bytes that the kernel printed, because most
// lines repeat the path of the line before.
func parse(line []byte) (m Mapping, path []byte, err error) {
	var ok bool
	if m.Start, line, ok = number(line, 16, '-'); !ok {
		return m, nil, fmt.Errorf("start address: %w", errMalformed)
	}
	if m.End, line, ok = number(line, 16, ' '); !ok || m.End < m.Start {
		return m, nil, fmt.Errorf("end address: %w", errMalformed)
	}
	if len(line) < 5 || line[4] != ' ' {
		return m, nil, fmt.Errorf("permissions: %w", errMalformed)
	}
	for i, c := range []byte("rwxs") {
		if line[i] == c {
			m.Perm |= 1 << i
		}
	}
	if m.Offset, line, ok = number(line[5:], 16, ' '); !ok {
		return m, nil, fmt.Errorf("offset: %w", errMalformed)
	}
	major, line, ok := number(line, 16, ':')
	if !ok || major > math.MaxUint32 {
		return m, nil, fmt.Errorf("device: %w", errMalformed)
	}
	minor, line, ok := number(line, 16, ' ')
	if !ok || minor > math.MaxUint32 {
		return m, nil, fmt.Errorf("device: %w", errMalformed)
	}
	m.Major, m.Minor = uint32(major), uint32(minor)

	// The inode is the last field that is always there; a path follows after
	// padding, and nothing at all on kernels that print no trailing space.
	if m.Inode, line, ok = number(line, 10, ' '); !ok {
		return m, nil, fmt.Errorf("inode: %w", errMalformed)
	}
	return m, bytes.TrimLeft(line, " "), nil
}

// number reads digits up to end, or to the end of line, and returns what follows.
func number(line []byte, base uint64, end byte) (n uint64, rest []byte, ok bool) {
	for i, c := range line {
		var digit uint64
		switch {
		case c == end:
			return n, line[i+1:], i > 0
		case '0' <= c && c <= '9':
			digit = uint64(c - '0')
		case 'a' <= c && c <= 'f' && base == 16:
			digit = uint64(c-'a') + 10
		default:
			return 0, nil, false
		}
		if n > (math.MaxUint64-digit)/base {
			return 0, nil, false
		}
		n = n*base + digit
	}
	return n, nil, len(line) > 0 && end == ' '
}

// setPath takes the path as printed. The kernel escapes nothing but the newline,
// so a file whose name really holds `\012`, or really ends in " (deleted)",
// cannot be told from one that does not: whoever opens Path compares the inode.
func (m *Mapping) setPath(printed string) {
	m.Path, m.Deleted = strings.CutSuffix(printed, deleted)
	if strings.Contains(m.Path, `\012`) {
		m.Path = strings.ReplaceAll(m.Path, `\012`, "\n")
	}
}
