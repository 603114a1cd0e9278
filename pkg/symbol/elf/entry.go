// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"encoding/binary"
	"strings"
)

const (
	sttNotype   = 0
	sttFunc     = 2
	sttGNUIfunc = 10

	stbLocal  = 0
	stbGlobal = 1
)

// entry is a symbol as the file holds it.
type entry struct {
	name        uint32
	info        uint8
	section     uint16
	value, size uint64
}

func decode(b []byte) entry {
	le := binary.LittleEndian
	return entry{name: le.Uint32(b), info: b[4], section: le.Uint16(b[6:]), value: le.Uint64(b[8:]), size: le.Uint64(b[16:])}
}

func (s entry) kind() uint8    { return s.info & 0xf }
func (s entry) binding() uint8 { return s.info >> 4 }

// isFunction reports whether s names code. Assembler that does not declare its
// labels' types exports them as "no type" in a section of code.
func (s entry) isFunction(f *File) bool {
	if s.section == 0 || s.name == 0 {
		return false
	}
	switch s.kind() {
	case sttFunc, sttGNUIfunc:
		return true
	case sttNotype:
		return s.binding() != stbLocal && int(s.section) < len(f.Sections) && f.Sections[s.section].Flags&shfExec != 0
	}
	return false
}

// rank orders the names of one address, the best first.
type rank struct {
	untyped, local bool
	underscores    int
	weak           bool
	name           string
}

func rankOf(name string, s entry) rank {
	underscores := len(name) - len(strings.TrimLeft(name, "_"))
	if strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") {
		underscores = 0 // mangled
	}
	return rank{
		untyped: s.kind() == sttNotype, local: s.binding() == stbLocal,
		underscores: underscores, weak: s.binding() != stbGlobal, name: name,
	}
}

func (a rank) before(b rank) bool {
	switch {
	case a.untyped != b.untyped:
		return b.untyped
	case a.local != b.local:
		return b.local
	case a.underscores != b.underscores:
		return a.underscores < b.underscores
	case a.weak != b.weak:
		return b.weak
	case len(a.name) != len(b.name):
		return len(a.name) < len(b.name)
	}
	return a.name < b.name
}
