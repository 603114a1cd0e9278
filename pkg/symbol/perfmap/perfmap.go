// SPDX-License-Identifier: Apache-2.0

// Package perfmap names code that a process made at run time, from the map that
// its runtime writes for perf: /tmp/perf-PID.map, one line "START SIZE name" a
// function, numbers in hex.
//
// Runtimes append for as long as they live, and code moves: a later line wins over an
// earlier one for the same address. A Map holds 16 bytes a line, and names stay in
// the file.
//
// Format: tools/perf/Documentation/jit-interface.txt in the kernel's source.
package perfmap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
)

const (
	maxLine = 8 << 10
	maxSize = 16 << 20 // bytes of code of one function
	// maxBack is how many functions before an address are tried: code that
	// was replaced leaves its old lines in the way.
	maxBack = 64
)

// ErrTooLarge means that the map has more lines, or bytes, than were allowed. What was
// read until then stays usable.
var ErrTooLarge = errors.New("perf map too large")

type entry struct {
	start uint64
	size  uint32
	name  uint32 // offset of the name in the file; grows with time
}

// A Map finds the function at an address. The zero Map is empty.
type Map struct {
	entries []entry // sorted by start, then by age
	read    int64   // bytes of the file that are in entries
}

// A Symbol is a function that a runtime made.
type Symbol struct {
	Name  string
	Start uint64
}

// Update reads what was appended to the file of size bytes behind r since the last
// Update, up to limit lines in all. Lines that are not understood are skipped.
func (m *Map) Update(r io.ReaderAt, size int64, limit int) error {
	if size < m.read { // begun anew
		*m = Map{}
	}
	const chunk = 64 << 10
	buf := make([]byte, min(chunk, max(size-m.read, 0)))
	defer m.sort()
	for m.read < size {
		if m.read > math.MaxUint32-chunk {
			return fmt.Errorf("perf map: %d bytes: %w", size, ErrTooLarge)
		}
		b := buf[:min(int64(len(buf)), size-m.read)]
		if n, err := r.ReadAt(b, m.read); n < len(b) {
			if n == 0 {
				return fmt.Errorf("perf map: %w", err)
			}
			b = b[:n]
		}
		end := bytes.LastIndexByte(b, '\n') + 1
		switch {
		case end > 0:
		case len(b) < maxLine:
			return nil // the writer is in the middle of a line
		default:
			end = len(b) // no line at all: pass over it
		}
		for at := 0; at < end; {
			line := b[at:end]
			if i := bytes.IndexByte(line, '\n'); i >= 0 {
				line = line[:i]
			}
			if e, ok := parse(line); ok {
				if len(m.entries) >= limit {
					m.read += int64(at)
					return fmt.Errorf("perf map: more than %d functions: %w", limit, ErrTooLarge)
				}
				e.name += uint32(m.read) + uint32(at)
				m.entries = append(m.entries, e)
			}
			at += len(line) + 1
		}
		m.read += int64(end)
	}
	return nil
}

func (m *Map) sort() {
	slices.SortFunc(m.entries, func(a, b entry) int {
		switch {
		case a.start != b.start:
			if a.start < b.start {
				return -1
			}
			return 1
		case a.name < b.name:
			return -1
		case a.name > b.name:
			return 1
		}
		return 0
	})
}

// parse understands one line; the entry's name is relative to the line.
func parse(line []byte) (e entry, ok bool) {
	start, n, ok := hex(line)
	if !ok {
		return entry{}, false
	}
	size, k, ok := hex(line[n:])
	if !ok || size == 0 || size > maxSize || n+k >= len(line) || start > math.MaxUint64-size {
		return entry{}, false
	}
	return entry{start: start, size: uint32(size), name: uint32(n + k)}, true
}

// hex reads a number, which may begin with 0x, and the space that ends it.
func hex(b []byte) (n uint64, length int, ok bool) {
	rest := bytes.TrimPrefix(b, []byte("0x"))
	skipped := len(b) - len(rest)
	for i, c := range rest {
		var digit byte
		switch {
		case c == ' ':
			return n, skipped + i + 1, i > 0
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c && c <= 'f':
			digit = c - 'a' + 10
		case 'A' <= c && c <= 'F':
			digit = c - 'A' + 10
		default:
			return 0, 0, false
		}
		if n >= 1<<60 {
			return 0, 0, false
		}
		n = n<<4 | uint64(digit)
	}
	return 0, 0, false
}

// Len is the number of functions.
func (m *Map) Len() int { return len(m.entries) }

// Bytes is the memory that m holds.
func (m *Map) Bytes() int64 { return 64 + 16*int64(cap(m.entries)) }

// Lookup returns the youngest function that contains addr. r reads the file.
func (m *Map) Lookup(r io.ReaderAt, addr uint64) (Symbol, bool, error) {
	end := sort.Search(len(m.entries), func(i int) bool { return m.entries[i].start > addr })
	best := -1
	for i := end - 1; i >= max(0, end-maxBack); i-- {
		if e := m.entries[i]; addr-e.start < uint64(e.size) && (best < 0 || e.name > m.entries[best].name) {
			best = i
		}
	}
	if best < 0 {
		return Symbol{}, false, nil
	}
	e := m.entries[best]
	buf := make([]byte, min(maxLine, m.read-int64(e.name)))
	n, err := r.ReadAt(buf, int64(e.name))
	if n == 0 && err != nil {
		return Symbol{}, false, fmt.Errorf("perf map: name: %w", err)
	}
	name, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	text := strings.ToValidUTF8(strings.TrimSpace(string(name)), "\uFFFD")
	return Symbol{Name: text, Start: e.start}, text != "", nil
}
