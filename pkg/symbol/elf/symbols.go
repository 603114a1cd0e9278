// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
)

const (
	// maxName bounds one symbol's name. C++ templates make names of several
	// kilobytes.
	maxName = 8 << 10

	// How far a lookup searches for a symbol around an address: symbols that
	// start at one address, and starts before it.
	maxAliases = 32
	maxStarts  = 16
)

// A Symbol is a function by name.
type Symbol struct {
	Name  string // as in the file, without its version
	Start uint64 // virtual address
	Size  uint64 // 0: not said
}

// A Span is a run of addresses, High excluded, that all have the same answer.
type Span struct{ Low, High uint64 }

// narrow cuts a span at an end of a symbol, on the side of at.
func (s *Span) narrow(end, at uint64) {
	if at < end {
		s.High = min(s.High, end)
	} else {
		s.Low = max(s.Low, end)
	}
}

// A Table finds the function at an address. It holds eight bytes a symbol;
// sizes and names stay in the file and are read when asked for.
type Table struct {
	// keys are sorted: start, relative to base, << 32 | index in the file's table.
	keys     []uint64
	base     uint64
	symbols  uint64 // offset of the symbol table in the file
	strings  Section
	sizeless uint64
	Skipped  int // functions more than 4 GiB from the first, which a key cannot hold
}

// Which of a file's symbol tables.
type Which uint32

// Symtab is the full table that strip removes, Dynsym the exported names.
const (
	Symtab Which = shtSymtab
	Dynsym Which = shtDynsym
)

// sizeless is how far a symbol that does not say its size may reach, at most
// to the next symbol. Hand-written assembler leaves sizes out. In a table of exported
// names alone the next symbol says little, and a wrong name is worse than none.
func (w Which) sizeless() uint64 {
	if w == Symtab {
		return 4096
	}
	return 256
}

// Functions reads which table of the file. At most limit symbols are taken;
// more are ErrTooLarge. A file without such a table has an empty one.
func (f *File) Functions(r io.ReaderAt, size int64, which Which, limit int) (*Table, error) {
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != uint32(which) || s.Size == 0 {
			continue
		}
		if s.Flags&shfCompressed != 0 || uint64(s.Link) >= uint64(len(f.Sections)) {
			return nil, fmt.Errorf("section %q: %w", s.Name, ErrFormat)
		}
		names := f.Sections[s.Link]
		if !within(size, s.Offset, s.Size) || !within(size, names.Offset, names.Size) || names.Flags&shfCompressed != 0 {
			return nil, fmt.Errorf("section %q: outside of the file: %w", s.Name, ErrFormat)
		}
		count := s.Size / symbolSize
		if count > math.MaxUint32 {
			return nil, fmt.Errorf("section %q: %d symbols: %w", s.Name, count, ErrTooLarge)
		}
		t := &Table{base: f.lowestCode(), symbols: s.Offset, strings: names, sizeless: which.sizeless()}
		return t, t.fill(f, r, count, limit)
	}
	return &Table{}, nil
}

// lowestCode is the address that keys are relative to.
func (f *File) lowestCode() uint64 {
	low := uint64(math.MaxUint64)
	for i := range f.Segments {
		if s := &f.Segments[i]; s.Exec() {
			low = min(low, s.VAddr)
		}
	}
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Flags&shfExec != 0 {
			low = min(low, s.Addr)
		}
	}
	if low == math.MaxUint64 {
		return 0
	}
	return low
}

// fill reads the table twice, once to count, so that the keys are allocated
// once and exactly: a doubling slice would leave as much garbage again.
func (t *Table) fill(f *File, r io.ReaderAt, count uint64, limit int) error {
	n := 0
	err := t.eachFunction(f, r, count, func(uint64) { n++ })
	if err != nil {
		return err
	}
	if n > limit {
		return fmt.Errorf("%d functions, limit %d: %w", n, limit, ErrTooLarge)
	}
	t.keys = make([]uint64, 0, n)
	err = t.eachFunction(f, r, count, func(key uint64) {
		if len(t.keys) < n { // the file may change between the passes
			t.keys = append(t.keys, key)
		}
	})
	t.Skipped /= 2
	slices.Sort(t.keys)
	return err
}

func (t *Table) eachFunction(f *File, r io.ReaderAt, count uint64, each func(key uint64)) error {
	const batch = 1 << 11
	buf := make([]byte, batch*symbolSize)
	for first := uint64(0); first < count; first += batch {
		chunk := buf[:min(batch, count-first)*symbolSize]
		if err := readFull(r, chunk, int64(t.symbols+first*symbolSize)); err != nil {
			return fmt.Errorf("symbols: %w", err)
		}
		for i := uint64(0); len(chunk) > 0; i, chunk = i+1, chunk[symbolSize:] {
			s := decode(chunk)
			if !s.isFunction(f) {
				continue
			}
			if rel := s.value - t.base; s.value >= t.base && rel <= math.MaxUint32 {
				each(rel<<32 | (first + i))
			} else {
				t.Skipped++
			}
		}
	}
	return nil
}

// Len is the number of functions.
func (t *Table) Len() int { return len(t.keys) }

// Bytes is the memory that t holds.
func (t *Table) Bytes() int64 { return 160 + 8*int64(cap(t.keys)) }

// Lookup returns the function that contains vaddr. r reads the file that t was
// made from.
//
// A symbol whose size covers the address wins, the nearest start first; then one
// without size, within bounds. Of several names for one start the same one is
// always chosen: an exported one, the one with the fewest leading underscores.
//
// The span tells for which addresses around vaddr the answer is the same, so that
// it can be kept.
func (t *Table) Lookup(r io.ReaderAt, vaddr uint64) (s Symbol, span Span, ok bool, err error) {
	end, span := t.nearest(vaddr)
	next := span.High

	var guess Symbol
	var guessed bool
	for range maxStarts {
		if end == 0 {
			break
		}
		start := t.keys[end-1] >> 32
		from := sort.Search(end, func(i int) bool { return t.keys[i]>>32 >= start })
		sized, sizeless, err := t.choose(r, t.keys[max(from, end-maxAliases):end], vaddr, &span)
		if err != nil {
			return Symbol{}, span, false, err
		}
		if sized.Name != "" {
			return sized, span, true, nil
		}
		if sizeless.Name != "" && !guessed {
			reach := min(sizeless.Start+t.sizeless, next)
			span.narrow(reach, vaddr)
			if vaddr < reach {
				guess = sizeless
			}
		}
		guessed, end = true, from
	}
	return guess, span, guess.Name != "", nil
}

// Nearest numbers the run of addresses between two starts that vaddr lies in. It
// reads nothing.
func (t *Table) Nearest(vaddr uint64) int {
	end, _ := t.nearest(vaddr)
	return end
}

// nearest returns how many keys start at or before vaddr, and the addresses for which
// that is so.
func (t *Table) nearest(vaddr uint64) (end int, span Span) {
	span.High = math.MaxUint64
	end = sort.Search(len(t.keys), func(i int) bool { return t.base+t.keys[i]>>32 > vaddr })
	if end < len(t.keys) {
		span.High = t.base + t.keys[end]>>32
	}
	if end > 0 {
		span.Low = t.base + t.keys[end-1]>>32
	}
	return end, span
}

// choose picks the best name of symbols that start at one address: one whose
// size covers vaddr, and one that says no size.
func (t *Table) choose(r io.ReaderAt, keys []uint64, vaddr uint64, span *Span) (sized, sizeless Symbol, err error) {
	var best, bestSizeless rank
	var b [symbolSize]byte
	for _, key := range keys {
		if err := readFull(r, b[:], int64(t.symbols+key&math.MaxUint32*symbolSize)); err != nil {
			return sized, sizeless, fmt.Errorf("symbol: %w", err)
		}
		s := decode(b[:])
		start := t.base + key>>32
		if s.size != 0 {
			if stop := start + s.size; stop > start { // else it runs to the end of memory
				span.narrow(stop, vaddr)
			}
			if vaddr-start >= s.size {
				continue
			}
		}
		name, err := t.name(r, s.name)
		if err != nil {
			return sized, sizeless, err
		}
		if name == "" {
			continue
		}
		found, at := Symbol{Name: name, Start: start, Size: s.size}, rankOf(name, s)
		if s.size != 0 && (sized.Name == "" || at.before(best)) {
			sized, best = found, at
		}
		if s.size == 0 && (sizeless.Name == "" || at.before(bestSizeless)) {
			sizeless, bestSizeless = found, at
		}
	}
	return sized, sizeless, nil
}

// name reads a string of the table's string section. A version ("@GLIBC_2.2.5",
// "@@…") is no part of the name.
func (t *Table) name(r io.ReaderAt, off uint32) (string, error) {
	if uint64(off) >= t.strings.Size {
		return "", nil
	}
	left := t.strings.Size - uint64(off)
	for size := uint64(128); ; size *= 8 {
		b := make([]byte, min(size, left, maxName))
		if err := readFull(r, b, int64(t.strings.Offset+uint64(off))); err != nil {
			return "", fmt.Errorf("symbol name: %w", err)
		}
		name := cString(b, 0)
		if len(name) < len(b) || uint64(len(b)) == left || len(b) == maxName {
			name, _, _ = strings.Cut(name, "@")
			return strings.ToValidUTF8(name, "\uFFFD"), nil
		}
	}
}
