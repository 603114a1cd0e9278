// SPDX-License-Identifier: Apache-2.0

// Package kallsyms names kernel addresses from /proc/kallsyms: functions of the
// kernel, of its modules, and of loaded BPF programs.
//
// A Table is made once of some 120,000 lines and holds eight bytes and the name
// for each function; data symbols are left out. When it is out of date is for
// others to say.
//
// Format: s_show in the kernel's kernel/kallsyms.c: address, kind, name, and after a tab
// the module in brackets.
package kallsyms

import (
	"bufio"
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
	maxLine    = 4096
	maxSymbols = 4 << 20
	maxNames   = 256 << 20 // bytes

	// maxReach bounds a function, because kallsyms tells no sizes: the last function
	// before a hole must not name what was loaded into the hole since.
	maxReach = 64 << 10
)

// ErrHidden means that the kernel shows no addresses to this process: it lacks
// CAP_SYSLOG, or kernel.kptr_restrict is 2.
var ErrHidden = errors.New("the kernel hides its addresses")

// ErrTooLarge means that there are more symbols than this package holds.
var ErrTooLarge = errors.New("too many kernel symbols")

// A Symbol is a function of the kernel.
type Symbol struct {
	Name   string
	Module string // "" for the kernel itself; "bpf" for BPF programs
	Start  uint64
	Offset uint64 // of Start from the first byte of the kernel's or the module's text, which differs at every boot
}

// A Table finds the function at a kernel address.
type Table struct {
	base uint64
	keys []uint64 // start, relative to base, << 32 | offset in lines; sorted
	// lines holds "name\n" and "name\tmodule\n", led by the symbol's kind.
	lines []byte
	text  map[string]uint64 // by module: address of its first function
}

// Parse reads the lines of /proc/kallsyms.
func Parse(r io.Reader) (*Table, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, maxLine), maxLine)

	// What a common kernel needs: growing to it would leave three times as much behind.
	const functions, bytesOfNames = 160 << 10, 4 << 20
	t := &Table{base: math.MaxUint64, text: map[string]uint64{}, lines: make([]byte, 0, bytesOfNames)}
	starts, names := make([]uint64, 0, functions), make([]uint32, 0, functions)
	hidden := 0
	for n := 1; in.Scan(); n++ {
		start, kind, name, module, err := parse(in.Bytes())
		if err != nil {
			return nil, fmt.Errorf("kallsyms: line %d: %w", n, err)
		}
		switch {
		case kind != 't' && kind != 'T' && kind != 'w' && kind != 'W':
			continue
		case start == 0:
			hidden++
			continue
		case len(starts) == maxSymbols || len(t.lines) > maxNames:
			return nil, fmt.Errorf("kallsyms: line %d: %w", n, ErrTooLarge)
		}
		starts = append(starts, start)
		names = append(names, uint32(len(t.lines)))
		t.base = min(t.base, start)
		t.lines = append(append(t.lines, kind), name...)
		if len(module) > 0 {
			t.lines = append(append(t.lines, '\t'), module...)
		}
		t.lines = append(t.lines, '\n')
		if first, ok := t.text[string(module)]; !ok || start < first {
			t.text[string(module)] = start
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("kallsyms: %w", err)
	}
	if len(starts) == 0 && hidden > 0 {
		return nil, fmt.Errorf("kallsyms: %w", ErrHidden)
	}
	t.keys = make([]uint64, 0, len(starts))
	for i, start := range starts {
		// Text spans less than 4 GiB on amd64 and arm64: relative jumps must reach.
		if start-t.base <= math.MaxUint32 {
			t.keys = append(t.keys, (start-t.base)<<32|uint64(names[i]))
		}
	}
	slices.Sort(t.keys)
	t.lines = slices.Clone(t.lines) // without the room that growing left
	return t, nil
}

var errMalformed = errors.New("malformed line")

// parse takes "ffffffff81000000 T _stext" or "ffffffffc0001000 t nft_do	[nf_tables]".
func parse(line []byte) (start uint64, kind byte, name, module []byte, err error) {
	i := 0
	for ; i < len(line) && line[i] != ' '; i++ {
		var digit byte
		switch c := line[i]; {
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c && c <= 'f':
			digit = c - 'a' + 10
		default:
			return 0, 0, nil, nil, errMalformed
		}
		if start >= 1<<60 {
			return 0, 0, nil, nil, errMalformed
		}
		start = start<<4 | uint64(digit)
	}
	if i == 0 || len(line) < i+4 || line[i+2] != ' ' {
		return 0, 0, nil, nil, errMalformed
	}
	name, module, _ = bytes.Cut(line[i+3:], []byte("\t"))
	module = bytes.TrimSuffix(bytes.TrimPrefix(module, []byte("[")), []byte("]"))
	return start, line[i+1], name, module, nil
}

// Len is the number of functions.
func (t *Table) Len() int { return len(t.keys) }

// Bytes is the memory that t holds.
func (t *Table) Bytes() int64 { return int64(8*cap(t.keys)+cap(t.lines)) + 64*int64(len(t.text)) }

// Text returns the address that offsets in the kernel itself are relative to.
func (t *Table) Text() uint64 { return t.text[""] }

// Lookup returns the function that contains addr: the last one that starts at or before it.
func (t *Table) Lookup(addr uint64) (Symbol, bool) {
	if addr < t.base || addr-t.base > math.MaxUint32 {
		return Symbol{}, false
	}
	rel := addr - t.base
	end := sort.Search(len(t.keys), func(i int) bool { return t.keys[i]>>32 > rel })
	if end == 0 {
		return Symbol{}, false
	}
	start := t.keys[end-1] >> 32
	if rel-start >= maxReach {
		return Symbol{}, false
	}
	best := t.line(t.keys[end-1])
	for i := end - 2; i >= 0 && t.keys[i]>>32 == start; i-- {
		if line := t.line(t.keys[i]); before(line, best) {
			best = line
		}
	}
	name, module, _ := strings.Cut(best[1:], "\t")
	s := Symbol{Name: name, Module: module, Start: t.base + start}
	// BPF programs and trampolines come and go: their distance from each other means nothing.
	if module != "bpf" && !strings.HasPrefix(module, "__builtin__") {
		s.Offset = s.Start - t.text[module]
	}
	return s, true
}

func (t *Table) line(key uint64) string {
	b := t.lines[key&math.MaxUint32:]
	return string(b[:bytes.IndexByte(b, '\n')])
}

// before orders the names of one address: exported ones first, then fewer
// leading underscores, then shorter ones.
func before(a, b string) bool {
	if ga, gb := a[0] == 'T', b[0] == 'T'; ga != gb {
		return ga
	}
	ua, ub := len(a[1:])-len(strings.TrimLeft(a[1:], "_")), len(b[1:])-len(strings.TrimLeft(b[1:], "_"))
	switch {
	case ua != ub:
		return ua < ub
	case len(a) != len(b):
		return len(a) < len(b)
	}
	return a < b
}

// Visible returns ErrHidden when the kernel shows no addresses, by its first lines.
func Visible(r io.Reader) error {
	in := bufio.NewScanner(io.LimitReader(r, 64<<10))
	in.Buffer(make([]byte, 0, maxLine), maxLine)
	n := 0
	for ; in.Scan(); n++ {
		if start, _, _, _, err := parse(in.Bytes()); err == nil && start != 0 {
			return nil
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("kallsyms: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("kallsyms: no symbols: %w", ErrHidden)
	}
	return fmt.Errorf("kallsyms: %w", ErrHidden)
}
