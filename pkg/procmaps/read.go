// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"bufio"
	"fmt"
	"io"
	"sort"
)

// maxLine bounds one line: PATH_MAX bytes of path, each of them escaped, and
// the columns before it.
const maxLine = 4*4096 + 256

// Scan calls each for every line of r, in order, until each returns false. The
// error names the line that could not be understood.
func Scan(r io.Reader, each func(Mapping) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)

	// Neighbouring lines are mostly segments of one file: keep its string.
	var printed string
	for n := 1; lines.Scan(); n++ {
		m, path, err := parse(lines.Bytes())
		if err != nil {
			return fmt.Errorf("maps: line %d: %w", n, err)
		}
		if string(path) != printed {
			printed = string(path)
		}
		m.setPath(printed)
		if !each(m) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("maps: %w", err)
	}
	return nil
}

// A Table holds mappings sorted by address.
type Table struct {
	Mappings []Mapping
	Skipped  int // mappings that did not fit the limit and are not in the table
}

// Executable reads the mappings that code can run from, at most limit of them.
// A process may have 65,530 mappings and more (vm.max_map_count).
func Executable(r io.Reader, limit int) (Table, error) {
	var t Table
	err := Scan(r, func(m Mapping) bool {
		switch {
		case m.Perm&Exec == 0:
		case len(t.Mappings) >= limit:
			t.Skipped++
		default:
			t.Mappings = append(t.Mappings, m)
		}
		return true
	})
	// The kernel prints in order; a fixture need not.
	sort.SliceStable(t.Mappings, func(i, j int) bool { return t.Mappings[i].Start < t.Mappings[j].Start })
	return t, err
}

// Find returns the mapping that contains addr, or nil.
func (t *Table) Find(addr uint64) *Mapping {
	i := sort.Search(len(t.Mappings), func(i int) bool { return t.Mappings[i].End > addr })
	if i == len(t.Mappings) || !t.Mappings[i].Contains(addr) {
		return nil
	}
	return &t.Mappings[i]
}
