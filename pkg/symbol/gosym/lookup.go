// SPDX-License-Identifier: Apache-2.0

package gosym

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"diagon.dev/diagon/pkg/profile"
)

// Indices of the tables that a function carries (internal/abi/symtab.go).
const (
	pcdataInlTree   = 2
	funcdataInlTree = 3

	maxTables = 64 // of each of both kinds; Go has fewer than ten
)

// A Func is a Go function at one of its addresses.
type Func struct {
	Entry uint64         // virtual address
	Lines []profile.Line // innermost first; all but the last were inlined into the last
}

// function is runtime._func.
type function struct {
	entry        uint32
	name         uint32
	file, line   uint32 // pc tables
	unit         uint32
	inlineIndex  uint32 // pc table; 0 when nothing is inlined
	inlineTree   uint32 // offset from go:func.*
	hasInlineTab bool
}

// Lookup returns the function that contains vaddr, or false.
//
// Where calls were inlined and the program does not show how, the position
// belongs to one of them and not to the function: it is then left out.
func (t *Table) Lookup(r io.ReaderAt, vaddr uint64) (Func, bool, error) {
	if vaddr < t.text || vaddr-t.text > math.MaxUint32 {
		return Func{}, false, nil
	}
	rel := uint32(vaddr - t.text)
	entry, at, ok, err := t.find(r, rel)
	if !ok {
		return Func{}, false, err
	}
	f, err := t.function(r, at)
	if err != nil {
		return Func{}, false, err
	}
	if f.entry != entry {
		return Func{}, false, fmt.Errorf("pclntab: function at %#x: %w", vaddr, ErrFormat)
	}
	name, err := t.str(r, t.names+uint64(f.name))
	if err != nil || name == "" {
		return Func{}, false, err
	}

	result := Func{Entry: t.text + uint64(entry)}
	pc, position := rel-entry, true
	if f.inlineIndex != 0 {
		result.Lines, pc, position, err = t.inlined(r, f, pc)
		if err != nil {
			return Func{}, false, err
		}
	}
	outer := profile.Line{Function: printed(name)}
	if position {
		outer.File, outer.Number = t.position(r, f, pc)
	}
	result.Lines = append(result.Lines, outer)
	return result, true, nil
}

func (t *Table) function(r io.ReaderAt, at uint64) (function, error) {
	size := 40
	if t.startLine {
		size = 44
	}
	var buf [44]byte
	b := buf[:size]
	if err := t.pclntab.ReadAt(r, b, at); err != nil {
		return function{}, fmt.Errorf("pclntab: function: %w", err)
	}
	le := binary.LittleEndian
	f := function{
		entry: le.Uint32(b), name: le.Uint32(b[4:]),
		file: le.Uint32(b[20:]), line: le.Uint32(b[24:]), unit: le.Uint32(b[32:]),
	}
	pcdata, funcdata := le.Uint32(b[28:]), uint32(b[size-1])
	if !t.startLine || pcdata <= pcdataInlTree || pcdata > maxTables {
		return f, nil
	}
	tables := make([]byte, 4*(pcdata+funcdata))
	if err := t.pclntab.ReadAt(r, tables, at+uint64(size)); err != nil {
		return function{}, fmt.Errorf("pclntab: function's tables: %w", err)
	}
	f.inlineIndex = le.Uint32(tables[4*pcdataInlTree:])
	if funcdata > funcdataInlTree {
		f.inlineTree = le.Uint32(tables[4*(pcdata+funcdataInlTree):])
		f.hasInlineTab = f.inlineTree != math.MaxUint32
	}
	return f, nil
}

// position is the file and line of pc, an offset from the function's entry. A
// position that cannot be read is left out: the name stands without it.
func (t *Table) position(r io.ReaderAt, f function, pc uint32) (file string, line int) {
	n, err := t.value(r, f.line, pc)
	if err != nil || n <= 0 {
		return "", 0
	}
	fileIndex, err := t.value(r, f.file, pc)
	if err != nil || fileIndex < 0 {
		return "", 0
	}
	var b [4]byte
	if err := t.pclntab.ReadAt(r, b[:], t.units+4*(uint64(f.unit)+uint64(fileIndex))); err != nil {
		return "", 0
	}
	off := binary.LittleEndian.Uint32(b[:])
	if off == math.MaxUint32 {
		return "", 0
	}
	file, err = t.str(r, t.files+uint64(off))
	if err != nil {
		return "", 0
	}
	return strings.ToValidUTF8(file, "\uFFFD"), int(n)
}

// printed is a function's name as Go prints it: with "[...]" for type arguments, which
// are written out as the shapes that the compiler made of them.
func printed(name string) string {
	i, j := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']')
	if i < 0 || j <= i {
		return name
	}
	return name[:i] + "[...]" + name[j+1:]
}
