// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Limits on what headers may claim. Real files stay far below: the largest
// seen, Chromium and libtorch, have some 40 sections and 14 segments.
const (
	maxSegments = 256
	maxSections = 8192
	maxNames    = 1 << 20 // bytes of section names
)

// ErrFormat means that the bytes are not an ELF file that this package reads.
var ErrFormat = errors.New("not a 64-bit little-endian ELF file")

// ErrTooLarge means that a table exceeds a limit of this package.
var ErrTooLarge = errors.New("too large")

// The values of the gABI that are used here.
const (
	headerSize  = 64
	segmentSize = 56
	sectionSize = 64
	symbolSize  = 24

	ptLoad = 1
	ptNote = 4

	pfExec = 1

	shtSymtab = 2
	shtNote   = 7
	shtNobits = 8
	shtDynsym = 11

	shfExec       = 0x4
	shfCompressed = 0x800

	shnXindex = 0xffff
)

// A Segment is a program header.
type Segment struct {
	Type, Flags      uint32
	Offset, FileSize uint64 // in the file
	VAddr, MemSize   uint64 // in memory, before relocation
}

// Exec reports whether the segment is loaded as code.
func (s *Segment) Exec() bool { return s.Type == ptLoad && s.Flags&pfExec != 0 }

// A Section is a section header. Its bytes are inside the file.
type Section struct {
	Name         string
	Type         uint32
	Flags        uint64
	Addr         uint64
	Offset, Size uint64
	Link         uint32
}

// A File holds an ELF file's headers. It keeps no reader: who asks for more
// passes one, so that files need not stay open.
type File struct {
	Segments []Segment
	Sections []Section // in the file's order, so that indices fit; empty when stripped of headers
}

// Read reads the headers of the file of size bytes behind r.
func Read(r io.ReaderAt, size int64) (*File, error) {
	var h [headerSize]byte
	if err := readFull(r, h[:], 0); err != nil {
		return nil, fmt.Errorf("header: %w", ErrFormat)
	}
	if !bytes.Equal(h[:6], []byte("\x7fELF\x02\x01")) {
		return nil, ErrFormat
	}
	le := binary.LittleEndian
	f := &File{}
	var err error
	if f.Segments, err = readSegments(r, size, le.Uint64(h[32:]), le.Uint16(h[54:]), le.Uint16(h[56:])); err != nil {
		return nil, fmt.Errorf("program headers: %w", err)
	}
	if f.Sections, err = readSections(r, size, le.Uint64(h[40:]), le.Uint16(h[58:]), le.Uint16(h[60:]), le.Uint16(h[62:])); err != nil {
		return nil, fmt.Errorf("section headers: %w", err)
	}
	return f, nil
}

func readSegments(r io.ReaderAt, size int64, off uint64, entry, n uint16) ([]Segment, error) {
	if n == 0 {
		return nil, nil
	}
	if entry != segmentSize {
		return nil, fmt.Errorf("entry of %d bytes: %w", entry, ErrFormat)
	}
	if n > maxSegments {
		return nil, fmt.Errorf("%d entries: %w", n, ErrTooLarge)
	}
	raw, err := readRange(r, size, off, uint64(n)*segmentSize)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	segments := make([]Segment, n)
	for i := range segments {
		b := raw[i*segmentSize:]
		segments[i] = Segment{
			Type: le.Uint32(b), Flags: le.Uint32(b[4:]),
			Offset: le.Uint64(b[8:]), VAddr: le.Uint64(b[16:]),
			FileSize: le.Uint64(b[32:]), MemSize: le.Uint64(b[40:]),
		}
	}
	return segments, nil
}

func readSections(r io.ReaderAt, size int64, off uint64, entry, n, names uint16) ([]Section, error) {
	// A vDSO and files packed by sstrip have none.
	if off == 0 || n == 0 && entry == 0 {
		return nil, nil
	}
	if entry != sectionSize {
		return nil, fmt.Errorf("entry of %d bytes: %w", entry, ErrFormat)
	}
	count, namesAt := uint64(n), uint64(names)
	if n == 0 || names == shnXindex {
		// Section 0 holds what did not fit sixteen bits.
		first, err := readRange(r, size, off, sectionSize)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			count = binary.LittleEndian.Uint64(first[32:])
		}
		if names == shnXindex {
			namesAt = uint64(binary.LittleEndian.Uint32(first[40:]))
		}
	}
	if count > maxSections {
		return nil, fmt.Errorf("%d entries: %w", count, ErrTooLarge)
	}
	raw, err := readRange(r, size, off, count*sectionSize)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	sections := make([]Section, count)
	for i := range sections {
		b := raw[i*sectionSize:]
		sections[i] = Section{
			Type: le.Uint32(b[4:]), Flags: le.Uint64(b[8:]), Addr: le.Uint64(b[16:]),
			Offset: le.Uint64(b[24:]), Size: le.Uint64(b[32:]), Link: le.Uint32(b[40:]),
		}
	}
	if namesAt >= count {
		return sections, nil
	}
	table, err := sections[namesAt].read(r, size, maxNames)
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	for i := range sections {
		sections[i].Name = cString(table, uint64(le.Uint32(raw[i*sectionSize:])))
	}
	return sections, nil
}

// Section returns the first section of a name that has bytes in the file, or nil.
func (f *File) Section(name string) *Section {
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Name == name && s.Type != shtNobits && s.Size > 0 {
			return s
		}
	}
	return nil
}

// VAddr turns an offset in the file into the address it is loaded at, before
// relocation. Where two segments share a page of the file, code wins.
func (f *File) VAddr(off uint64) (uint64, bool) {
	var found *Segment
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type != ptLoad || off < s.Offset || off-s.Offset >= s.FileSize {
			continue
		}
		if found == nil || s.Exec() && !found.Exec() {
			found = s
		}
	}
	if found == nil {
		return 0, false
	}
	return off - found.Offset + found.VAddr, true
}

// Offset is the inverse of VAddr.
func (f *File) Offset(vaddr uint64) (uint64, bool) {
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type == ptLoad && vaddr >= s.VAddr && vaddr-s.VAddr < s.FileSize {
			return vaddr - s.VAddr + s.Offset, true
		}
	}
	return 0, false
}

// Bytes estimates the memory that f holds.
func (f *File) Bytes() int64 { return 64 + int64(len(f.Segments))*40 + int64(len(f.Sections))*80 }

// read returns the section's bytes, at most limit of them.
func (s *Section) read(r io.ReaderAt, size int64, limit uint64) ([]byte, error) {
	switch {
	case s.Type == shtNobits:
		return nil, fmt.Errorf("section %q: no bytes in the file: %w", s.Name, ErrFormat)
	case s.Flags&shfCompressed != 0:
		return nil, fmt.Errorf("section %q: compressed: %w", s.Name, ErrFormat)
	case s.Size > limit:
		return nil, fmt.Errorf("section %q: %d bytes: %w", s.Name, s.Size, ErrTooLarge)
	}
	return readRange(r, size, s.Offset, s.Size)
}

// within reports whether n bytes at off lie in a file of size bytes.
func within(size int64, off, n uint64) bool {
	return size >= 0 && off <= uint64(size) && n <= uint64(size)-off && off+n <= math.MaxInt64
}

// readRange checks that a range lies in the file before it makes room for it.
func readRange(r io.ReaderAt, size int64, off, n uint64) ([]byte, error) {
	if !within(size, off, n) {
		return nil, fmt.Errorf("%d bytes at %d of a file of %d: %w", n, off, size, ErrFormat)
	}
	b := make([]byte, n)
	return b, readFull(r, b, int64(off))
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// cString returns the string that starts at off, up to a NUL or the end of b.
func cString(b []byte, off uint64) string {
	if off >= uint64(len(b)) {
		return ""
	}
	b = b[off:]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// A Range is a run of bytes of a file that has been checked to lie inside it.
type Range struct{ Offset, Size uint64 }

// Range returns where a section's bytes lie, if all of them do lie in the file.
func (s *Section) Range(size int64) (Range, error) {
	if s.Type == shtNobits || s.Flags&shfCompressed != 0 || !within(size, s.Offset, s.Size) {
		return Range{}, fmt.Errorf("section %q: no plain bytes in the file: %w", s.Name, ErrFormat)
	}
	return Range{s.Offset, s.Size}, nil
}

// ReadAt fills b from off bytes into the range, never from outside of it.
func (g Range) ReadAt(r io.ReaderAt, b []byte, off uint64) error {
	if off > g.Size || uint64(len(b)) > g.Size-off {
		return io.ErrUnexpectedEOF
	}
	return readFull(r, b, int64(g.Offset+off))
}
