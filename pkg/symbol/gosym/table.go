// SPDX-License-Identifier: Apache-2.0

package gosym

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"diagon.dev/diagon/pkg/symbol/elf"
)

const (
	magic118 = 0xfffffff0
	magic120 = 0xfffffff1

	headerSize = 8 + 8*8
	stride     = 64 // functions per number held in memory

	maxFunctions = 8 << 20
	maxText      = 4096 // bytes of a function's or a file's name
)

// ErrFormat means that the table cannot be what it says, or is of a Go version
// that is not read.
var ErrFormat = errors.New("not a Go symbol table that can be read")

// A Table finds the Go function at an address.
type Table struct {
	pclntab elf.Range
	text    uint64 // virtual address that functions are relative to
	inline  inlineTrees

	quantum   uint32
	functions uint64
	startLine bool // since 1.20 functions have a field more

	// Offsets in pclntab.
	names, units, files, pcs, funcs uint64

	index []uint32 // entry of every stride-th function
	end   uint32   // where the last function ends
}

// Open finds and checks the table of a Go program. A file without one gives nil.
func Open(f *elf.File, r io.ReaderAt, size int64) (*Table, error) {
	section := f.Section(".gopclntab")
	if section == nil {
		section = f.Section(".data.rel.ro.gopclntab")
	}
	if section == nil {
		return nil, nil
	}
	pclntab, err := section.Range(size)
	if err != nil {
		return nil, fmt.Errorf("pclntab: %w", err)
	}
	t := &Table{pclntab: pclntab}
	textStart, err := t.readHeader(r)
	if err != nil {
		return nil, fmt.Errorf("pclntab: header: %w", err)
	}
	if err := t.readIndex(r); err != nil {
		return nil, fmt.Errorf("pclntab: functions: %w", err)
	}

	m, found := findModule(f, r, size, section.Addr)
	switch {
	case found:
		t.text = m.text
		if t.startLine {
			t.inline = locateInlineTrees(f, size, m.gofunc)
		}
	case textStart != 0: // 1.26 and position-independent programs leave it zero
		t.text = textStart
	default:
		code := f.Section(".text")
		if code == nil {
			return nil, fmt.Errorf("start of text: %w", ErrFormat)
		}
		t.text = code.Addr
	}
	return t, nil
}

func (t *Table) readHeader(r io.ReaderAt) (textStart uint64, err error) {
	var h [headerSize]byte
	if err := t.pclntab.ReadAt(r, h[:], 0); err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	switch le.Uint32(h[:]) {
	case magic118:
	case magic120:
		t.startLine = true
	default:
		return 0, fmt.Errorf("magic %#x: %w", le.Uint32(h[:]), ErrFormat)
	}
	t.quantum = uint32(h[6])
	if pointer := h[7]; pointer != 8 || t.quantum == 0 || t.quantum > 4 {
		return 0, ErrFormat
	}
	word := func(i int) uint64 { return le.Uint64(h[8+8*i:]) }
	t.functions, textStart = word(0), word(2)
	t.names, t.units, t.files, t.pcs, t.funcs = word(3), word(4), word(5), word(6), word(7)
	for _, off := range []uint64{t.names, t.units, t.files, t.pcs, t.funcs} {
		if off > t.pclntab.Size {
			return 0, ErrFormat
		}
	}
	if t.functions == 0 || t.functions > maxFunctions {
		return 0, fmt.Errorf("%d functions: %w", t.functions, ErrFormat)
	}
	return textStart, nil
}

// readIndex keeps the entry of every stride-th function. The list has two words
// a function, entry and where it is described, and at its end the end of the last.
func (t *Table) readIndex(r io.ReaderAt) error {
	t.index = make([]uint32, 0, min(t.functions, t.pclntab.Size/8)/stride+1)
	buf := make([]byte, 8*1024*stride/8)
	le := binary.LittleEndian
	per := uint64(len(buf) / 8)
	for first := uint64(0); first < t.functions; first += per {
		chunk := buf[:min(per, t.functions-first)*8]
		if err := t.pclntab.ReadAt(r, chunk, t.funcs+first*8); err != nil {
			return err
		}
		for i := 0; i < len(chunk); i += stride * 8 {
			t.index = append(t.index, le.Uint32(chunk[i:]))
		}
	}
	var last [4]byte
	if err := t.pclntab.ReadAt(r, last[:], t.funcs+t.functions*8); err != nil {
		return err
	}
	t.end = le.Uint32(last[:])
	return nil
}

// Bytes is the memory that t holds.
func (t *Table) Bytes() int64 { return 200 + 4*int64(cap(t.index)) }

// find returns the entry of the function that contains rel, both relative to
// the start of text, and where in pclntab the function is described.
func (t *Table) find(r io.ReaderAt, rel uint32) (entry uint32, at uint64, ok bool, err error) {
	block := sort.Search(len(t.index), func(i int) bool { return t.index[i] > rel })
	if block == 0 || rel >= t.end {
		return 0, 0, false, nil
	}
	first := uint64(block-1) * stride
	n := min(stride, t.functions-first)
	var buf [stride * 8]byte
	list := buf[:n*8]
	if err := t.pclntab.ReadAt(r, list, t.funcs+first*8); err != nil {
		return 0, 0, false, fmt.Errorf("pclntab: functions: %w", err)
	}
	le := binary.LittleEndian
	i := sort.Search(int(n), func(i int) bool { return le.Uint32(list[i*8:]) > rel })
	if i == 0 {
		return 0, 0, false, nil
	}
	entry = le.Uint32(list[(i-1)*8:])
	return entry, t.funcs + uint64(le.Uint32(list[(i-1)*8+4:])), true, nil
}

// str reads a string that ends in NUL.
func (t *Table) str(r io.ReaderAt, off uint64) (string, error) {
	if off >= t.pclntab.Size {
		return "", fmt.Errorf("pclntab: string: %w", ErrFormat)
	}
	for size := uint64(128); ; size = maxText {
		b := make([]byte, min(size, t.pclntab.Size-off))
		if err := t.pclntab.ReadAt(r, b, off); err != nil {
			return "", fmt.Errorf("pclntab: string: %w", err)
		}
		for i, c := range b {
			if c == 0 {
				return string(b[:i]), nil
			}
		}
		if uint64(len(b)) < size || size == maxText {
			return "", fmt.Errorf("pclntab: string without end: %w", ErrFormat)
		}
	}
}
